INSERT INTO dead_letters
{letters};
INSERT INTO books
SELECT {job}, kind, CAST(NULL AS STRING), n, {window_end_ms}
FROM ({read_counts}) CROSS JOIN UNNEST(ARRAY[ROW('{read}', n_read), ROW('{dead}', n_dead), ROW('{late}', n_late)])
  AS unnested (kind, n)
WHERE n > 0
UNION ALL
SELECT {job}, '{sliced}', CAST(NULL AS STRING), n, {window_end_ms}
FROM ({all_sliced});
