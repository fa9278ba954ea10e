"""The Delta audit tables, each as data: what a row is, where each column comes from, and what must hold of it.

Source: spec G1 (model cards), G2 (audit tables), G6 (dead letters in Delta: place, length, SHA-256 and a masked prefix,
never the bytes).
"""

from collections.abc import Iterable

from schemas.alerts import SCHEMA_VERSION as ALERT_SCHEMA_VERSION
from schemas.alerts import AlertState
from schemas.books import IngestKind
from schemas.dead_letters import Reason
from schemas.decisions import SCHEMA_VERSION as DECISION_SCHEMA_VERSION
from schemas.decisions import Action
from schemas.delta import Check, Column, DeltaTable, Wire, literal
from schemas.feedback import MAX_CLOCK_SKEW_SECONDS
from schemas.feedback import SCHEMA_VERSION as FEEDBACK_SCHEMA_VERSION
from schemas.incidents import COUNTS, IncidentEvent
from schemas.incidents import SCHEMA_VERSION as INCIDENT_SCHEMA_VERSION
from schemas.requests import request_fields
from schemas.scores import REQUEST_LABELS
from schemas.scores import SCHEMA_VERSION as SCORE_SCHEMA_VERSION
from schemas.status import Status
from schemas.verdicts import VerdictKind

VERDICT_SCHEMA_VERSION = 1
MASKED_PREFIX_BYTES = 64

# \z, not $: Java's $ also matches before a last line break.
_RECORD_ID = r"^[0-9a-f]{32}\z"
_FINGERPRINT = r"^[0-9a-f]{16}\z"
_SHA256 = r"^[0-9a-f]{64}\z"
_CONTENT_DIGEST = r"^sha256:[0-9a-f]{64}\z"
_FINITE = "({0} > double('-infinity') AND {0} < double('infinity'))"  # false for NaN: Spark orders it above infinity


def _read(
    wire: Wire, field: str, comment: str, *, name: str = "", nullable: bool = False, otherwise: str = ""
) -> Column:
    return Column(name or field, wire.delta_type, comment, nullable, field, wire, otherwise or None)


def _made(name: str, sql_type: str, comment: str, sql: str | None = None, *, nullable: bool = False) -> Column:
    return Column(name, sql_type, comment, nullable, sql=sql)


def _matches(column: str, pattern: str, must: str) -> Check:
    return Check(column, "form", must, f"{column} RLIKE {literal(pattern)}")


def _one_of(column: str, values: Iterable[str]) -> Check:
    known = ", ".join(map(literal, values))
    return Check(column, "known", f"must be one of {known}", f"{column} IN ({known})")


def _in_unit_interval(column: str) -> Check:
    return Check(column, "range", "must be null or in 0 to 1", f"{column} IS NULL OR {column} BETWEEN 0 AND 1")


def _finite(column: str) -> Check:
    return Check(column, "finite", "must be null or finite", f"{column} IS NULL OR {_FINITE.format(column)}")


def _not_negative(column: str) -> Check:
    return Check(column, "not_negative", "must be 0 or more", f"{column} >= 0")


def _never_unless_ok(column: str) -> Check:
    """A figure that not every test has."""
    must = "must be null where status is not ok"
    return Check(column, "only_when_ok", must, f"{column} IS NULL OR status = {literal(Status.OK)}")


def _only_when_ok(column: str) -> Check:
    """A figure stands exactly where the status is ok: nothing else is ever shown as a pass."""
    must = "must be null exactly where status is not ok"
    return Check(column, "only_when_ok", must, f"({column} IS NOT NULL) = (status = {literal(Status.OK)})")


def place_id_sql(
    topic: str = "topic", partition: str = "partition", offset: str = "offset", timestamp: str = "timestamp"
) -> str:
    """Return SQL for the id of a record by its place: these columns, hashed.

    The timestamp is part of it: a topic that was deleted and made anew has the same offsets again.
    """
    place = f"concat_ws('/', {topic}, {partition}, {offset}, unix_millis({timestamp}))"
    return f"substr(sha2({place}, 256), 1, 32)"


def masked_prefix_sql(payload: str) -> str:
    """Return SQL for the masked prefix of the binary expression `payload`: its shape, and nothing of its content."""
    text = f"decode(substring({payload}, 1, {MASKED_PREFIX_BYTES}), 'ISO-8859-1')"
    return f"regexp_replace(regexp_replace(regexp_replace({text}, '[A-Za-z]', 'a'), '[0-9]', '0'), '[^ -~]', '.')"


_PLACE = (
    _made("kafka_topic", "STRING", "Topic of the record", "topic"),
    _made("kafka_partition", "INT", "Partition of the record", "partition"),
    _made("kafka_offset", "BIGINT", "Offset of the record", "offset"),
    _made("kafka_timestamp", "TIMESTAMP", "Timestamp of the record on Kafka", "timestamp"),
    _made("content_sha256", "STRING", "SHA-256 of the whole record value, hex", "sha2(coalesce(value, X''), 256)"),
    _made("batch_key", "STRING", "The batch of the audit job that wrote the row; joins batches", "{batch_key}"),
)
_DAY = _made("day", "DATE", "UTC day, the partition")


VERDICTS = DeltaTable(
    name="verdicts",
    comment="One row a judged window: test, figures, counts, and the configuration, reference and card behind it",
    topic="verdicts",
    key="verdict_id",
    time="window_end",
    statistics=("window_start", "monitor", "feature"),
    columns=(
        _read(Wire.TEXT, "verdict_id", "Hash of series, window end, configuration and reference"),
        _read(Wire.TEXT, "series_key", "Canonical JSON of monitor, feature and labels"),
        _read(Wire.TEXT, "monitor", "The monitor that judged"),
        _read(Wire.TEXT, "kind", "What it speaks of: drift, finding, signal, split, slo"),
        _read(Wire.TEXT, "feature", "What was judged: a field of a request, or test(field)"),
        _read(Wire.LABELS, "series", "Group-by labels of the series"),
        _read(Wire.INSTANT, "window_start", "Start of the window, inclusive"),
        _read(Wire.INSTANT, "window_end", "End of the window, exclusive"),
        _read(Wire.NUMBER, "slide_seconds", "Distance of two windows"),
        _read(Wire.TEXT, "test", "The statistical test"),
        _read(Wire.TEXT, "method", "How p was computed"),
        _read(Wire.TEXT, "status", "ok, or why there are no figures"),
        _read(Wire.NUMBER, "statistic", "The test's statistic, null where status is not ok", nullable=True),
        _read(Wire.NUMBER, "p_value", "p, null where status is not ok or the test has none", nullable=True),
        _read(Wire.NUMBER, "log10_p_value", "log10 of p, finite where p is 0", nullable=True),
        _read(Wire.NUMBER, "effect", "Effect size, null where status is not ok", nullable=True),
        _read(Wire.NUMBER, "published_score", "(p < alpha) * (1 - p)", nullable=True),
        _read(Wire.NUMBER, "alpha", "A window with p below it counts as drifted", nullable=True),
        _read(Wire.NUMBER, "min_effect", "A smaller effect is no drift", nullable=True),
        _read(Wire.NUMBER, "threshold", "What the statistic is held against, where p does not decide", nullable=True),
        _read(Wire.FLAG, "drifted", "Whether the window drifted, null where unknown", nullable=True),
        _read(Wire.INTEGER, "n_reference", "Reference values, nulls apart"),
        _read(Wire.INTEGER, "n_reference_null", "Null or NaN reference values"),
        _read(Wire.INTEGER, "n_window", "Window values, nulls apart"),
        _read(Wire.INTEGER, "n_window_null", "Null or NaN window values"),
        _read(Wire.INTEGER, "n_infinite", "Infinite window values"),
        _read(Wire.TEXT, "config_digest", "Digest of the monitor's configuration"),
        _read(
            Wire.TEXT, "reference_digest", "Digest of the reference profile, null where there is none", nullable=True
        ),
        _read(Wire.TEXT, "model_card_digest", "Digest of the model card; joins model_cards"),
        _read(Wire.JSON, "evidence", "Evidence as JSON text"),
        _read(Wire.INTEGER, "schema_version", "Version of the record's schema"),
        *_PLACE,
        _DAY,
    ),
    checks=(
        _matches("verdict_id", _RECORD_ID, "must be 32 hex digits"),
        Check("window_end", "after_start", "must be after window_start", "window_end > window_start"),
        Check(
            "slide_seconds", "positive", "must be above 0", f"slide_seconds > 0 AND {_FINITE.format('slide_seconds')}"
        ),
        _one_of("status", Status),
        _one_of("kind", VerdictKind),
        _finite("statistic"),
        _in_unit_interval("p_value"),
        _finite("log10_p_value"),
        _finite("effect"),
        _in_unit_interval("published_score"),
        _finite("threshold"),
        *map(_only_when_ok, ("statistic", "drifted")),
        *map(_never_unless_ok, ("p_value", "log10_p_value", "effect", "published_score")),
        Check("alpha", "range", "must be above 0 and below 1", "alpha IS NULL OR (alpha > 0 AND alpha < 1)"),
        Check(
            "min_effect",
            "not_negative",
            "must be 0 or more",
            f"min_effect IS NULL OR (min_effect >= 0 AND {_FINITE.format('min_effect')})",
        ),
        *map(_not_negative, ("n_reference", "n_reference_null", "n_window", "n_window_null", "n_infinite")),
        *(
            _matches(column, _CONTENT_DIGEST, "must be sha256: and 64 hex digits")
            for column in ("config_digest", "model_card_digest")
        ),
        Check(
            "reference_digest",
            "form",
            "must be null, or sha256: and 64 hex digits",
            f"reference_digest IS NULL OR reference_digest RLIKE {literal(_CONTENT_DIGEST)}",
        ),
        Check(
            "schema_version",
            "known",
            f"must be {VERDICT_SCHEMA_VERSION}",
            f"schema_version = {VERDICT_SCHEMA_VERSION}",
        ),
    ),
)

ALERTS = DeltaTable(
    name="alerts",
    comment="One row a transition of an alert: what it became, with the windows that made it and what keeps it back",
    topic="alerts",
    key="alert_id",
    time="starts_at",
    statistics=("updated_at", "fingerprint", "state"),
    columns=(
        _read(Wire.TEXT, "alert_id", "Hash of fingerprint, start and state (and episode)"),
        _read(Wire.TEXT, "state", "pending, firing, suppressed or resolved"),
        _read(Wire.TEXT, "fingerprint", "Alertmanager's fingerprint of the labels"),
        _read(Wire.LABELS, "labels", "Alert labels"),
        _read(Wire.LABELS, "annotations", "Summary, description, runbook"),
        _read(Wire.INSTANT, "startsAt", "End of the window that made it fire", name="starts_at"),
        _read(Wire.INSTANT, "endsAt", "Ahead while firing; the resolution once resolved", name="ends_at"),
        _read(Wire.INSTANT, "updatedAt", "End of the window that made this transition", name="updated_at"),
        _read(Wire.INSTANT, "active_at", "End of the first window of the streak that fired"),
        _read(Wire.TEXT, "generatorURL", "Where the alert comes from", name="generator_url"),
        _read(Wire.TEXT, "monitor", "The monitor that judged"),
        _read(Wire.TEXT, "feature", "The feature judged"),
        _read(Wire.LABELS, "series", "Group-by labels of the series"),
        _read(Wire.TEXT, "model_card_digest", "Digest of the model card; joins model_cards"),
        _read(Wire.JSON, "evidence", "The windows that argued for it, as JSON text"),
        _read(Wire.TEXT, "incident_id", "The incident it belongs to, null in older records", nullable=True),
        _read(
            Wire.JSON, "suppression", "What keeps it from people, as JSON text, null where nothing does", nullable=True
        ),
        _read(Wire.JSON, "root_cause", "Ranked causes, as JSON text, null where none was found", nullable=True),
        _read(Wire.INTEGER, "episode", "How often it was in this state before, null for never", nullable=True),
        _read(Wire.INTEGER, "schema_version", "Version of the record's schema"),
        *_PLACE,
        _DAY,
    ),
    checks=(
        _matches("alert_id", _RECORD_ID, "must be 32 hex digits"),
        _one_of("state", AlertState),
        Check(
            "suppression",
            "where_suppressed",
            "must be there where state is suppressed",
            f"state <> {literal(AlertState.SUPPRESSED)} OR suppression IS NOT NULL",
        ),
        _matches("fingerprint", _FINGERPRINT, "must be 16 hex digits"),
        Check("active_at", "before_start", "must not be after startsAt", "active_at <= starts_at"),
        Check("ends_at", "after_start", "must not be before startsAt", "ends_at >= starts_at"),
        Check("updated_at", "after_start", "must not be before startsAt", "updated_at >= starts_at"),
        _matches("model_card_digest", _CONTENT_DIGEST, "must be sha256: and 64 hex digits"),
        Check(
            "schema_version",
            "known",
            f"must be {ALERT_SCHEMA_VERSION}",
            f"schema_version = {ALERT_SCHEMA_VERSION}",
        ),
    ),
)

INCIDENTS = DeltaTable(
    name="incidents",
    comment="One row a notification of an incident: what people were told, how grave, of how many alerts",
    topic="incidents",
    key="notification_id",
    # Part of the incident's id, so it is the same whenever the notification is; updatedAt need not be after a replay.
    time="started_at",
    statistics=("updated_at", "incident_id", "event", "severity"),
    columns=(
        _read(Wire.TEXT, "notification_id", "Hash of incident and number"),
        _read(Wire.TEXT, "incident_id", "Hash of scope and start; joins alerts"),
        _read(Wire.INTEGER, "number", "Counts the incident's notifications from 1"),
        _read(Wire.TEXT, "event", "opened, escalated, updated or resolved"),
        _read(Wire.TEXT, "status", "firing while any alert fires, else resolved"),
        _read(Wire.TEXT, "severity", "The gravest so far"),
        _read(Wire.LABELS, "groupLabels", "Labels of the scope", name="group_labels"),
        _read(Wire.LABELS, "commonLabels", "Labels that all its alerts share", name="common_labels"),
        _read(Wire.LABELS, "commonAnnotations", "Annotations that all share", name="common_annotations"),
        _read(Wire.JSON, "alerts", "The gravest alerts, as JSON text", name="listed_alerts"),
        _read(Wire.INTEGER, "truncatedAlerts", "How many alerts are not listed", name="truncated_alerts"),
        _read(Wire.JSON, "counts", f"How many are {', '.join(COUNTS)}, as JSON text"),
        _read(Wire.INSTANT, "started_at", "Start of the incident's first alert"),
        _read(Wire.INSTANT, "updated_at", "Event time of the notification"),
        _read(Wire.JSON, "root_cause", "Ranked causes of the gravest alert that has some", nullable=True),
        _read(Wire.INTEGER, "schema_version", "Version of the record's schema"),
        *_PLACE,
        _DAY,
    ),
    checks=(
        _matches("notification_id", _RECORD_ID, "must be 32 hex digits"),
        _matches("incident_id", _RECORD_ID, "must be 32 hex digits"),
        Check("number", "positive", "must be 1 or more", "number >= 1"),
        _one_of("event", IncidentEvent),
        _one_of("status", ("firing", "resolved")),
        Check(
            "status",
            "of_event",
            "must be resolved exactly where event is",
            f"(status = 'resolved') = (event = {literal(IncidentEvent.RESOLVED)})",
        ),
        _not_negative("truncated_alerts"),
        Check(
            "counts",
            "not_negative",
            f"must have {', '.join(COUNTS)}, each 0 or more",
            " AND ".join(f"try_cast(get_json_object(counts, '$.{name}') AS BIGINT) >= 0" for name in COUNTS),
        ),
        Check("updated_at", "after_start", "must not be before started_at", "updated_at >= started_at"),
        Check(
            "schema_version",
            "known",
            f"must be {INCIDENT_SCHEMA_VERSION}",
            f"schema_version = {INCIDENT_SCHEMA_VERSION}",
        ),
    ),
)

SCORES = DeltaTable(
    name="scores",
    comment="One row a score of one sampled request: scorer, model, figure, how many requests it stands for; no text",
    topic="scores",
    key="score_id",
    time="event_time",
    statistics=("scorer", "score", "service_name", "model"),
    columns=(
        _read(Wire.TEXT, "score_id", "Hash of request, scorer, version, model and score"),
        _read(Wire.TEXT, "trace_id", "Trace of the request"),
        _read(Wire.TEXT, "span_id", "Span of the request"),
        _read(Wire.EPOCH_MS, "event_time_ms", "Event time of the request", name="event_time"),
        *(
            _read(Wire.TEXT, f.name, f"Of the request: {f.meaning}", nullable=True)
            for f in request_fields(REQUEST_LABELS)
        ),
        _read(Wire.TEXT, "scorer", "The scorer"),
        _read(Wire.TEXT, "scorer_version", "Changes whenever the same input may give another figure"),
        _read(Wire.TEXT, "model_digest", "Digest of the scorer's model, null where it has none", nullable=True),
        _read(Wire.TEXT, "score", "What the figure is"),
        _read(Wire.NUMBER, "value", "The figure, null where status is not ok", name="score_value", nullable=True),
        _read(Wire.TEXT, "status", "ok, or why there is no figure"),
        _read(Wire.TEXT, "label", "The class that the figure stands for", nullable=True),
        _read(Wire.FLAG, "truncated", "Whether the scorer did not see the whole text"),
        _read(Wire.NUMBER, "sampling_rate", "Chance to be scored: it counts for 1 / sampling_rate requests"),
        _read(Wire.JSON, "judge", "Validation report of a judge, as JSON text", nullable=True),
        _read(Wire.JSON, "evidence", "What the scorer says of its figure, as JSON text"),
        _read(Wire.INTEGER, "schema_version", "Version of the record's schema"),
        *_PLACE,
        _DAY,
    ),
    checks=(
        _matches("score_id", _RECORD_ID, "must be 32 hex digits"),
        _one_of("status", Status),
        _only_when_ok("score_value"),
        _finite("score_value"),
        Check("sampling_rate", "range", "must be above 0 and at most 1", "sampling_rate > 0 AND sampling_rate <= 1"),
        Check(
            "model_digest",
            "form",
            "must be null, or sha256: and 64 hex digits",
            f"model_digest IS NULL OR model_digest RLIKE {literal(_CONTENT_DIGEST)}",
        ),
        Check("schema_version", "known", f"must be {SCORE_SCHEMA_VERSION}", f"schema_version = {SCORE_SCHEMA_VERSION}"),
    ),
)

DECISIONS = DeltaTable(
    name="decisions",
    comment="One row a decision: what is proposed for what, by which rule, on which inputs",
    topic="decisions",
    key="decision_id",
    time="event_time",
    statistics=("action", "rule"),
    columns=(
        _read(Wire.TEXT, "decision_id", "Hash of action, subject, rule, configuration and cause"),
        _read(Wire.TEXT, "action", "What is proposed: review, scale, roll_back, hold"),
        _read(Wire.TEXT, "subject", "What it is about"),
        _read(Wire.TEXT, "subject_type", "What kind of thing the subject is"),
        _read(Wire.TEXT, "rule", "The rule that fired"),
        _read(Wire.TEXT, "reason", "Why, in a sentence"),
        _read(Wire.TEXT, "cause_id", "Id of the record that made it fire: a score, a verdict"),
        _read(Wire.INSTANT, "event_time", "Event time of that record"),
        _read(Wire.LABELS, "labels", "Labels of the series"),
        _read(Wire.JSON, "inputs", "The figures that the rule fired on, as JSON text"),
        _read(Wire.TEXT, "config_digest", "Digest of the configuration that the rule stands in"),
        _read(Wire.INTEGER, "schema_version", "Version of the record's schema"),
        *_PLACE,
        _DAY,
    ),
    checks=(
        _matches("decision_id", _RECORD_ID, "must be 32 hex digits"),
        _one_of("action", Action),
        _matches("cause_id", _RECORD_ID, "must be 32 hex digits"),
        _matches("config_digest", _CONTENT_DIGEST, "must be sha256: and 64 hex digits"),
        Check(
            "schema_version",
            "known",
            f"must be {DECISION_SCHEMA_VERSION}",
            f"schema_version = {DECISION_SCHEMA_VERSION}",
        ),
    ),
)

FEEDBACK = DeltaTable(
    name="feedback",
    comment="One row a late label of a request or an alert: what was judged, how good it was, by whom; not the note",
    topic="feedback",
    key="feedback_id",
    time="label_time",
    statistics=("score", "event_time"),
    # Free text: that there was one is kept, what it says is not, in quarantine neither.
    unstored=(("note", Wire.TEXT),),
    columns=(
        _read(Wire.TEXT, "feedback_id", "Names the label: the same id is the same label"),
        _read(Wire.TEXT, "trace_id", "The request that was judged, null for an alert", nullable=True),
        _read(Wire.TEXT, "fingerprint", "The alert that was judged, null for a request", nullable=True),
        _read(Wire.TEXT, "score", "What was judged; of an alert: alert (1 true, 0 false alarm) or acknowledged"),
        _read(Wire.NUMBER, "value", "From 0 (bad) to 1 (good), null for a class", name="label_value", nullable=True),
        _read(Wire.TEXT, "label", "good or bad, null for a number", name="label_class", nullable=True),
        _read(Wire.NUMBER, "confidence", "How sure its source is, from 0 to 1"),
        _read(Wire.INSTANT, "label_time", "When the label was given"),
        _read(Wire.INSTANT, "event_time", "Event time of the request; startsAt of the alert"),
        _read(Wire.TEXT, "source", "Who says so"),
        _read(Wire.LABELS, "series", "Labels of the series that it counts for"),
        _made("has_note", "BOOLEAN", "Whether somebody wrote a note to it", "{record}.note IS NOT NULL"),
        _read(Wire.INTEGER, "schema_version", "Version of the record's schema"),
        *_PLACE,
        _DAY,
    ),
    checks=(
        Check(
            "trace_id",
            "or_fingerprint",
            "must be there, or fingerprint, and not both",
            "(trace_id IS NULL) <> (fingerprint IS NULL)",
        ),
        Check(
            "label_value",
            "or_class",
            "must be there, or label, and not both",
            "(label_value IS NULL) <> (label_class IS NULL)",
        ),
        _in_unit_interval("label_value"),
        Check(
            "label_class",
            "known",
            "must be null or one of 'good', 'bad'",
            "label_class IS NULL OR label_class IN ('good', 'bad')",
        ),
        Check("confidence", "range", "must be in 0 to 1", "confidence BETWEEN 0 AND 1"),
        Check(
            "label_time",
            "after_event",
            f"must be at most {MAX_CLOCK_SKEW_SECONDS:g} s before event_time",
            f"unix_millis(label_time) >= unix_millis(event_time) - {round(MAX_CLOCK_SKEW_SECONDS * 1000)}",
        ),
        Check(
            "schema_version",
            "known",
            f"must be {FEEDBACK_SCHEMA_VERSION}",
            f"schema_version = {FEEDBACK_SCHEMA_VERSION}",
        ),
    ),
)

DEAD_LETTERS = DeltaTable(
    name="dead_letters",
    comment="One row a record or span that could not be used: place, reason, length, digest, masked prefix; no bytes",
    topic="dead_letters",
    key="dead_letter_id",
    time="source_timestamp",
    statistics=("reason", "source_topic", "source_offset"),
    unstored=(("payload_base64", Wire.TEXT),),
    columns=(
        _read(Wire.TEXT, "dead_letter_id", "Hash of job, place and reason"),
        _read(Wire.TEXT, "reason", "Why it could not be used"),
        _read(Wire.TEXT, "detail", "Field and fault, never a value"),
        _read(Wire.TEXT, "job", "The job that could not use it"),
        _read(Wire.TEXT, "topic", "Topic it came from", name="source_topic"),
        _read(Wire.INTEGER, "partition", "Partition it came from", name="source_partition"),
        _read(Wire.INTEGER, "offset", "Offset it came from", name="source_offset"),
        _read(Wire.INTEGER, "index", "Span within the message, -1 for the whole message", name="span_index"),
        _read(
            Wire.EPOCH_MS,
            "kafka_timestamp_ms",
            "Kafka timestamp of the source record; 1970-01-01 where unknown",
            name="source_timestamp",
            otherwise="0",
        ),
        _read(Wire.EPOCH_MS, "event_time_ms", "Event time, where it could be read", name="event_time", nullable=True),
        _read(Wire.INTEGER, "length", "Bytes of the whole payload"),
        _read(Wire.TEXT, "sha256", "SHA-256 of the whole payload, hex"),
        _read(Wire.FLAG, "truncated", "Whether the payload on Kafka is cut"),
        _made(
            "masked_prefix",
            "STRING",
            f"First {MASKED_PREFIX_BYTES} bytes: letters as a, digits as 0, unprintables as .",
            masked_prefix_sql("try_to_binary({record}.payload_base64, 'base64')"),
        ),
        *_PLACE,
        _DAY,
    ),
    checks=(
        _matches("dead_letter_id", _RECORD_ID, "must be 32 hex digits"),
        _one_of("reason", Reason),
        _not_negative("source_partition"),
        _not_negative("source_offset"),
        Check("span_index", "range", "must be -1 or more", "span_index >= -1"),
        _not_negative("length"),
        _matches("sha256", _SHA256, "must be 64 hex digits"),
        Check(
            "masked_prefix",
            "masked",
            f"must be a masked prefix of at most {MASKED_PREFIX_BYTES} bytes",
            f"length(masked_prefix) <= {MASKED_PREFIX_BYTES} AND NOT masked_prefix RLIKE '[b-zA-Z1-9]'",
        ),
    ),
)

BOOKS = DeltaTable(
    name="books",
    comment="One row a book entry: how many records of a kind a job counted since the entry before",
    topic="books",
    key="book_id",
    time="kafka_timestamp",
    statistics=("job", "kind", "count"),
    columns=(
        _made("book_id", "STRING", "Hash of the entry's place and timestamp on Kafka", place_id_sql()),
        _read(Wire.TEXT, "job", "The job that counted"),
        _read(Wire.TEXT, "monitor", "The monitor, where a job counts for each", nullable=True),
        _read(Wire.TEXT, "kind", "What was counted"),
        _read(Wire.INTEGER, "count", "How many"),
        _read(Wire.EPOCH_MS, "window_end_ms", "End of the counting interval", name="window_end"),
        *_PLACE,
        _DAY,
    ),
    checks=(
        Check(
            "count",
            "not_negative",
            f"must be 0 or more, but for kind {IngestKind.WAITING}, which counts down too",
            f"count >= 0 OR kind = {literal(IngestKind.WAITING)}",
        ),
    ),
)

QUARANTINE = DeltaTable(
    name="quarantine",
    comment="One row a record that broke its table's schema or constraints, kept whole and out of the way",
    key="quarantine_id",
    time="kafka_timestamp",
    statistics=("kafka_topic", "kafka_offset"),
    columns=(
        _made("quarantine_id", "STRING", "Hash of the record's place and timestamp on Kafka"),
        _made("reason", "STRING", "The first fault: column and what belongs there"),
        _made("faults", "ARRAY<STRING>", "All faults found"),
        _made("raw", "STRING", "The record's value, written as raw_encoding says", nullable=True),
        _made("raw_encoding", "STRING", "utf-8, base64 (it is no UTF-8) or masked (a dead letter's prefix)"),
        _made("length", "BIGINT", "Bytes of the value"),
        *_PLACE,
        _DAY,
    ),
    checks=(_one_of("raw_encoding", ("utf-8", "base64", "masked")), _not_negative("length")),
)

MODEL_CARDS = DeltaTable(
    name="model_cards",
    comment="One row a version of a model card that anything was judged under",
    key="model_card_digest",
    time="registered_at",
    statistics=("name", "version"),
    columns=(
        _made("model_card_digest", "STRING", "Digest of the card's canonical JSON"),
        _made("name", "STRING", "The model's name"),
        _made("version", "STRING", "The card's version"),
        _made("schema_version", "STRING", "Version of the ModelCard schema"),
        _made("owners", "ARRAY<STRING>", "Who answers for the model"),
        _made("signature_status", "STRING", "unsigned, signed or verified"),
        _made("card", "STRING", "The whole card as canonical JSON"),
        _made("registered_at", "TIMESTAMP", "When the audit job first met it"),
        _DAY,
    ),
    checks=(_matches("model_card_digest", _CONTENT_DIGEST, "must be sha256: and 64 hex digits"),),
)

BATCHES = DeltaTable(
    name="batches",
    comment="One row a topic of each batch of the audit job: what was read, and where every row of it went",
    key="batch_key",
    time="written_at",
    statistics=("kafka_topic",),
    columns=(
        _made("batch_key", "STRING", "Hash of checkpoint, batch and topic"),
        _made("checkpoint_id", "STRING", "The checkpoint's identity; a new one starts over from the first record"),
        _made("batch_id", "BIGINT", "Number of the batch under that checkpoint"),
        _made("kafka_topic", "STRING", "The topic"),
        _made("rows_read", "BIGINT", "Records read"),
        _made("rows_inserted", "BIGINT", "Rows this batch put into the table"),
        _made("rows_already_there", "BIGINT", "Records that were there before, with the same content"),
        _made("rows_quarantined", "BIGINT", "Records this batch put into quarantine"),
        _made("written_at", "TIMESTAMP", "When the figures were written"),
        _DAY,
    ),
    checks=(
        Check(
            "rows_read",
            "balance",
            "must be the sum of the other three",
            "rows_read = rows_inserted + rows_already_there + rows_quarantined",
        ),
        *map(_not_negative, ("rows_inserted", "rows_already_there", "rows_quarantined")),
    ),
)

TABLES = (
    VERDICTS,
    ALERTS,
    INCIDENTS,
    SCORES,
    DECISIONS,
    FEEDBACK,
    DEAD_LETTERS,
    BOOKS,
    QUARANTINE,
    MODEL_CARDS,
    BATCHES,
)
TOPIC_TABLES = tuple(table for table in TABLES if table.topic)
