-- A topic read as bytes, so that a message that can't be read becomes a dead letter and not a failed job
-- (udfs/flink_raw_rows.py).
CREATE TEMPORARY TABLE {table} (
  payload BYTES,
  source_topic STRING NOT NULL METADATA FROM 'topic' VIRTUAL,
  source_partition INT NOT NULL METADATA FROM 'partition' VIRTUAL,
  source_offset BIGINT NOT NULL METADATA FROM 'offset' VIRTUAL,
  kafka_timestamp TIMESTAMP_LTZ(3) NOT NULL METADATA FROM 'timestamp' VIRTUAL
) WITH (
  {options}
);
