-- The audit job's own books: what was read of each topic, where it went, and what is in the tables (missing: must be 0)
WITH read AS (
  SELECT
    kafka_topic,
    sum(rows_read) AS records_read,
    sum(rows_inserted) AS rows_inserted,
    sum(rows_already_there) AS rows_already_there,
    sum(rows_quarantined) AS rows_quarantined
  FROM batches
  GROUP BY kafka_topic
),
rows AS (
  SELECT kafka_topic FROM verdicts
  UNION ALL SELECT kafka_topic FROM alerts
  UNION ALL SELECT kafka_topic FROM dead_letters
  UNION ALL SELECT kafka_topic FROM books
),
stored AS (SELECT kafka_topic, count(*) AS rows_in_table FROM rows GROUP BY kafka_topic)
SELECT
  read.*,
  coalesce(stored.rows_in_table, 0) AS rows_in_table,
  read.rows_inserted - coalesce(stored.rows_in_table, 0) AS rows_missing
FROM read
LEFT JOIN stored ON stored.kafka_topic = read.kafka_topic
