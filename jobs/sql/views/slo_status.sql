-- Where each service level stands: what is left of its budget, how fast it burns, and when it will be gone
WITH newest AS (
  SELECT
    *,
    row_number() OVER (PARTITION BY series_key ORDER BY window_end DESC) AS age,
    from_json(
      evidence,
      'service STRING, period STRING, period_start STRING, period_end STRING, budgeting_method STRING, target DOUBLE,
       good DOUBLE, total BIGINT, n_invalid BIGINT, sli DOUBLE, burn_rate DOUBLE, budget_remaining DOUBLE,
       projected_exhaustion STRING,
       windows ARRAY<STRUCT<rule: STRING, severity: STRING, factor: DOUBLE, burn_long: DOUBLE, firing: BOOLEAN>>'
    ) AS standing
  FROM verdicts
  WHERE kind = 'slo' AND test = 'error_budget'
)
SELECT
  monitor AS slo,
  series,
  standing.service,
  window_end AS told_at,
  status,
  standing.period,
  standing.budgeting_method,
  standing.target,
  standing.sli,
  standing.good,
  standing.total,
  standing.n_invalid,
  standing.budget_remaining,
  standing.burn_rate,
  to_timestamp(standing.projected_exhaustion) AS projected_exhaustion,
  array_sort(array_distinct(transform(filter(standing.windows, w -> w.firing), w -> w.severity))) AS firing,
  map_from_arrays(
    transform(standing.windows, w -> w.rule), transform(standing.windows, w -> w.burn_long)
  ) AS burn_rates
FROM newest
WHERE age = 1
