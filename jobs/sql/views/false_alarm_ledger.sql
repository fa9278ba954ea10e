-- For each monitor: firings, and what people said of them (acknowledged, false); of each firing the last label holds
WITH said AS (
  SELECT
    fingerprint,
    event_time AS starts_at,
    score,
    max_by(coalesce(label_value, IF(label_class = 'good', 1, 0)), struct(label_time, feedback_id)) AS word
  FROM feedback
  WHERE fingerprint IS NOT NULL AND score IN ('alert', 'acknowledged')
  GROUP BY fingerprint, event_time, score
),
judged_windows AS (
  SELECT monitor, count(DISTINCT to_json(series), window_end) AS windows
  FROM verdicts
  WHERE status = 'ok' AND kind = 'drift'
  GROUP BY monitor
),
firings AS (
  SELECT DISTINCT monitor, fingerprint, starts_at
  FROM alerts
  WHERE state = 'firing'
)
SELECT
  firings.monitor,
  any_value(judged_windows.windows) AS windows,
  count(*) AS alerts,
  count_if(acknowledged.word >= 0.5) AS acknowledged,
  count(judged.word) AS labelled,
  count_if(judged.word < 0.5) AS labelled_false,
  try_divide(count_if(judged.word < 0.5), count(judged.word)) AS false_share,
  try_divide(count_if(judged.word < 0.5), any_value(judged_windows.windows)) AS false_alarms_per_window,
  min(firings.starts_at) AS first_alert_at,
  max(firings.starts_at) AS last_alert_at
FROM firings
LEFT JOIN said AS acknowledged
  ON acknowledged.score = 'acknowledged'
  AND acknowledged.fingerprint = firings.fingerprint
  AND acknowledged.starts_at = firings.starts_at
LEFT JOIN said AS judged
  ON judged.score = 'alert'
  AND judged.fingerprint = firings.fingerprint
  AND judged.starts_at = firings.starts_at
LEFT JOIN judged_windows ON judged_windows.monitor = firings.monitor
GROUP BY firings.monitor
