-- Every time an alert was kept from people: why, by what, until when, and what came after (null: nothing yet)
SELECT
  updated_at AS suppressed_at,
  get_json_object(suppression, '$.reason') AS reason,
  get_json_object(suppression, '$.by') AS suppressed_by,
  get_json_object(suppression, '$.detail') AS detail,
  try_cast(get_json_object(suppression, '$.until') AS TIMESTAMP) AS until,
  next_at,
  next_state,
  monitor,
  feature,
  series,
  labels['severity'] AS severity,
  starts_at,
  fingerprint,
  incident_id,
  alert_id
FROM (
  SELECT
    *,
    lead(updated_at) OVER life AS next_at,
    lead(state) OVER life AS next_state
  FROM alerts
  WHERE state <> 'pending'
  WINDOW life AS (PARTITION BY fingerprint, starts_at ORDER BY updated_at, kafka_offset)
)
WHERE state = 'suppressed'
