-- Scores by hour, service, model and scorer; each weighs the 1 / sampling_rate requests that it stands for
SELECT
  date_trunc('HOUR', event_time) AS hour,
  service_name,
  model,
  model_version,
  scorer,
  scorer_version,
  score,
  count(*) AS requests_scored,
  count(score_value) AS with_value,
  round(sum(1 / sampling_rate)) AS requests_estimated,
  round(try_divide(sum(score_value / sampling_rate), sum(IF(score_value IS NULL, 0, 1 / sampling_rate))), 6) AS mean_value,
  min(score_value) AS least_value,
  percentile_approx(score_value, 0.5) AS median_scored,
  max(score_value) AS greatest_value,
  count_if(truncated) AS truncated,
  max(get_json_object(judge, '$.f1')) AS judge_f1
FROM scores
GROUP BY ALL
