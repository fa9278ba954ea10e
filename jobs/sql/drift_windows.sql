-- All monitors with one slide and one window share these: merge, judge.
CREATE TEMPORARY VIEW in_{windows} AS
SELECT monitor, series, sketches, window_time
FROM sketches_{cut}
WHERE monitor IN ({members});
CREATE TEMPORARY VIEW windows_{windows} AS
SELECT monitor, series, ARRAY_AGG(sketches) AS sketches, window_end
FROM HOP(TABLE in_{windows}, DESCRIPTOR(window_time), {slide}, {window})
GROUP BY monitor, series, window_start, window_end;
CREATE TEMPORARY VIEW verdicts_{windows} AS
SELECT verdict
FROM (SELECT judge_windows(monitor, window_end, series, sketches) AS verdicts FROM windows_{windows})
CROSS JOIN UNNEST(verdicts) AS unnested (verdict);
