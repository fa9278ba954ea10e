CREATE TEMPORARY TABLE requests (
  key_text STRING,
  request BYTES,
  `partition` INT NOT NULL METADATA VIRTUAL,
  `offset` BIGINT NOT NULL METADATA VIRTUAL,
  `timestamp` TIMESTAMP_LTZ(3) NOT NULL METADATA VIRTUAL,
  headers MAP<STRING, BYTES> METADATA VIRTUAL,
  proctime AS PROCTIME()
) WITH (
  'connector' = 'kafka',
  'topic' = 'eu-requests',
  'properties.group.id' = 'slacktide-score',
  'properties.isolation.level' = 'read_committed',
  'properties.auto.offset.reset' = 'earliest',
  'scan.startup.mode' = 'group-offsets',
  'key.format' = 'raw',
  'key.fields' = 'key_text',
  'value.format' = 'raw',
  'value.fields-include' = 'EXCEPT_KEY',
  'properties.bootstrap.servers' = 'kafka.example:9092'
);

CREATE TEMPORARY TABLE scores (trace_id STRING, score BYTES) WITH (
  'connector' = 'kafka',
  'topic' = 'eu-scores',
  'sink.delivery-guarantee' = 'exactly-once',
  'sink.transactional-id-prefix' = 'slacktide-score-scores',
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

CREATE TEMPORARY TABLE decisions (subject STRING, decision BYTES) WITH (
  'connector' = 'kafka',
  'topic' = 'eu-decisions',
  'sink.delivery-guarantee' = 'exactly-once',
  'sink.transactional-id-prefix' = 'slacktide-score-decisions',
  'properties.transaction.timeout.ms' = '600000',
  'properties.max.request.size' = '33554432',
  'properties.compression.type' = 'lz4',
  'properties.linger.ms' = '5',
  'key.format' = 'raw',
  'key.fields' = 'subject',
  'value.format' = 'raw',
  'value.fields-include' = 'EXCEPT_KEY',
  'properties.bootstrap.servers' = 'kafka.example:9092'
);

CREATE TEMPORARY TABLE dead_letters (topic STRING, letter BYTES) WITH (
  'connector' = 'kafka',
  'topic' = 'eu-dead_letters',
  'sink.delivery-guarantee' = 'exactly-once',
  'sink.transactional-id-prefix' = 'slacktide-score-dead_letters',
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
  'sink.transactional-id-prefix' = 'slacktide-score-books',
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

CREATE TEMPORARY VIEW identified AS
SELECT request, `partition`, `offset`, `timestamp`, headers, proctime,
  CASE WHEN key_text IS NULL THEN COALESCE(REGEXP_EXTRACT(CAST(request AS STRING), '"trace_id"\s*:\s*"([0-9a-f]{32})"', 1), '') ELSE key_text END AS trace_id
FROM requests;

CREATE TEMPORARY VIEW hashed AS
SELECT *, SUBSTRING(SHA256(trace_id), 1, 13) AS digits
FROM identified;

CREATE TEMPORARY VIEW placed AS
SELECT *, COUNT(*) OVER (PARTITION BY `partition`, REGEXP_EXTRACT(CAST(request AS STRING), '"service_name"\s*:\s*"[^"]*"(?:,"provider":"[^"]*")?(?:,"model":"[^"]*")?', 0), FLOOR((CASE WHEN headers['event_time_ms'] IS NOT NULL THEN TRY_CAST(CAST(headers['event_time_ms'] AS STRING) AS BIGINT) ELSE CAST(REGEXP_EXTRACT(CAST(request AS STRING), '"event_time_ms"\s*:\s*([0-9]{1,15})\s*[,}]', 1) AS BIGINT) END) / 60000)
    ORDER BY proctime ROWS BETWEEN UNBOUNDED PRECEDING AND CURRENT ROW) AS place
FROM hashed;

CREATE TEMPORARY VIEW judged AS
SELECT *, digits < '4000000000000' OR place <= 4 OR digits < LPAD(LOWER(HEX(CAST(CEIL(4e0 / place * 4503599627370496e0) AS BIGINT))), 13, '0') AS chosen
FROM placed;

CREATE TEMPORARY VIEW sampling AS
SELECT chosen, CASE WHEN chosen THEN request END AS request, CASE WHEN chosen THEN trace_id END AS trace_id, place,
  `partition`, `offset`, TIMESTAMPDIFF(SECOND, TO_TIMESTAMP_LTZ(0, 3), `timestamp`) * CAST(1000 AS BIGINT)
    + EXTRACT(MILLISECOND FROM `timestamp`) AS timestamp_ms
FROM judged;

CREATE TEMPORARY VIEW scoring AS
SELECT trace_id, score_requests(request, trace_id, place, `partition`, `offset`, timestamp_ms) AS found
FROM sampled
WHERE chosen;

CREATE TEMPORARY VIEW scored_once AS
SELECT trace_id, found.kind, found.scores, found.decisions, found.letters
FROM scoring;

CREATE TEMPORARY VIEW counts AS
SELECT proctime, 'read' AS kind FROM sampled
UNION ALL
SELECT proctime, 'unsampled' FROM sampled WHERE NOT chosen
UNION ALL
SELECT proctime, kind FROM scored;

INSERT INTO scores
SELECT trace_id, score
FROM scored CROSS JOIN UNNEST(scores) AS unnested (score);

INSERT INTO decisions
SELECT trace_id, decision
FROM scored CROSS JOIN UNNEST(decisions) AS unnested (decision);

INSERT INTO dead_letters
SELECT 'eu-requests', letter
FROM scored CROSS JOIN UNNEST(letters) AS unnested (letter);

INSERT INTO books
SELECT 'score', kind, COUNT(*), UNIX_TIMESTAMP(CAST(window_end AS STRING)) * 1000
FROM TUMBLE(TABLE counts, DESCRIPTOR(proctime), INTERVAL '2' SECOND)
GROUP BY kind, window_start, window_end;
