CREATE TEMPORARY TABLE requests (
  {columns},
  `partition` INT NOT NULL METADATA VIRTUAL,
  `offset` BIGINT NOT NULL METADATA VIRTUAL,
  `timestamp` TIMESTAMP_LTZ(3) NOT NULL METADATA VIRTUAL,
  proctime AS PROCTIME(),
-- A request whose event time can't be used must not move the watermark: it stands at 1970.
  event_time AS COALESCE(TO_TIMESTAMP_LTZ({usable_ms}, 3), TO_TIMESTAMP_LTZ(0, 3)),
  WATERMARK FOR event_time AS event_time - {watermark_bound}
) WITH (
  {requests}
);
CREATE TEMPORARY TABLE verdicts (series_key STRING, verdict STRING) WITH (
  {verdicts}
);
CREATE TEMPORARY TABLE dead_letters (topic STRING, letter BYTES) WITH (
  {dead_letters}
);
CREATE TEMPORARY TABLE books (job STRING, kind STRING, monitor STRING, `count` BIGINT, window_end_ms BIGINT) WITH (
  {books}
);
-- The newest event time of the partition so far lives in keyed state, so lateness is judged alike after a restart, when
-- CURRENT_WATERMARK is null for a while. In processing time RANGE is as ROWS, and LAG takes only RANGE.
CREATE TEMPORARY VIEW placed AS
SELECT {kept}, `partition`, `offset`, event_time_ms, {usable_ms} AS usable_ms, event_time, proctime,
  MAX({usable_ms}) OVER arrival AS newest_ms,
  LAG(`offset`) OVER arrival AS previous_offset
FROM requests
WINDOW arrival AS (PARTITION BY `partition` ORDER BY proctime);
-- Lateness is asked by each view that reads `placed`, not in it: the planner would move CURRENT_WATERMARK to the source,
-- where it is that of one source task alone.
CREATE TEMPORARY VIEW lost AS
SELECT `partition`, COALESCE(previous_offset, {none_seen}) AS previous_offset, `offset`,
  CASE
    WHEN usable_ms IS NULL AND event_time_ms >= 0 THEN '{clock_skew}'
    WHEN usable_ms IS NULL THEN '{bad_time}'
    WHEN {late_for_any} THEN '{late}'
  END AS reason,
  CASE
    WHEN usable_ms IS NULL AND event_time_ms >= 0 THEN
      'event_time_ms is more than {max_skew_minutes} minutes after the Kafka timestamp'
    WHEN usable_ms IS NULL THEN 'event_time_ms is missing, negative or no integer'
    WHEN {late_for_any} THEN CONCAT('its slice had closed for ', CONCAT_WS(', ', {late_names}))
  END AS detail,
  CAST(event_time_ms AS STRING) AS event_time_ms
FROM placed
WHERE usable_ms IS NULL OR {late_for_any} OR previous_offset IS NULL OR `offset` > previous_offset + 1;
CREATE TEMPORARY VIEW fetched AS
SELECT reason, fetch_lost(`partition`, previous_offset, `offset`, reason, detail, event_time_ms) AS letters
FROM lost;
