-- The audit job's own books: records read of each topic, where they went, and what the tables hold (missing: must be 0)
WITH counted AS (
  SELECT
    kafka_topic,
    sum(rows_read) AS records_read,
    sum(rows_inserted) AS rows_inserted,
    sum(rows_already_there) AS rows_already_there,
    sum(rows_quarantined) AS rows_quarantined
  FROM batches
  GROUP BY kafka_topic
),
stored AS (
  SELECT kafka_topic, count_if(NOT is_quarantined) AS rows_in_table, count_if(is_quarantined) AS rows_in_quarantine
  FROM (
    SELECT kafka_topic, false AS is_quarantined FROM verdicts
    UNION ALL SELECT kafka_topic, false FROM alerts
    UNION ALL SELECT kafka_topic, false FROM incidents
    UNION ALL SELECT kafka_topic, false FROM scores
    UNION ALL SELECT kafka_topic, false FROM decisions
    UNION ALL SELECT kafka_topic, false FROM feedback
    UNION ALL SELECT kafka_topic, false FROM dead_letters
    UNION ALL SELECT kafka_topic, false FROM books
    UNION ALL SELECT kafka_topic, true FROM quarantine
  )
  GROUP BY kafka_topic
)
SELECT
  counted.*,
  coalesce(stored.rows_in_table, 0) AS rows_in_table,
  coalesce(stored.rows_in_quarantine, 0) AS rows_in_quarantine,
  rows_inserted + rows_quarantined
    - coalesce(stored.rows_in_table, 0) - coalesce(stored.rows_in_quarantine, 0) AS rows_missing
FROM counted
LEFT JOIN stored ON stored.kafka_topic = counted.kafka_topic
