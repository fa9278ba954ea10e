"""The Kafka topics: name, key, partitions of the embedded broker, retention. The one list everything else reads."""

from dataclasses import dataclass

DAY_MS = 86_400_000


@dataclass(frozen=True, slots=True)
class Topic:
    """One topic as the embedded broker creates it; on another broker, the advice for whoever creates it.

    `key` says in words what the record key is. `max_message_bytes` is the topic's `max.message.bytes`.
    """

    name: str
    key: str
    record: str
    partitions: int = 2
    retention_ms: int = 7 * DAY_MS
    max_message_bytes: int = 16 * 1024 * 1024


OTLP_SPANS = Topic("otlp_spans", "any", "one OTLP ExportTraceServiceRequest, otlp_proto or otlp_json")
OTLP_METRICS = Topic("otlp_metrics", "any", "one OTLP ExportMetricsServiceRequest, otlp_proto or otlp_json")
REQUESTS = Topic("requests", "trace id", "one LLM request: flat, typed, de-duplicated")
MEASUREMENTS = Topic("measurements", "series", "one metric point: gauge value, counter delta or histogram delta")
SCORES = Topic("scores", "trace id", "one semantic score of one request")
VERDICTS = Topic("verdicts", "series key", "one judged window")
ALERTS = Topic("alerts", "fingerprint", "one alert lifecycle transition", partitions=1)
DECISIONS = Topic("decisions", "subject", "what should be done, by which rule, on which inputs", partitions=1)
INCIDENTS = Topic("incidents", "incident id", "one notification of a group of alerts with one cause", partitions=1)
CHANGES = Topic("changes", "service", "one CloudEvent: what was changed", partitions=1, retention_ms=30 * DAY_MS)
SILENCES = Topic("silences", "silence id", "what is silenced, until when", partitions=1, retention_ms=365 * DAY_MS)
FEEDBACK = Topic("feedback", "trace id or fingerprint", "one late label of a request or an alert", partitions=1)
DEAD_LETTERS = Topic("dead_letters", "source topic", "raw bytes, reason, place of what could not be used", partitions=1)
BOOKS = Topic("books", "job", "how many records of each kind a job counted in an interval", partitions=1)

ALL_TOPICS = (
    OTLP_SPANS,
    OTLP_METRICS,
    REQUESTS,
    MEASUREMENTS,
    SCORES,
    VERDICTS,
    ALERTS,
    INCIDENTS,
    CHANGES,
    SILENCES,
    DECISIONS,
    FEEDBACK,
    DEAD_LETTERS,
    BOOKS,
)
