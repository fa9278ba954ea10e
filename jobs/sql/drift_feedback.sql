-- Late labels, for monitors that have signal `feedback`. They need no event time: verdicts are their clock.
CREATE TEMPORARY TABLE feedback (
  payload BYTES,
  source_topic STRING NOT NULL METADATA FROM 'topic' VIRTUAL,
  source_partition INT NOT NULL METADATA FROM 'partition' VIRTUAL,
  source_offset BIGINT NOT NULL METADATA FROM 'offset' VIRTUAL,
  kafka_timestamp TIMESTAMP_LTZ(3) NOT NULL METADATA FROM 'timestamp' VIRTUAL
) WITH (
  {feedback}
);
