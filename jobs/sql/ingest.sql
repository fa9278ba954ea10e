CREATE TEMPORARY TABLE otlp_spans (
  message BYTES,
  topic STRING NOT NULL METADATA VIRTUAL,
  `partition` INT NOT NULL METADATA VIRTUAL,
  `offset` BIGINT NOT NULL METADATA VIRTUAL,
  `timestamp` TIMESTAMP_LTZ(3) NOT NULL METADATA VIRTUAL,
-- The clock of the join: when messages came, not when spans ended, so that one wrong clock can't end everyone's wait.
  WATERMARK FOR `timestamp` AS `timestamp` - INTERVAL '5' SECOND
) WITH (
  {source}
);
-- Headers: schemas/request_headers.py.
CREATE TEMPORARY TABLE requests (trace_id STRING, request STRING, headers MAP<STRING, BYTES> METADATA) WITH (
  {requests}
);
CREATE TEMPORARY TABLE dead_letters (topic STRING, letter BYTES) WITH (
  {dead_letters}
);
CREATE TEMPORARY TABLE books (job STRING, kind STRING, `count` BIGINT, window_end_ms BIGINT) WITH (
  {books}
);
-- One Python call a batch of messages; everything after it is cut out of the text in the JVM.
CREATE TEMPORARY VIEW decoded AS
SELECT topic, `partition`, `offset`, `timestamp` AS arrived, timestamp_ms, decode_spans(message, timestamp_ms) AS lines
FROM (
  SELECT *, TIMESTAMPDIFF(SECOND, TO_TIMESTAMP_LTZ(0, 3), `timestamp`) * CAST(1000 AS BIGINT)
    + EXTRACT(MILLISECOND FROM `timestamp`) AS timestamp_ms
  FROM otlp_spans
);
CREATE TEMPORARY VIEW lines AS
SELECT topic, `partition`, `offset`, arrived, timestamp_ms, line, PROCTIME() AS proctime, SUBSTRING(line, 1, 1) AS line_kind,
-- TRY_CAST: Flink computes both branches of a CASE, and other lines have no number there.
  CASE WHEN SUBSTRING(line, 1, 1) IN ('R', '{waiting_genai}') THEN TRY_CAST(SUBSTRING(line, {time_at}, {time_length}) AS BIGINT) END AS event_time_ms
FROM decoded CROSS JOIN UNNEST(SPLIT(lines, CHR(10))) AS split (line);
-- The newest event time of the partition so far lives in keyed state, so lateness is judged alike after a restart.
-- `judged` passes through a DataStream (jobs/ingest.py): up to there no state expires, and there is one copy of it.
CREATE TEMPORARY VIEW judging AS
SELECT topic, `partition`, `offset`, arrived, timestamp_ms, line, line_kind,
  line_kind IN ('R', '{waiting_genai}') AND event_time_ms < newest_ms - {allowed_lateness_ms} AS is_late
FROM (
  SELECT *, MAX(event_time_ms) OVER (
    PARTITION BY `partition` ORDER BY proctime ROWS BETWEEN UNBOUNDED PRECEDING AND CURRENT ROW) AS newest_ms
  FROM lines
);
-- ROWS, not RANGE: two copies within one millisecond must not count each other as the first.
CREATE TEMPORARY VIEW numbering AS
SELECT line, line_kind, kafka_time AS arrived, timestamp_ms, COUNT(*) OVER (
  PARTITION BY SUBSTRING(line, {span_key_at}, {span_key_length}) ORDER BY proctime ROWS BETWEEN UNBOUNDED PRECEDING AND CURRENT ROW) AS copy_number
FROM judged WHERE line_kind IN ('R', '{waiting_genai}') AND NOT is_late;
-- Spans that need others of their trace. `joined`, what becomes of them, is a keyed process function (jobs/ingest.py).
CREATE TEMPORARY VIEW waiting AS
SELECT SUBSTRING(line, {span_key_at}, {trace_id_length}) AS trace_id, timestamp_ms, line
FROM (
  SELECT timestamp_ms, line FROM numbered WHERE line_kind = '{waiting_genai}' AND copy_number = 1
  UNION ALL
  SELECT timestamp_ms, line FROM judged WHERE line_kind = '{waiting_other}'
);
CREATE TEMPORARY VIEW counts AS
SELECT proctime, '{kind_spans}' AS kind, CAST(JSON_VALUE(SUBSTRING(line, 2), '$.spans') AS BIGINT) AS n FROM judged WHERE line_kind = 'B'
UNION ALL
SELECT proctime, '{kind_child}', CAST(JSON_VALUE(SUBSTRING(line, 2), '$.child') AS BIGINT) FROM judged WHERE line_kind = 'B'
UNION ALL
SELECT proctime, '{kind_dead}', CAST(1 AS BIGINT) FROM judged WHERE line_kind = 'D'
UNION ALL
SELECT proctime, '{kind_late}', CAST(1 AS BIGINT) FROM judged WHERE is_late
UNION ALL
SELECT proctime, CASE WHEN copy_number > 1 THEN '{kind_duplicate}' WHEN line_kind = 'R' THEN '{kind_requests}' ELSE '{kind_waiting}' END,
  CAST(1 AS BIGINT) FROM numbered
UNION ALL
SELECT proctime, '{kind_waiting}', CAST(1 AS BIGINT) FROM judged WHERE line_kind = '{waiting_other}'
UNION ALL
SELECT proctime, '{kind_waiting}', -n FROM joined
UNION ALL
SELECT proctime, kind, n FROM joined;
INSERT INTO requests
SELECT SUBSTRING(line, {span_key_at}, {trace_id_length}), SUBSTRING(line, {labels_at} + labels_length),
  MAP['{event_time_header}', CAST(CAST(CAST(SUBSTRING(line, {time_at}, {time_length}) AS BIGINT) AS STRING) AS BYTES),
    '{numbers_header}', UNHEX(SUBSTRING(line, {numbers_at}, {numbers_length})),
    '{labels_header}', CAST(SUBSTRING(line, {labels_at}, labels_length) AS BYTES)]
FROM (
  SELECT line, CAST(SUBSTRING(line, {length_at}, {length_length}) AS INT) AS labels_length
  FROM numbered WHERE line_kind = 'R' AND copy_number = 1
)
UNION ALL
SELECT trace_id, request, headers FROM joined WHERE kind = '{kind_requests}';
INSERT INTO dead_letters
SELECT topic, dead_letter(line, topic, `partition`, `offset`, timestamp_ms)
FROM judged WHERE line_kind = 'D' OR is_late;
INSERT INTO books
SELECT '{job}', kind, SUM(n), UNIX_TIMESTAMP(CAST(window_end AS STRING)) * 1000
FROM TUMBLE(TABLE counts, DESCRIPTOR(proctime), INTERVAL '2' SECOND)
GROUP BY kind, window_start, window_end
HAVING SUM(n) <> 0;
