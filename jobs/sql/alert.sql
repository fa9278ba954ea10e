-- Verdicts come as bytes, so that one that can't be read becomes a dead letter and not a failed job.
CREATE TEMPORARY TABLE verdicts (
  payload BYTES,
  source_topic STRING NOT NULL METADATA FROM 'topic' VIRTUAL,
  source_partition INT NOT NULL METADATA FROM 'partition' VIRTUAL,
  source_offset BIGINT NOT NULL METADATA FROM 'offset' VIRTUAL,
  kafka_timestamp TIMESTAMP_LTZ(3) NOT NULL METADATA FROM 'timestamp' VIRTUAL
) WITH (
  {verdicts}
);

CREATE TEMPORARY TABLE changes (
  payload BYTES,
  source_topic STRING NOT NULL METADATA FROM 'topic' VIRTUAL,
  source_partition INT NOT NULL METADATA FROM 'partition' VIRTUAL,
  source_offset BIGINT NOT NULL METADATA FROM 'offset' VIRTUAL,
  kafka_timestamp TIMESTAMP_LTZ(3) NOT NULL METADATA FROM 'timestamp' VIRTUAL
) WITH (
  {changes}
);

CREATE TEMPORARY TABLE silences (
  payload BYTES,
  source_topic STRING NOT NULL METADATA FROM 'topic' VIRTUAL,
  source_partition INT NOT NULL METADATA FROM 'partition' VIRTUAL,
  source_offset BIGINT NOT NULL METADATA FROM 'offset' VIRTUAL,
  kafka_timestamp TIMESTAMP_LTZ(3) NOT NULL METADATA FROM 'timestamp' VIRTUAL
) WITH (
  {silences}
);

CREATE TEMPORARY TABLE alerts (
  fingerprint STRING,
  payload BYTES
) WITH (
  {alerts}
);

CREATE TEMPORARY TABLE incidents (
  incident_id STRING,
  payload BYTES
) WITH (
  {incidents}
);

CREATE TEMPORARY TABLE dead_letters (
  source_topic STRING,
  payload BYTES
) WITH (
  {dead_letters}
);
