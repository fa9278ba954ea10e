-- Each alert from firing to resolved, with its duration; resolved_at is null while it is open
SELECT
  firing.starts_at,
  resolved.ends_at AS resolved_at,
  timestampdiff(SECOND, firing.starts_at, resolved.ends_at) AS duration_seconds,
  resolved.alert_id IS NULL AS is_open,
  firing.monitor,
  firing.feature,
  firing.series,
  firing.labels['severity'] AS severity,
  firing.annotations['summary'] AS summary,
  firing.active_at,
  firing.fingerprint,
  firing.model_card_digest
FROM alerts AS firing
LEFT JOIN alerts AS resolved
  ON resolved.fingerprint = firing.fingerprint
  AND resolved.starts_at = firing.starts_at
  AND resolved.state = 'resolved'
WHERE firing.state = 'firing'
  AND firing.episode IS NULL
