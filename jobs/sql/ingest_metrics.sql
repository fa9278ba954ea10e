CREATE TEMPORARY TABLE otlp_metrics (
  message BYTES,
  topic STRING NOT NULL METADATA VIRTUAL,
  `partition` INT NOT NULL METADATA VIRTUAL,
  `offset` BIGINT NOT NULL METADATA VIRTUAL,
  `timestamp` TIMESTAMP_LTZ(3) NOT NULL METADATA VIRTUAL
) WITH (
  {source}
);
CREATE TEMPORARY TABLE measurements (series_id STRING, measurement BYTES, headers MAP<STRING, BYTES> METADATA) WITH (
  {measurements}
);
CREATE TEMPORARY TABLE dead_letters (topic STRING, letter BYTES) WITH (
  {dead_letters}
);
CREATE TEMPORARY TABLE books (job STRING, kind STRING, `count` BIGINT, window_end_ms BIGINT) WITH (
  {books}
);
-- One Python call a batch of messages; the lines are cut apart in the JVM.
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
-- `outcomes`, what became of each line, is a keyed process function over `lines` (jobs/ingest_metrics.py).
INSERT INTO measurements
SELECT record_key, record, MAP['{event_time_header}', CAST(JSON_VALUE(CAST(record AS STRING), '$.event_time_ms') AS BYTES)]
FROM outcomes WHERE kind = '{kind_measurements}';
INSERT INTO dead_letters
SELECT record_key, record FROM outcomes WHERE kind IN ('{kind_dead}', '{kind_late}');
INSERT INTO books
SELECT '{job}', kind, SUM(n), UNIX_TIMESTAMP(CAST(window_end AS STRING)) * 1000
FROM TUMBLE(TABLE outcomes, DESCRIPTOR(proctime), INTERVAL '2' SECOND)
GROUP BY kind, window_start, window_end
HAVING SUM(n) <> 0;
