CREATE TEMPORARY TABLE verdicts (series_key STRING, verdict BYTES) WITH (
  'connector' = 'kafka',
  'topic' = 'eu-verdicts',
  'sink.delivery-guarantee' = 'exactly-once',
  'sink.transactional-id-prefix' = 'slacktide-ingest-verdicts',
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

CREATE TEMPORARY VIEW ledger_lines AS
SELECT line, proctime FROM judged WHERE line_kind = 'T';

CREATE TEMPORARY VIEW masked_minutes AS
SELECT LISTAGG(SUBSTRING(line, 2), '|') AS ledgers,
  UNIX_TIMESTAMP(CAST(window_start AS STRING)) * 1000 AS window_start_ms, UNIX_TIMESTAMP(CAST(window_end AS STRING)) * 1000 AS window_end_ms
FROM TUMBLE(TABLE ledger_lines, DESCRIPTOR(proctime), INTERVAL '0 00:01:00.000' DAY TO SECOND(3))
GROUP BY window_start, window_end;

INSERT INTO verdicts
SELECT JSON_VALUE(verdict, '$.series_key'), CAST(verdict AS BYTES)
FROM (SELECT judge_masking(ledgers, window_start_ms, window_end_ms) AS found FROM masked_minutes)
CROSS JOIN UNNEST(SPLIT(found, CHR(10))) AS split (verdict)
WHERE verdict <> '';
