-- Records that broke their table's schema or constraints, by topic and reason, with the place of the last one
SELECT
  kafka_topic,
  reason,
  count(*) AS records,
  min(kafka_timestamp) AS first_at,
  max(kafka_timestamp) AS last_at,
  max_by(kafka_partition, struct(kafka_timestamp, kafka_offset)) AS last_partition,
  max_by(kafka_offset, struct(kafka_timestamp, kafka_offset)) AS last_offset
FROM quarantine
GROUP BY kafka_topic, reason
