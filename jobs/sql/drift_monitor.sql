-- One monitor: collect, sketch, merge, judge.
CREATE TEMPORARY VIEW on_time_{number} AS
SELECT {label_values}MOD(`offset`, {shards}) AS shard, {feature_values}, event_time
FROM placed
WHERE usable_ms IS NOT NULL AND NOT {is_late};
CREATE TEMPORARY VIEW slices_{number} AS
SELECT {labels}COUNT(*) AS n, {collected}, window_time
FROM TUMBLE(TABLE on_time_{number}, DESCRIPTOR(event_time), {slide})
GROUP BY {labels}shard, window_start, window_end, window_time;
CREATE TEMPORARY VIEW sketches_{number} AS
SELECT {labels}{sketched}, window_time
FROM slices_{number};
CREATE TEMPORARY VIEW windows_{number} AS
SELECT {labels}{merged}, window_end
FROM HOP(TABLE sketches_{number}, DESCRIPTOR(window_time), {slide}, {window})
GROUP BY {labels}window_start, window_end;
CREATE TEMPORARY VIEW verdicts_{number} AS
SELECT verdict
FROM (SELECT judge_{number}(window_end, {judged}) AS verdicts FROM windows_{number})
CROSS JOIN UNNEST(verdicts) AS unnested (verdict);
CREATE TEMPORARY VIEW sliced_{number} AS
SELECT SUM(n) AS n, window_end
FROM TUMBLE(TABLE slices_{number}, DESCRIPTOR(window_time), {slide})
GROUP BY window_start, window_end;
