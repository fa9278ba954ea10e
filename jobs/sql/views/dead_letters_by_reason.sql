-- What could not be used, by job, source topic and reason
SELECT
  job,
  source_topic,
  reason,
  count(*) AS records,
  sum(length) AS bytes,
  min(source_timestamp) AS first_at,
  max(source_timestamp) AS last_at
FROM dead_letters
GROUP BY job, source_topic, reason
