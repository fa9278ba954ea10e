CREATE TEMPORARY TABLE requests{suffix} (
  request BYTES,
  `partition` INT NOT NULL METADATA VIRTUAL,
  `offset` BIGINT NOT NULL METADATA VIRTUAL,
  `timestamp` TIMESTAMP_LTZ(3) NOT NULL METADATA VIRTUAL,
  headers MAP<STRING, BYTES> METADATA VIRTUAL,
  proctime AS PROCTIME(),
-- All that the JVM works out of a request; 1970 where there is none.
-- IFNULL: COALESCE is a CASE, for which the watermark's generator would work the time out twice.
  event_time AS IFNULL({event_time}, TO_TIMESTAMP_LTZ(0, 3)),
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
-- CURRENT_WATERMARK is null for a while.
CREATE TEMPORARY VIEW placed{suffix} AS
SELECT request,{header_columns} `partition`, `offset`, `timestamp`, event_time, MAX(event_time) OVER (
  PARTITION BY `partition` ORDER BY proctime ROWS BETWEEN UNBOUNDED PRECEDING AND CURRENT ROW) AS newest_time
FROM requests{suffix};
-- The condition always holds. Without it the planner would move CURRENT_WATERMARK to the source, where it is that of
-- one source task alone.
CREATE TEMPORARY VIEW taking{suffix} AS
SELECT `offset`, event_time,
-- Without a zone: pandas takes ten times as long for instants with one.
  take_requests{suffix}({value}, `partition`, `offset`,
    {arrived},
    CAST(event_time AS TIMESTAMP(3)),
    {closed}{headers}) AS found
FROM placed{suffix}
WHERE newest_time >= TO_TIMESTAMP_LTZ(-86400000, 3);
-- Few rows are left: one a batch, series and slice. It passes through a DataStream (jobs/request_slices.py), so that there is
-- one copy of all that is before it.
CREATE TEMPORARY VIEW taken_once{suffix} AS
SELECT `offset`, event_time, CAST(found[1] AS ARRAY<STRING>) AS series, found[2] AS packets,
  CAST(CAST(found[3] AS ARRAY<STRING>) AS ARRAY<BIGINT>) AS sizes, found[4] AS letters,
  CAST(CAST(found[5] AS ARRAY<STRING>) AS ARRAY<BIGINT>) AS counts
FROM taking{suffix}
WHERE found IS NOT NULL;
