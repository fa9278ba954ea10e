-- All monitors with one slide share these: collect, sketch. A monitor is known by its number in the file.
CREATE TEMPORARY VIEW packets_{cut} AS
{packets};
CREATE TEMPORARY VIEW slices_{cut} AS
SELECT monitor, series, SUM(n) AS n, ARRAY_AGG(packet) AS packets, window_end AS slice_end, window_time
FROM TUMBLE(TABLE packets_{cut}, DESCRIPTOR(event_time), {slide})
GROUP BY monitor, series, shard, window_start, window_end, window_time;
CREATE TEMPORARY VIEW sketches_{cut} AS
SELECT monitor, series, sketch_slices(monitor, packets) AS sketches, window_time
FROM slices_{cut};
CREATE TEMPORARY VIEW sliced_{cut} AS
SELECT monitor, SUM(n) AS n, window_end
FROM TUMBLE(TABLE slices_{cut}, DESCRIPTOR(window_time), {slide})
GROUP BY monitor, window_start, window_end;
