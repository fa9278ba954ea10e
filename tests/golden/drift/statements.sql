CREATE TEMPORARY TABLE requests (
  `event_time_ms` BIGINT,
  `service_name` STRING,
  `model` STRING,
  `input_tokens` BIGINT,
  `time_to_first_token_seconds` DOUBLE,
  `attributes` MAP<STRING, DOUBLE>,
  `partition` INT NOT NULL METADATA VIRTUAL,
  `offset` BIGINT NOT NULL METADATA VIRTUAL,
  `timestamp` TIMESTAMP_LTZ(3) NOT NULL METADATA VIRTUAL,
  proctime AS PROCTIME(),
  event_time AS COALESCE(TO_TIMESTAMP_LTZ(CASE WHEN event_time_ms >= 0 AND TO_TIMESTAMP_LTZ(event_time_ms, 3) <= `timestamp` + INTERVAL '5' MINUTE THEN event_time_ms END, 3), TO_TIMESTAMP_LTZ(0, 3)),
  WATERMARK FOR event_time AS event_time - INTERVAL '0 00:00:02.500' DAY TO SECOND(3)
) WITH (
  'connector' = 'kafka',
  'topic' = 'eu-requests',
  'properties.group.id' = 'slacktide-drift',
  'properties.isolation.level' = 'read_committed',
  'properties.auto.offset.reset' = 'earliest',
  'scan.startup.mode' = 'group-offsets',
  'format' = 'json',
  'json.ignore-parse-errors' = 'true',
  'scan.watermark.idle-timeout' = '60000 ms',
  'properties.bootstrap.servers' = 'kafka.example:9092'
);

CREATE TEMPORARY TABLE verdicts (series_key STRING, verdict STRING) WITH (
  'connector' = 'kafka',
  'topic' = 'eu-verdicts',
  'sink.delivery-guarantee' = 'exactly-once',
  'sink.transactional-id-prefix' = 'slacktide-drift-verdicts',
  'properties.transaction.timeout.ms' = '600000',
  'properties.max.request.size' = '33554432',
  'properties.compression.type' = 'lz4',
  'properties.linger.ms' = '5',
  'key.format' = 'raw',
  'key.fields' = 'series_key',
  'value.format' = 'raw',
  'value.fields-include' = 'EXCEPT_KEY',
  'properties.bootstrap.servers' = 'kafka.example:9092'
);

CREATE TEMPORARY TABLE dead_letters (topic STRING, letter BYTES) WITH (
  'connector' = 'kafka',
  'topic' = 'eu-dead_letters',
  'sink.delivery-guarantee' = 'exactly-once',
  'sink.transactional-id-prefix' = 'slacktide-drift-dead_letters',
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

CREATE TEMPORARY TABLE books (job STRING, kind STRING, monitor STRING, `count` BIGINT, window_end_ms BIGINT) WITH (
  'connector' = 'kafka',
  'topic' = 'eu-books',
  'sink.delivery-guarantee' = 'exactly-once',
  'sink.transactional-id-prefix' = 'slacktide-drift-books',
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

CREATE TEMPORARY VIEW placed AS
SELECT `service_name`, `model`, `input_tokens`, attributes['temperature'] AS `attributes.temperature`, `time_to_first_token_seconds`, `partition`, `offset`, event_time_ms, CASE WHEN event_time_ms >= 0 AND TO_TIMESTAMP_LTZ(event_time_ms, 3) <= `timestamp` + INTERVAL '5' MINUTE THEN event_time_ms END AS usable_ms, event_time, proctime,
  MAX(CASE WHEN event_time_ms >= 0 AND TO_TIMESTAMP_LTZ(event_time_ms, 3) <= `timestamp` + INTERVAL '5' MINUTE THEN event_time_ms END) OVER arrival AS newest_ms,
  LAG(`offset`) OVER arrival AS previous_offset
FROM requests
WINDOW arrival AS (PARTITION BY `partition` ORDER BY proctime);

CREATE TEMPORARY VIEW lost AS
SELECT `partition`, COALESCE(previous_offset, -1) AS previous_offset, `offset`,
  CASE
    WHEN usable_ms IS NULL AND event_time_ms >= 0 THEN 'clock_skew'
    WHEN usable_ms IS NULL THEN 'bad_time'
    WHEN ((COALESCE(usable_ms - MOD(usable_ms, 1500) + 1499 <= newest_ms - 2500, FALSE) OR COALESCE(TO_TIMESTAMP_LTZ(usable_ms - MOD(usable_ms, 1500) + 1499, 3) <= CURRENT_WATERMARK(event_time), FALSE)) OR (COALESCE(usable_ms - MOD(usable_ms, 20000) + 19999 <= newest_ms - 2500, FALSE) OR COALESCE(TO_TIMESTAMP_LTZ(usable_ms - MOD(usable_ms, 20000) + 19999, 3) <= CURRENT_WATERMARK(event_time), FALSE))) THEN 'late'
  END AS reason,
  CASE
    WHEN usable_ms IS NULL AND event_time_ms >= 0 THEN
      'event_time_ms is more than 5 minutes after the Kafka timestamp'
    WHEN usable_ms IS NULL THEN 'event_time_ms is missing, negative or no integer'
    WHEN ((COALESCE(usable_ms - MOD(usable_ms, 1500) + 1499 <= newest_ms - 2500, FALSE) OR COALESCE(TO_TIMESTAMP_LTZ(usable_ms - MOD(usable_ms, 1500) + 1499, 3) <= CURRENT_WATERMARK(event_time), FALSE)) OR (COALESCE(usable_ms - MOD(usable_ms, 20000) + 19999 <= newest_ms - 2500, FALSE) OR COALESCE(TO_TIMESTAMP_LTZ(usable_ms - MOD(usable_ms, 20000) + 19999, 3) <= CURRENT_WATERMARK(event_time), FALSE))) THEN CONCAT('its slice had closed for ', CONCAT_WS(', ', CASE WHEN (COALESCE(usable_ms - MOD(usable_ms, 20000) + 19999 <= newest_ms - 2500, FALSE) OR COALESCE(TO_TIMESTAMP_LTZ(usable_ms - MOD(usable_ms, 20000) + 19999, 3) <= CURRENT_WATERMARK(event_time), FALSE)) THEN 'chat' END, CASE WHEN (COALESCE(usable_ms - MOD(usable_ms, 1500) + 1499 <= newest_ms - 2500, FALSE) OR COALESCE(TO_TIMESTAMP_LTZ(usable_ms - MOD(usable_ms, 1500) + 1499, 3) <= CURRENT_WATERMARK(event_time), FALSE)) THEN 'it''s all; {one}' END))
  END AS detail,
  CAST(event_time_ms AS STRING) AS event_time_ms
FROM placed
WHERE usable_ms IS NULL OR ((COALESCE(usable_ms - MOD(usable_ms, 1500) + 1499 <= newest_ms - 2500, FALSE) OR COALESCE(TO_TIMESTAMP_LTZ(usable_ms - MOD(usable_ms, 1500) + 1499, 3) <= CURRENT_WATERMARK(event_time), FALSE)) OR (COALESCE(usable_ms - MOD(usable_ms, 20000) + 19999 <= newest_ms - 2500, FALSE) OR COALESCE(TO_TIMESTAMP_LTZ(usable_ms - MOD(usable_ms, 20000) + 19999, 3) <= CURRENT_WATERMARK(event_time), FALSE))) OR previous_offset IS NULL OR `offset` > previous_offset + 1;

CREATE TEMPORARY VIEW fetched AS
SELECT reason, fetch_lost(`partition`, previous_offset, `offset`, reason, detail, event_time_ms) AS letters
FROM lost;

CREATE TEMPORARY VIEW on_time_0 AS
SELECT COALESCE(`service_name`, '') AS `service_name`, COALESCE(`model`, '') AS `model`, MOD(`offset`, 1) AS shard, CAST(`input_tokens` AS DOUBLE) AS v0, CAST(`attributes.temperature` AS DOUBLE) AS v1, event_time
FROM placed
WHERE usable_ms IS NOT NULL AND NOT (COALESCE(usable_ms - MOD(usable_ms, 20000) + 19999 <= newest_ms - 2500, FALSE) OR COALESCE(TO_TIMESTAMP_LTZ(usable_ms - MOD(usable_ms, 20000) + 19999, 3) <= CURRENT_WATERMARK(event_time), FALSE));

CREATE TEMPORARY VIEW slices_0 AS
SELECT `service_name`, `model`, COUNT(*) AS n, ARRAY_AGG(v0) AS v0, ARRAY_AGG(v1) AS v1, window_time
FROM TUMBLE(TABLE on_time_0, DESCRIPTOR(event_time), INTERVAL '0 00:00:20.000' DAY TO SECOND(3))
GROUP BY `service_name`, `model`, shard, window_start, window_end, window_time;

CREATE TEMPORARY VIEW sketches_0 AS
SELECT `service_name`, `model`, sketch_0_0(v0) AS s0, sketch_0_1(v1) AS s1, window_time
FROM slices_0;

CREATE TEMPORARY VIEW windows_0 AS
SELECT `service_name`, `model`, ARRAY_AGG(s0) AS s0, ARRAY_AGG(s1) AS s1, window_end
FROM HOP(TABLE sketches_0, DESCRIPTOR(window_time), INTERVAL '0 00:00:20.000' DAY TO SECOND(3), INTERVAL '0 00:01:00.000' DAY TO SECOND(3))
GROUP BY `service_name`, `model`, window_start, window_end;

CREATE TEMPORARY VIEW verdicts_0 AS
SELECT verdict
FROM (SELECT judge_0(window_end, `service_name`, `model`, s0, s1) AS verdicts FROM windows_0)
CROSS JOIN UNNEST(verdicts) AS unnested (verdict);

CREATE TEMPORARY VIEW sliced_0 AS
SELECT SUM(n) AS n, window_end
FROM TUMBLE(TABLE slices_0, DESCRIPTOR(window_time), INTERVAL '0 00:00:20.000' DAY TO SECOND(3))
GROUP BY window_start, window_end;

CREATE TEMPORARY VIEW on_time_1 AS
SELECT MOD(`offset`, 8) AS shard, CAST(`time_to_first_token_seconds` AS DOUBLE) AS v0, CAST(`attributes.temperature` AS DOUBLE) AS v1, event_time
FROM placed
WHERE usable_ms IS NOT NULL AND NOT (COALESCE(usable_ms - MOD(usable_ms, 1500) + 1499 <= newest_ms - 2500, FALSE) OR COALESCE(TO_TIMESTAMP_LTZ(usable_ms - MOD(usable_ms, 1500) + 1499, 3) <= CURRENT_WATERMARK(event_time), FALSE));

CREATE TEMPORARY VIEW slices_1 AS
SELECT COUNT(*) AS n, ARRAY_AGG(v0) AS v0, ARRAY_AGG(v1) AS v1, window_time
FROM TUMBLE(TABLE on_time_1, DESCRIPTOR(event_time), INTERVAL '0 00:00:01.500' DAY TO SECOND(3))
GROUP BY shard, window_start, window_end, window_time;

CREATE TEMPORARY VIEW sketches_1 AS
SELECT sketch_1_0(v0) AS s0, sketch_1_1(v1) AS s1, window_time
FROM slices_1;

CREATE TEMPORARY VIEW windows_1 AS
SELECT ARRAY_AGG(s0) AS s0, ARRAY_AGG(s1) AS s1, window_end
FROM HOP(TABLE sketches_1, DESCRIPTOR(window_time), INTERVAL '0 00:00:01.500' DAY TO SECOND(3), INTERVAL '1 00:00:00.000' DAY TO SECOND(3))
GROUP BY window_start, window_end;

CREATE TEMPORARY VIEW verdicts_1 AS
SELECT verdict
FROM (SELECT judge_1(window_end, s0, s1) AS verdicts FROM windows_1)
CROSS JOIN UNNEST(verdicts) AS unnested (verdict);

CREATE TEMPORARY VIEW sliced_1 AS
SELECT SUM(n) AS n, window_end
FROM TUMBLE(TABLE slices_1, DESCRIPTOR(window_time), INTERVAL '0 00:00:01.500' DAY TO SECOND(3))
GROUP BY window_start, window_end;

CREATE TEMPORARY VIEW kinds AS
SELECT `partition`, usable_ms IS NULL AS is_dead, (COALESCE(usable_ms - MOD(usable_ms, 1500) + 1499 <= newest_ms - 2500, FALSE) OR COALESCE(TO_TIMESTAMP_LTZ(usable_ms - MOD(usable_ms, 1500) + 1499, 3) <= CURRENT_WATERMARK(event_time), FALSE)) AS is_late_1500, (COALESCE(usable_ms - MOD(usable_ms, 20000) + 19999 <= newest_ms - 2500, FALSE) OR COALESCE(TO_TIMESTAMP_LTZ(usable_ms - MOD(usable_ms, 20000) + 19999, 3) <= CURRENT_WATERMARK(event_time), FALSE)) AS is_late_20000, proctime
FROM placed;

CREATE TEMPORARY VIEW counted AS
SELECT window_end, COUNT(*) AS n_read, COUNT(*) FILTER (WHERE is_dead) AS n_dead, COUNT(*) FILTER (WHERE is_late_1500) AS n_late_1500, COUNT(*) FILTER (WHERE is_late_20000) AS n_late_20000
FROM TUMBLE(TABLE kinds, DESCRIPTOR(proctime), INTERVAL '2' SECOND)
GROUP BY `partition`, window_start, window_end;

CREATE TEMPORARY VIEW skipped AS
SELECT CAST(CARDINALITY(letters) - CASE WHEN reason IS NULL THEN 0 ELSE 1 END AS BIGINT) AS n_skipped
FROM fetched;

INSERT INTO verdicts
SELECT JSON_VALUE(verdict, '$.series_key'), verdict
FROM (SELECT verdict FROM verdicts_0 UNION ALL SELECT verdict FROM verdicts_1);

INSERT INTO dead_letters
SELECT 'eu-requests', letter
FROM fetched CROSS JOIN UNNEST(letters) AS unnested (letter);

INSERT INTO books
SELECT 'drift', kind, monitor, n, UNIX_TIMESTAMP(CAST(window_end AS STRING)) * 1000
FROM counted CROSS JOIN UNNEST(ARRAY[ROW('read', 'chat', n_read), ROW('dead', 'chat', n_dead), ROW('late', 'chat', n_late_20000), ROW('read', 'it''s all; {one}', n_read), ROW('dead', 'it''s all; {one}', n_dead), ROW('late', 'it''s all; {one}', n_late_1500)]) AS unnested (kind, monitor, n)
WHERE n > 0
UNION ALL
SELECT 'drift', kind, monitor, n, UNIX_TIMESTAMP() * 1000
FROM skipped CROSS JOIN UNNEST(ARRAY[ROW('read', 'chat', n_skipped), ROW('dead', 'chat', n_skipped), ROW('read', 'it''s all; {one}', n_skipped), ROW('dead', 'it''s all; {one}', n_skipped)]) AS unnested (kind, monitor, n)
WHERE n > 0
UNION ALL
SELECT 'drift', 'sliced', 'chat', n, UNIX_TIMESTAMP(CAST(window_end AS STRING)) * 1000 FROM sliced_0
UNION ALL
SELECT 'drift', 'sliced', 'it''s all; {one}', n, UNIX_TIMESTAMP(CAST(window_end AS STRING)) * 1000 FROM sliced_1;
