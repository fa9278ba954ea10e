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
