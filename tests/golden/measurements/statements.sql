CREATE TEMPORARY TABLE otlp_metrics (
  message BYTES,
  topic STRING NOT NULL METADATA VIRTUAL,
  `partition` INT NOT NULL METADATA VIRTUAL,
  `offset` BIGINT NOT NULL METADATA VIRTUAL,
  `timestamp` TIMESTAMP_LTZ(3) NOT NULL METADATA VIRTUAL
) WITH (
  'connector' = 'kafka',
  'topic' = 'eu-otlp_metrics',
  'properties.group.id' = 'slacktide-ingest-metrics',
  'properties.isolation.level' = 'read_committed',
  'properties.auto.offset.reset' = 'earliest',
  'scan.startup.mode' = 'group-offsets',
  'format' = 'raw',
  'properties.bootstrap.servers' = 'kafka.example:9092'
);

CREATE TEMPORARY TABLE measurements (series_id STRING, measurement BYTES, headers MAP<STRING, BYTES> METADATA) WITH (
  'connector' = 'kafka',
  'topic' = 'eu-measurements',
  'sink.delivery-guarantee' = 'exactly-once',
  'sink.transactional-id-prefix' = 'slacktide-ingest-metrics-measurements',
  'properties.transaction.timeout.ms' = '600000',
  'properties.max.request.size' = '33554432',
  'properties.compression.type' = 'lz4',
  'properties.linger.ms' = '5',
  'key.format' = 'raw',
  'key.fields' = 'series_id',
  'value.format' = 'raw',
  'value.fields-include' = 'EXCEPT_KEY',
  'properties.bootstrap.servers' = 'kafka.example:9092'
);

CREATE TEMPORARY TABLE dead_letters (topic STRING, letter BYTES) WITH (
  'connector' = 'kafka',
  'topic' = 'eu-dead_letters',
  'sink.delivery-guarantee' = 'exactly-once',
  'sink.transactional-id-prefix' = 'slacktide-ingest-metrics-dead_letters',
  'properties.transaction.timeout.ms' = '600000',
  'properties.max.request.size' = '33554432',
  'properties.compression.type' = 'lz4',
  'properties.linger.ms' = '5',
  'key.format' = 'raw',
  'key.fields' = 'topic',
  'value.format' = 'raw',
  'value.fields-include' = 'EXCEPT_KEY',
  'properties.bootstrap.servers' = 'kafka.example:9092'
);

CREATE TEMPORARY TABLE books (job STRING, kind STRING, `count` BIGINT, window_end_ms BIGINT) WITH (
  'connector' = 'kafka',
  'topic' = 'eu-books',
  'sink.delivery-guarantee' = 'exactly-once',
  'sink.transactional-id-prefix' = 'slacktide-ingest-metrics-books',
  'properties.transaction.timeout.ms' = '600000',
  'properties.max.request.size' = '33554432',
  'properties.compression.type' = 'lz4',
  'properties.linger.ms' = '5',
  'key.format' = 'raw',
  'key.fields' = 'job',
  'value.format' = 'json',
  'value.fields-include' = 'ALL',
  'properties.bootstrap.servers' = 'kafka.example:9092'
);

CREATE TEMPORARY VIEW decoded AS
SELECT topic, `partition`, `offset`, timestamp_ms, metric_lines(message, timestamp_ms) AS lines
FROM (
  SELECT *, TIMESTAMPDIFF(SECOND, TO_TIMESTAMP_LTZ(0, 3), `timestamp`) * CAST(1000 AS BIGINT)
    + EXTRACT(MILLISECOND FROM `timestamp`) AS timestamp_ms
  FROM otlp_metrics
);

CREATE TEMPORARY VIEW lines AS
SELECT line, topic, `partition`, `offset`, timestamp_ms
FROM decoded CROSS JOIN UNNEST(SPLIT(lines, CHR(10))) AS split (line);

INSERT INTO measurements
SELECT record_key, record, MAP['event_time_ms', CAST(JSON_VALUE(CAST(record AS STRING), '$.event_time_ms') AS BYTES)]
FROM outcomes WHERE kind = 'measurements';

INSERT INTO dead_letters
SELECT record_key, record FROM outcomes WHERE kind IN ('dead', 'late');

INSERT INTO books
SELECT 'ingest-metrics', kind, SUM(n), UNIX_TIMESTAMP(CAST(window_end AS STRING)) * 1000
FROM TUMBLE(TABLE outcomes, DESCRIPTOR(proctime), INTERVAL '2' SECOND)
GROUP BY kind, window_start, window_end
HAVING SUM(n) <> 0;
