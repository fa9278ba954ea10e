CREATE TEMPORARY TABLE requests (
  request BYTES,
  `partition` INT NOT NULL METADATA VIRTUAL,
  `offset` BIGINT NOT NULL METADATA VIRTUAL,
  `timestamp` TIMESTAMP_LTZ(3) NOT NULL METADATA VIRTUAL,
  headers MAP<STRING, BYTES> METADATA VIRTUAL,
  proctime AS PROCTIME(),
  event_time AS IFNULL(TO_TIMESTAMP_LTZ(MOD(CASE WHEN headers['event_time_ms'] IS NOT NULL THEN GREATEST(TRY_CAST(CAST(headers['event_time_ms'] AS STRING) AS BIGINT), 0) ELSE CAST(REGEXP_EXTRACT(CAST(request AS STRING), '"event_time_ms"\s*:\s*([0-9]{1,15})\s*[,}]', 1) AS BIGINT) END, (CAST(TIMESTAMPDIFF(SECOND, TO_TIMESTAMP_LTZ(1577836800000, 3), `timestamp`) AS BIGINT) + 1577837101) * 1000), 3), TO_TIMESTAMP_LTZ(0, 3)),
  WATERMARK FOR event_time AS event_time - INTERVAL '0 00:00:02.500' DAY TO SECOND(3)
) WITH (
  'connector' = 'kafka',
  'topic' = 'eu-requests',
  'properties.group.id' = 'slacktide-drift',
  'properties.isolation.level' = 'read_committed',
  'properties.auto.offset.reset' = 'earliest',
  'scan.startup.mode' = 'group-offsets',
  'format' = 'raw',
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
SELECT request, `partition`, `offset`, `timestamp`, event_time, MAX(event_time) OVER (
  PARTITION BY `partition` ORDER BY proctime ROWS BETWEEN UNBOUNDED PRECEDING AND CURRENT ROW) AS newest_time
FROM requests;

CREATE TEMPORARY VIEW taking AS
SELECT `offset`, event_time,
  take_requests(request, `partition`, `offset`,
    CAST(`timestamp` AS TIMESTAMP(3)),
    CAST(event_time AS TIMESTAMP(3)),
    CAST(GREATEST(newest_time - INTERVAL '0 00:00:02.500' DAY TO SECOND(3), IFNULL(CURRENT_WATERMARK(event_time), TO_TIMESTAMP_LTZ(0, 3))) AS TIMESTAMP(3))) AS found
FROM placed
WHERE newest_time >= TO_TIMESTAMP_LTZ(-86400000, 3);

CREATE TEMPORARY VIEW taken_once AS
SELECT `offset`, event_time, CAST(found[1] AS ARRAY<STRING>) AS series, found[2] AS packets,
  CAST(CAST(found[3] AS ARRAY<STRING>) AS ARRAY<BIGINT>) AS sizes, found[4] AS letters,
  CAST(CAST(found[5] AS ARRAY<STRING>) AS ARRAY<BIGINT>) AS counts
FROM taking
WHERE found IS NOT NULL;

CREATE TEMPORARY VIEW packets_20000 AS
SELECT 0 AS monitor, series[1] AS series, packets[1] AS packet, sizes[1] AS n, MOD(`offset`, 1) AS shard, event_time
FROM taken WHERE sizes[1] > 0;

CREATE TEMPORARY VIEW slices_20000 AS
SELECT monitor, series, SUM(n) AS n, ARRAY_AGG(packet) AS packets, window_end AS slice_end, window_time
FROM TUMBLE(TABLE packets_20000, DESCRIPTOR(event_time), INTERVAL '0 00:00:20.000' DAY TO SECOND(3))
GROUP BY monitor, series, shard, window_start, window_end, window_time;

CREATE TEMPORARY VIEW sketches_20000 AS
SELECT monitor, series, sketch_slices(monitor, packets) AS sketches, window_time
FROM slices_20000;

CREATE TEMPORARY VIEW sliced_20000 AS
SELECT monitor, SUM(n) AS n, window_end
FROM TUMBLE(TABLE slices_20000, DESCRIPTOR(window_time), INTERVAL '0 00:00:20.000' DAY TO SECOND(3))
GROUP BY monitor, window_start, window_end;

CREATE TEMPORARY VIEW in_20000_60000 AS
SELECT monitor, series, sketches, window_time
FROM sketches_20000
WHERE monitor IN (0);

CREATE TEMPORARY VIEW windows_20000_60000 AS
SELECT monitor, series, ARRAY_AGG(sketches) AS sketches, window_end
FROM HOP(TABLE in_20000_60000, DESCRIPTOR(window_time), INTERVAL '0 00:00:20.000' DAY TO SECOND(3), INTERVAL '0 00:01:00.000' DAY TO SECOND(3))
GROUP BY monitor, series, window_start, window_end;

CREATE TEMPORARY VIEW verdicts_20000_60000 AS
SELECT verdict
FROM (SELECT judge_windows(monitor, window_end, series, sketches) AS verdicts FROM windows_20000_60000)
CROSS JOIN UNNEST(verdicts) AS unnested (verdict);

CREATE TEMPORARY VIEW packets_1500 AS
SELECT 1 AS monitor, series[2] AS series, packets[2] AS packet, sizes[2] AS n, MOD(`offset`, 8) AS shard, event_time
FROM taken WHERE sizes[2] > 0;

CREATE TEMPORARY VIEW slices_1500 AS
SELECT monitor, series, SUM(n) AS n, ARRAY_AGG(packet) AS packets, window_end AS slice_end, window_time
FROM TUMBLE(TABLE packets_1500, DESCRIPTOR(event_time), INTERVAL '0 00:00:01.500' DAY TO SECOND(3))
GROUP BY monitor, series, shard, window_start, window_end, window_time;

CREATE TEMPORARY VIEW sketches_1500 AS
SELECT monitor, series, sketch_slices(monitor, packets) AS sketches, window_time
FROM slices_1500;

CREATE TEMPORARY VIEW sliced_1500 AS
SELECT monitor, SUM(n) AS n, window_end
FROM TUMBLE(TABLE slices_1500, DESCRIPTOR(window_time), INTERVAL '0 00:00:01.500' DAY TO SECOND(3))
GROUP BY monitor, window_start, window_end;

CREATE TEMPORARY VIEW in_1500_86400000 AS
SELECT monitor, series, sketches, window_time
FROM sketches_1500
WHERE monitor IN (1);

CREATE TEMPORARY VIEW windows_1500_86400000 AS
SELECT monitor, series, ARRAY_AGG(sketches) AS sketches, window_end
FROM HOP(TABLE in_1500_86400000, DESCRIPTOR(window_time), INTERVAL '0 00:00:01.500' DAY TO SECOND(3), INTERVAL '1 00:00:00.000' DAY TO SECOND(3))
GROUP BY monitor, series, window_start, window_end;

CREATE TEMPORARY VIEW verdicts_1500_86400000 AS
SELECT verdict
FROM (SELECT judge_windows(monitor, window_end, series, sketches) AS verdicts FROM windows_1500_86400000)
CROSS JOIN UNNEST(verdicts) AS unnested (verdict);

CREATE TEMPORARY VIEW read_counts AS
SELECT window_end, SUM(counts[1]) AS n_read, SUM(counts[2]) AS n_dead, SUM(counts[3]) AS n_late_0, SUM(counts[4]) AS n_late_1
FROM TUMBLE(TABLE taken, DESCRIPTOR(proctime), INTERVAL '2' SECOND)
WHERE counts IS NOT NULL
GROUP BY window_start, window_end;

INSERT INTO verdicts
SELECT JSON_VALUE(verdict, '$.series_key'), verdict
FROM (SELECT verdict FROM verdicts_20000_60000 UNION ALL SELECT verdict FROM verdicts_1500_86400000);

INSERT INTO dead_letters
SELECT 'eu-requests', letter
FROM taken CROSS JOIN UNNEST(letters) AS unnested (letter);

INSERT INTO books
SELECT 'drift', kind, monitor, n, UNIX_TIMESTAMP(CAST(window_end AS STRING)) * 1000
FROM read_counts CROSS JOIN UNNEST(ARRAY[ROW('read', 'chat', n_read), ROW('dead', 'chat', n_dead), ROW('late', 'chat', n_late_0), ROW('read', 'it''s all; {one}', n_read), ROW('dead', 'it''s all; {one}', n_dead), ROW('late', 'it''s all; {one}', n_late_1)]) AS unnested (kind, monitor, n)
WHERE n > 0
UNION ALL
SELECT 'drift', 'sliced', ARRAY['chat', 'it''s all; {one}'][monitor + 1], n, UNIX_TIMESTAMP(CAST(window_end AS STRING)) * 1000 FROM sliced_20000
UNION ALL
SELECT 'drift', 'sliced', ARRAY['chat', 'it''s all; {one}'][monitor + 1], n, UNIX_TIMESTAMP(CAST(window_end AS STRING)) * 1000 FROM sliced_1500;
