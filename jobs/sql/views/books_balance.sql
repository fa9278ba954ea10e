-- Each job's books: records in, out, and the difference (0; drift: what open slices still hold)
SELECT
  job,
  monitor,
  sum(CASE WHEN kind IN ('spans', 'points', 'read') THEN count ELSE 0 END) AS records_in,
  sum(CASE WHEN kind IN ('spans', 'points', 'read') THEN 0 ELSE count END) AS records_out,
  sum(CASE WHEN kind IN ('spans', 'points', 'read') THEN count ELSE -count END) AS difference,
  max(window_end) AS counted_until
FROM books
GROUP BY job, monitor
