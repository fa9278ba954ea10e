-- For each monitor and feature: windows judged, the share that drifted, and the worst window
SELECT
  monitor,
  feature,
  count(*) AS windows,
  count_if(status = 'ok') AS windows_ok,
  count_if(drifted) AS windows_drifted,
  try_divide(count_if(drifted), count_if(status = 'ok')) AS drifted_share,
  min(window_end) FILTER (WHERE drifted) AS first_drift,
  max(statistic) AS worst_statistic,
  max_by(window_end, statistic) AS worst_window_end,
  max_by(series, statistic) AS worst_series
FROM verdicts
-- A service level's statistic is what is left, a split's is a share: neither is worst where it is largest.
WHERE coalesce(kind, 'drift') NOT IN ('slo', 'split')
GROUP BY monitor, feature
