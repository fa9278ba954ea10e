-- One topic. Collect: what all SLOs of a group of labels want of its records, by series.
CREATE TEMPORARY VIEW packets{suffix} AS
{packets};
CREATE TEMPORARY VIEW slices{suffix} AS
SELECT slo_group, series, SUM(n) AS n, ARRAY_AGG(packet) AS packets, window_end AS slice_end, window_time
FROM TUMBLE(TABLE packets{suffix}, DESCRIPTOR(event_time), {slice})
GROUP BY slo_group, series, window_start, window_end, window_time;
-- Tally: good and all events of each SLO, one Python call for many slices. It passes through a DataStream (jobs/slo.py).
CREATE TEMPORARY VIEW tallied_once{suffix} AS
SELECT slo_group, series, tally_slices{suffix}(slo_group, packets) AS tallies, slice_end, n, window_time
FROM slices{suffix};
CREATE TEMPORARY VIEW sliced{suffix} AS
SELECT SUM(n) AS n, window_end
FROM TUMBLE(TABLE tallied{suffix}, DESCRIPTOR(window_time), {slice})
WHERE slo_group = {first_group}
GROUP BY window_start, window_end;
CREATE TEMPORARY VIEW read_counts{suffix} AS
SELECT window_end, SUM(counts[1]) AS n_read, SUM(counts[2]) AS n_dead, SUM(counts[3]) AS n_late
FROM TUMBLE(TABLE taken{suffix}, DESCRIPTOR(proctime), INTERVAL '2' SECOND)
WHERE counts IS NOT NULL
GROUP BY window_start, window_end;
