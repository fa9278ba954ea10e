CREATE TEMPORARY VIEW packets AS
SELECT 'service_name,model' AS slo_group, series[1] AS series, packets[1] AS packet, sizes[1] AS n, event_time
FROM taken WHERE sizes[1] > 0;

CREATE TEMPORARY VIEW slices AS
SELECT slo_group, series, SUM(n) AS n, ARRAY_AGG(packet) AS packets, window_end AS slice_end, window_time
FROM TUMBLE(TABLE packets, DESCRIPTOR(event_time), INTERVAL '0 00:00:30.000' DAY TO SECOND(3))
GROUP BY slo_group, series, window_start, window_end, window_time;

CREATE TEMPORARY VIEW tallied_once AS
SELECT slo_group, series, tally_slices(slo_group, packets) AS tallies, slice_end, n, window_time
FROM slices;

CREATE TEMPORARY VIEW sliced AS
SELECT SUM(n) AS n, window_end
FROM TUMBLE(TABLE tallied, DESCRIPTOR(window_time), INTERVAL '0 00:00:30.000' DAY TO SECOND(3))
WHERE slo_group = 'service_name,model'
GROUP BY window_start, window_end;

CREATE TEMPORARY VIEW read_counts AS
SELECT window_end, SUM(counts[1]) AS n_read, SUM(counts[2]) AS n_dead, SUM(counts[3]) AS n_late
FROM TUMBLE(TABLE taken, DESCRIPTOR(proctime), INTERVAL '2' SECOND)
WHERE counts IS NOT NULL
GROUP BY window_start, window_end;

INSERT INTO dead_letters
SELECT 'eu-requests', letter
FROM taken CROSS JOIN UNNEST(letters) AS unnested (letter);

INSERT INTO books
SELECT 'slo', kind, CAST(NULL AS STRING), n, UNIX_TIMESTAMP(CAST(window_end AS STRING)) * 1000
FROM (SELECT * FROM read_counts) CROSS JOIN UNNEST(ARRAY[ROW('read', n_read), ROW('dead', n_dead), ROW('late', n_late)])
  AS unnested (kind, n)
WHERE n > 0
UNION ALL
SELECT 'slo', 'sliced', CAST(NULL AS STRING), n, UNIX_TIMESTAMP(CAST(window_end AS STRING)) * 1000
FROM (SELECT * FROM sliced);
