-- One monitor: collect, sketch, merge, judge.
CREATE TEMPORARY VIEW packets_{number} AS
SELECT series[{index}] AS series, packets[{index}] AS packet, sizes[{index}] AS n, MOD(`offset`, {shards}) AS shard, event_time
FROM taken
WHERE sizes[{index}] > 0;
CREATE TEMPORARY VIEW slices_{number} AS
SELECT series, SUM(n) AS n, ARRAY_AGG(packet) AS packets, window_end AS slice_end, window_time
FROM TUMBLE(TABLE packets_{number}, DESCRIPTOR(event_time), {slide})
GROUP BY series, shard, window_start, window_end, window_time;
CREATE TEMPORARY VIEW sketches_{number} AS
SELECT series, sketch_{number}(packets) AS sketches, window_time
FROM slices_{number};
CREATE TEMPORARY VIEW windows_{number} AS
SELECT series, ARRAY_AGG(sketches) AS sketches, window_end
FROM HOP(TABLE sketches_{number}, DESCRIPTOR(window_time), {slide}, {window})
GROUP BY series, window_start, window_end;
CREATE TEMPORARY VIEW verdicts_{number} AS
SELECT verdict
FROM (SELECT judge_{number}(window_end, series, sketches) AS verdicts FROM windows_{number})
CROSS JOIN UNNEST(verdicts) AS unnested (verdict);
CREATE TEMPORARY VIEW sliced_{number} AS
SELECT SUM(n) AS n, window_end
FROM TUMBLE(TABLE slices_{number}, DESCRIPTOR(window_time), {slide})
GROUP BY window_start, window_end;
