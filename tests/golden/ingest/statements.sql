CREATE TEMPORARY TABLE otlp_spans (
  message BYTES,
  topic STRING NOT NULL METADATA VIRTUAL,
  `partition` INT NOT NULL METADATA VIRTUAL,
  `offset` BIGINT NOT NULL METADATA VIRTUAL,
  `timestamp` TIMESTAMP_LTZ(3) NOT NULL METADATA VIRTUAL,
  WATERMARK FOR `timestamp` AS `timestamp` - INTERVAL '5' SECOND
) WITH (
  'connector' = 'kafka',
  'topic' = 'eu-otlp_spans',
  'properties.group.id' = 'slacktide-ingest',
  'properties.isolation.level' = 'read_committed',
  'properties.auto.offset.reset' = 'earliest',
  'scan.startup.mode' = 'group-offsets',
  'format' = 'raw',
  'properties.bootstrap.servers' = 'kafka.example:9092'
);

CREATE TEMPORARY TABLE requests (trace_id STRING, request STRING, headers MAP<STRING, BYTES> METADATA) WITH (
  'connector' = 'kafka',
  'topic' = 'eu-requests',
  'sink.delivery-guarantee' = 'exactly-once',
  'sink.transactional-id-prefix' = 'slacktide-ingest-requests',
  'properties.transaction.timeout.ms' = '600000',
  'properties.max.request.size' = '33554432',
  'properties.compression.type' = 'lz4',
  'properties.linger.ms' = '5',
  'key.format' = 'raw',
  'key.fields' = 'trace_id',
  'value.format' = 'raw',
  'value.fields-include' = 'EXCEPT_KEY',
  'properties.bootstrap.servers' = 'kafka.example:9092'
);

CREATE TEMPORARY TABLE dead_letters (topic STRING, letter BYTES) WITH (
  'connector' = 'kafka',
  'topic' = 'eu-dead_letters',
  'sink.delivery-guarantee' = 'exactly-once',
  'sink.transactional-id-prefix' = 'slacktide-ingest-dead_letters',
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
  'sink.transactional-id-prefix' = 'slacktide-ingest-books',
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
SELECT topic, `partition`, `offset`, `timestamp` AS arrived, timestamp_ms, decode_spans(message, timestamp_ms) AS lines
FROM (
  SELECT *, TIMESTAMPDIFF(SECOND, TO_TIMESTAMP_LTZ(0, 3), `timestamp`) * CAST(1000 AS BIGINT)
    + EXTRACT(MILLISECOND FROM `timestamp`) AS timestamp_ms
  FROM otlp_spans
);

CREATE TEMPORARY VIEW lines AS
SELECT topic, `partition`, `offset`, arrived, timestamp_ms, line, PROCTIME() AS proctime, SUBSTRING(line, 1, 1) AS line_kind,
  CASE WHEN SUBSTRING(line, 1, 1) IN ('R', 'W') THEN TRY_CAST(SUBSTRING(line, 50, 15) AS BIGINT) END AS event_time_ms
FROM decoded CROSS JOIN UNNEST(SPLIT(lines, CHR(10))) AS split (line);

CREATE TEMPORARY VIEW judging AS
SELECT topic, `partition`, `offset`, arrived, timestamp_ms, line, line_kind,
  line_kind IN ('R', 'W') AND event_time_ms < newest_ms - 600000 AS is_late
FROM (
  SELECT *, MAX(event_time_ms) OVER (
    PARTITION BY `partition` ORDER BY proctime ROWS BETWEEN UNBOUNDED PRECEDING AND CURRENT ROW) AS newest_ms
  FROM lines
);

CREATE TEMPORARY VIEW numbering AS
SELECT line, line_kind, kafka_time AS arrived, timestamp_ms, COUNT(*) OVER (
  PARTITION BY SUBSTRING(line, 2, 48) ORDER BY proctime ROWS BETWEEN UNBOUNDED PRECEDING AND CURRENT ROW) AS copy_number
FROM judged WHERE line_kind IN ('R', 'W') AND NOT is_late;

CREATE TEMPORARY VIEW waiting AS
SELECT SUBSTRING(line, 2, 32) AS trace_id, timestamp_ms, line
FROM (
  SELECT timestamp_ms, line FROM numbered WHERE line_kind = 'W' AND copy_number = 1
  UNION ALL
  SELECT timestamp_ms, line FROM judged WHERE line_kind = 'C'
);

CREATE TEMPORARY VIEW counts AS
SELECT proctime, 'spans' AS kind, CAST(JSON_VALUE(SUBSTRING(line, 2), '$.spans') AS BIGINT) AS n FROM judged WHERE line_kind = 'B'
UNION ALL
SELECT proctime, 'child', CAST(JSON_VALUE(SUBSTRING(line, 2), '$.child') AS BIGINT) FROM judged WHERE line_kind = 'B'
UNION ALL
SELECT proctime, 'dead', CAST(1 AS BIGINT) FROM judged WHERE line_kind = 'D'
UNION ALL
SELECT proctime, 'late', CAST(1 AS BIGINT) FROM judged WHERE is_late
UNION ALL
SELECT proctime, CASE WHEN copy_number > 1 THEN 'duplicate' WHEN line_kind = 'R' THEN 'requests' ELSE 'waiting' END,
  CAST(1 AS BIGINT) FROM numbered
UNION ALL
SELECT proctime, 'waiting', CAST(1 AS BIGINT) FROM judged WHERE line_kind = 'C'
UNION ALL
SELECT proctime, 'waiting', -n FROM joined
UNION ALL
SELECT proctime, kind, n FROM joined;

INSERT INTO requests
SELECT SUBSTRING(line, 2, 32), SUBSTRING(line, 447 + labels_length),
  MAP['event_time_ms', CAST(CAST(CAST(SUBSTRING(line, 50, 15) AS BIGINT) AS STRING) AS BYTES),
    'numbers_v1', UNHEX(SUBSTRING(line, 73, 368)),
    'labels_v1', CAST(SUBSTRING(line, 447, labels_length) AS BYTES)]
FROM (
  SELECT line, CAST(SUBSTRING(line, 441, 6) AS INT) AS labels_length
  FROM numbered WHERE line_kind = 'R' AND copy_number = 1
)
UNION ALL
SELECT trace_id, request, headers FROM joined WHERE kind = 'requests';

INSERT INTO dead_letters
SELECT topic, dead_letter(line, topic, `partition`, `offset`, timestamp_ms)
FROM judged WHERE line_kind = 'D' OR is_late;

INSERT INTO books
SELECT 'ingest', kind, SUM(n), UNIX_TIMESTAMP(CAST(window_end AS STRING)) * 1000
FROM TUMBLE(TABLE counts, DESCRIPTOR(proctime), INTERVAL '2' SECOND)
GROUP BY kind, window_start, window_end
HAVING SUM(n) <> 0;
