-- Only where text is carried: what masking did, judged a minute at a time by the wall clock, whose time it is about.
CREATE TEMPORARY TABLE verdicts (series_key STRING, verdict BYTES) WITH (
  {verdicts}
);
CREATE TEMPORARY VIEW ledger_lines AS
SELECT line, proctime FROM judged WHERE line_kind = 'T';
CREATE TEMPORARY VIEW masked_minutes AS
SELECT LISTAGG(SUBSTRING(line, 2), '|') AS ledgers,
  UNIX_TIMESTAMP(CAST(window_start AS STRING)) * 1000 AS window_start_ms, UNIX_TIMESTAMP(CAST(window_end AS STRING)) * 1000 AS window_end_ms
FROM TUMBLE(TABLE ledger_lines, DESCRIPTOR(proctime), {judge_interval})
GROUP BY window_start, window_end;
INSERT INTO verdicts
SELECT JSON_VALUE(verdict, '$.series_key'), CAST(verdict AS BYTES)
FROM (SELECT judge_masking(ledgers, window_start_ms, window_end_ms) AS found FROM masked_minutes)
CROSS JOIN UNNEST(SPLIT(found, CHR(10))) AS split (verdict)
WHERE verdict <> '';
