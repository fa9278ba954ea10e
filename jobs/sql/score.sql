CREATE TEMPORARY TABLE requests (
  key_text STRING,
  request BYTES,
  `partition` INT NOT NULL METADATA VIRTUAL,
  `offset` BIGINT NOT NULL METADATA VIRTUAL,
  `timestamp` TIMESTAMP_LTZ(3) NOT NULL METADATA VIRTUAL,
  headers MAP<STRING, BYTES> METADATA VIRTUAL,
  proctime AS PROCTIME()
) WITH (
  {requests}
);
CREATE TEMPORARY TABLE scores (trace_id STRING, score BYTES) WITH (
  {scores}
);
CREATE TEMPORARY TABLE decisions (subject STRING, decision BYTES) WITH (
  {decisions}
);
CREATE TEMPORARY TABLE dead_letters (topic STRING, letter BYTES) WITH (
  {dead_letters}
);
CREATE TEMPORARY TABLE books (job STRING, kind STRING, `count` BIGINT, window_end_ms BIGINT) WITH (
  {books}
);
-- The key is the trace id, so nothing of the record has to be looked at. CASE looks only where there is none.
CREATE TEMPORARY VIEW identified AS
SELECT request, `partition`, `offset`, `timestamp`, headers, proctime,
  CASE WHEN key_text IS NULL THEN COALESCE(REGEXP_EXTRACT(CAST(request AS STRING), {trace_id}, 1), '') ELSE key_text END AS trace_id
FROM requests;
CREATE TEMPORARY VIEW hashed AS
SELECT *, SUBSTRING(SHA256(trace_id), 1, {hash_digits}) AS digits
FROM identified;
-- How many of its series and minute came before it in its partition; 1 where there is no floor to count for.
CREATE TEMPORARY VIEW placed AS
SELECT *, {place} AS place
FROM hashed;
CREATE TEMPORARY VIEW judged AS
SELECT *, {chosen} AS chosen
FROM placed;
-- What is not sampled goes on as a mere count. It passes through a DataStream (jobs/score.py), so that there is one copy
-- of all that is before it.
CREATE TEMPORARY VIEW sampling AS
SELECT chosen, CASE WHEN chosen THEN request END AS request, CASE WHEN chosen THEN trace_id END AS trace_id, place,
  `partition`, `offset`, TIMESTAMPDIFF(SECOND, TO_TIMESTAMP_LTZ(0, 3), `timestamp`) * CAST(1000 AS BIGINT)
    + EXTRACT(MILLISECOND FROM `timestamp`) AS timestamp_ms
FROM judged;
-- One Python call a batch; it passes through a DataStream too.
CREATE TEMPORARY VIEW scoring AS
SELECT trace_id, score_requests(request, trace_id, place, `partition`, `offset`, timestamp_ms) AS found
FROM sampled
WHERE chosen;
CREATE TEMPORARY VIEW scored_once AS
SELECT trace_id, found.kind, found.scores, found.decisions, found.letters
FROM scoring;
CREATE TEMPORARY VIEW counts AS
SELECT proctime, '{read}' AS kind FROM sampled
UNION ALL
SELECT proctime, '{unsampled}' FROM sampled WHERE NOT chosen
UNION ALL
SELECT proctime, kind FROM scored;
INSERT INTO scores
SELECT trace_id, score
FROM scored CROSS JOIN UNNEST(scores) AS unnested (score);
INSERT INTO decisions
SELECT trace_id, decision
FROM scored CROSS JOIN UNNEST(decisions) AS unnested (decision);
INSERT INTO dead_letters
SELECT {topic}, letter
FROM scored CROSS JOIN UNNEST(letters) AS unnested (letter);
INSERT INTO books
SELECT {job}, kind, COUNT(*), UNIX_TIMESTAMP(CAST(window_end AS STRING)) * 1000
FROM TUMBLE(TABLE counts, DESCRIPTOR(proctime), INTERVAL '2' SECOND)
GROUP BY kind, window_start, window_end;
