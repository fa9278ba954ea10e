-- Collect: what all SLOs of a group of labels want of the requests, by series.
CREATE TEMPORARY VIEW packets AS
{packets};
CREATE TEMPORARY VIEW slices AS
SELECT slo_group, series, SUM(n) AS n, ARRAY_AGG(packet) AS packets, window_end AS slice_end, window_time
FROM TUMBLE(TABLE packets, DESCRIPTOR(event_time), {slice})
GROUP BY slo_group, series, window_start, window_end, window_time;
-- Tally: good and all events of each SLO, one Python call for many slices. It passes through a DataStream (jobs/slo.py).
CREATE TEMPORARY VIEW tallied_once AS
SELECT slo_group, series, tally_slices(slo_group, packets) AS tallies, slice_end, n, window_time
FROM slices;
CREATE TEMPORARY VIEW sliced AS
SELECT SUM(n) AS n, window_end
FROM TUMBLE(TABLE tallied, DESCRIPTOR(window_time), {slice})
WHERE slo_group = {first_group}
GROUP BY window_start, window_end;
CREATE TEMPORARY VIEW read_counts AS
SELECT window_end, SUM(counts[1]) AS n_read, SUM(counts[2]) AS n_dead, SUM(counts[3]) AS n_late
FROM TUMBLE(TABLE taken, DESCRIPTOR(proctime), INTERVAL '2' SECOND)
WHERE counts IS NOT NULL
GROUP BY window_start, window_end;
INSERT INTO dead_letters
SELECT {topic}, letter
FROM taken CROSS JOIN UNNEST(letters) AS unnested (letter);
INSERT INTO books
SELECT {job}, kind, CAST(NULL AS STRING), n, {window_end_ms}
FROM read_counts CROSS JOIN UNNEST(ARRAY[ROW('{read}', n_read), ROW('{dead}', n_dead), ROW('{late}', n_late)])
  AS unnested (kind, n)
WHERE n > 0
UNION ALL
SELECT {job}, '{sliced}', CAST(NULL AS STRING), n, {window_end_ms}
FROM sliced;
