-- Reads and losses are counted by the machine's clock: also while event time stands still.
CREATE TEMPORARY VIEW kinds AS
SELECT `partition`, usable_ms IS NULL AS is_dead, {late_columns}, proctime
FROM placed;
CREATE TEMPORARY VIEW counted AS
SELECT window_end, COUNT(*) AS n_read, COUNT(*) FILTER (WHERE is_dead) AS n_dead, {late_counts}
FROM TUMBLE(TABLE kinds, DESCRIPTOR(proctime), INTERVAL '2' SECOND)
GROUP BY `partition`, window_start, window_end;
-- A record that the JSON reader skipped is one read and one dead letter, as in the ingest job's books.
CREATE TEMPORARY VIEW skipped AS
SELECT CAST(CARDINALITY(letters) - CASE WHEN reason IS NULL THEN 0 ELSE 1 END AS BIGINT) AS n_skipped
FROM fetched;
INSERT INTO verdicts
SELECT JSON_VALUE(verdict, '$.series_key'), verdict
FROM ({all_verdicts});
INSERT INTO dead_letters
SELECT {topic}, letter
FROM fetched CROSS JOIN UNNEST(letters) AS unnested (letter);
INSERT INTO books
SELECT {job}, kind, monitor, n, {window_end_ms}
FROM counted CROSS JOIN UNNEST(ARRAY[{counted_entries}]) AS unnested (kind, monitor, n)
WHERE n > 0
UNION ALL
SELECT {job}, kind, monitor, n, UNIX_TIMESTAMP() * 1000
FROM skipped CROSS JOIN UNNEST(ARRAY[{skipped_entries}]) AS unnested (kind, monitor, n)
WHERE n > 0
UNION ALL
{all_sliced};
