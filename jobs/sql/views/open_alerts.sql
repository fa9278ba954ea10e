-- Alerts that fire and are not resolved
SELECT
  starts_at,
  active_at,
  monitor,
  feature,
  series,
  labels['severity'] AS severity,
  annotations['summary'] AS summary,
  fingerprint
FROM alerts AS firing
WHERE state = 'firing'
  AND episode IS NULL
  AND NOT EXISTS (
    SELECT 1
    FROM alerts AS resolved
    WHERE resolved.state = 'resolved'
      AND resolved.fingerprint = firing.fingerprint
      AND resolved.starts_at = firing.starts_at
  )
