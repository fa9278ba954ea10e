-- Reads and losses are counted by the machine's clock: also while event time stands still.
CREATE TEMPORARY VIEW read_counts AS
SELECT window_end, {summed}
FROM TUMBLE(TABLE taken, DESCRIPTOR(proctime), INTERVAL '2' SECOND)
WHERE counts IS NOT NULL
GROUP BY window_start, window_end;
INSERT INTO verdicts
SELECT JSON_VALUE(verdict, '$.series_key'), verdict
FROM ({all_verdicts});
INSERT INTO dead_letters
SELECT {topic}, letter
FROM taken CROSS JOIN UNNEST(letters) AS unnested (letter){dead_labels};
INSERT INTO books
SELECT {job}, kind, monitor, n, {window_end_ms}
FROM read_counts CROSS JOIN UNNEST(ARRAY[{entries}]) AS unnested (kind, monitor, n)
WHERE n > 0
UNION ALL
{all_sliced};
