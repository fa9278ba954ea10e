CREATE TEMPORARY VIEW packets AS
SELECT series[1] AS series, packets[1] AS packet, sizes[1] AS n, event_time
FROM taken
WHERE sizes[1] > 0;

CREATE TEMPORARY VIEW slices AS
SELECT series, SUM(n) AS n, ARRAY_AGG(packet) AS packets, window_time AS slice_time
FROM TUMBLE(TABLE packets, DESCRIPTOR(event_time), INTERVAL '0 00:00:30.000' DAY TO SECOND(3))
GROUP BY series, window_start, window_end, window_time;

CREATE TEMPORARY VIEW sketches AS
SELECT sketch_arm(series, packets) AS sketch, n, slice_time
FROM slices;

CREATE TEMPORARY VIEW windows AS
SELECT ARRAY_AGG(sketch) AS sketches, SUM(n) AS n, window_end
FROM TUMBLE(TABLE sketches, DESCRIPTOR(slice_time), INTERVAL '0 00:00:30.000' DAY TO SECOND(3))
GROUP BY window_start, window_end;

CREATE TEMPORARY VIEW gathered_once AS
SELECT gather_windows(window_end, sketches) AS experiments, n, UNIX_TIMESTAMP(CAST(window_end AS STRING)) * 1000 AS window_end_ms
FROM windows;

CREATE TEMPORARY VIEW experiment_windows AS
SELECT experiment
FROM gathered CROSS JOIN UNNEST(experiments) AS unnested (experiment);

CREATE TEMPORARY VIEW read_counts AS
SELECT window_end, SUM(counts[1]) AS n_read, SUM(counts[2]) AS n_dead, SUM(counts[3]) AS n_late
FROM TUMBLE(TABLE taken, DESCRIPTOR(proctime), INTERVAL '2' SECOND)
WHERE counts IS NOT NULL
GROUP BY window_start, window_end;

INSERT INTO dead_letters
SELECT 'eu-requests', letter
FROM taken CROSS JOIN UNNEST(letters) AS unnested (letter);

INSERT INTO books
SELECT 'experiment', kind, CAST(NULL AS STRING), n, UNIX_TIMESTAMP(CAST(window_end AS STRING)) * 1000
FROM read_counts CROSS JOIN UNNEST(ARRAY[ROW('read', n_read), ROW('dead', n_dead), ROW('late', n_late)])
  AS unnested (kind, n)
WHERE n > 0
UNION ALL
SELECT 'experiment', 'sliced', CAST(NULL AS STRING), n, window_end_ms
FROM gathered;
