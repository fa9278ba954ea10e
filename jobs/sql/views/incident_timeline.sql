-- Each incident: when it began and ended (null: open), how grave, its most alerts at once, how often people were told
SELECT
  started_at,
  max(updated_at) FILTER (WHERE event = 'resolved') AS resolved_at,
  timestampdiff(SECOND, started_at, max(updated_at) FILTER (WHERE event = 'resolved')) AS duration_seconds,
  count_if(event = 'resolved') = 0 AS is_open,
  min_by(group_labels, number) AS scope,
  max_by(severity, number) AS severity,
  max(try_cast(get_json_object(counts, '$.firing') AS BIGINT)) AS most_firing,
  count(*) AS notifications,
  min_by(get_json_object(listed_alerts, '$[0].annotations.summary'), number) AS first_summary,
  max_by(get_json_object(root_cause, '$.causes[0].name'), number) AS likeliest_cause,
  incident_id
FROM incidents
GROUP BY incident_id, started_at
