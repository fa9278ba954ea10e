"""Records as they stand on the audited topics: good ones, and each kind of bad one with the fault it must be told."""

import random
from collections.abc import Iterator
from typing import Any, NamedTuple

import orjson

from schemas.alerts import Alert, AlertState, EvidenceWindow, Suppression, SuppressionReason
from schemas.dead_letters import dead_letter_record
from schemas.decisions import Action, Decision
from schemas.feedback import Feedback
from schemas.ids import record_id
from schemas.incidents import COUNTS, Incident, IncidentEvent
from schemas.judge_report import JudgeReport
from schemas.model_card import CARDS_FOLDER, load_model_card
from schemas.scores import RequestScore
from schemas.verdicts import Verdict

CARD = CARDS_FOLDER / "azure_llm_conversation_2023.json"
CARD_DIGEST = load_model_card(CARD).digest
UNKNOWN_CARD_DIGEST = "sha256:" + "0" * 64
START_MS = 1_700_000_000_000
SLIDE_MS = 30_000
SECRET = b"Alice Example, alice@example.com, card 4242 4242"


def verdict(number: int, **changes: Any) -> Verdict:
    """The verdict of window `number`; every third feature, every tenth window drifted."""
    drifted = number % 10 == 0
    facts = {
        "monitor": "chat",
        "series": {"tenant": "acme"},
        "feature": f"feature_{number % 3}",
        "window_start_ms": START_MS + SLIDE_MS * number,
        "window_end_ms": START_MS + SLIDE_MS * number + 300_000,
        "slide_seconds": 30.0,
        "test": "ks_two_sample",
        "method": "asymptotic",
        "status": "ok",
        "statistic": 0.2 + number / 10_000 if drifted else 0.02,
        "p_value": 0.0 if drifted else 0.5,
        "log10_p_value": -400.0 if drifted else -0.3010299956639812,
        "effect": 0.2 if drifted else 0.02,
        "published_score": 1.0 if drifted else 0.0,
        "alpha": 0.01,
        "min_effect": 0.05,
        "drifted": drifted,
        "n_reference": 1000,
        "n_reference_null": 0,
        "n_window": 500,
        "n_window_null": 3,
        "n_infinite": 1,
        "config_digest": "sha256:" + "c" * 64,
        "reference_digest": "sha256:" + "d" * 64,
        "model_card_digest": CARD_DIGEST,
        "evidence": {"quantiles": [1.0, 2.5], "note": 'it\'s "quoted"'},
    }
    return Verdict(**(facts | changes))


def unknown_verdict(number: int) -> Verdict:
    """A verdict without figures."""
    names = ("statistic", "p_value", "log10_p_value", "effect", "published_score", "drifted")
    return verdict(number, status="insufficient_data", n_window=2, **dict.fromkeys(names))


def alert(number: int, state: AlertState) -> bytes:
    """The record of alert `number` in a state; a suppressed one is silenced for an hour."""
    start_ms = START_MS + 600_000 * number
    end_ms = start_ms + (120_000 if state is AlertState.RESOLVED else 900_000)
    silenced = Suppression(SuppressionReason.SILENCE, "s1", "silenced by ann: load test", start_ms + 3_600_000)
    return Alert(
        state=state,
        fingerprint=f"{number:016x}",
        labels={"alertname": "Drift", "monitor": "chat", "feature": "feature_0", "severity": "page"},
        annotations={"summary": f"drift {number}", "description": "drifted"},
        active_at_ms=start_ms - SLIDE_MS,
        starts_at_ms=start_ms,
        ends_at_ms=end_ms,
        updated_at_ms=end_ms if state is AlertState.RESOLVED else start_ms,
        generator_url="http://127.0.0.1/",
        monitor="chat",
        feature="feature_0",
        series={"tenant": "acme"},
        model_card_digest=CARD_DIGEST,
        evidence=(EvidenceWindow("a" * 32, start_ms, 0.2, 0.0, 500, 0.01, 0.05, None),),
        incident_id="b" * 32 if state is AlertState.SUPPRESSED else "",
        suppression=silenced if state is AlertState.SUPPRESSED else None,
        root_cause={"status": "ok", "causes": []} if state is AlertState.SUPPRESSED else None,
        episode=1 if state is AlertState.SUPPRESSED else 0,
    ).to_json()


def incident(number: int, event: IncidentEvent, told: int, **changes: Any) -> bytes:
    """Notification `told` of the incident that began with alert `number`."""
    start_ms = START_MS + 600_000 * number
    over = event is IncidentEvent.RESOLVED
    first = Alert.from_json(alert(number, AlertState.RESOLVED if over else AlertState.FIRING))
    facts: dict[str, Any] = {
        "incident_id": record_id("incident", number),
        "number": told,
        "event": event,
        "severity": "page",
        "group_labels": {"service_name": "chat"},
        "common_labels": first.labels,
        "common_annotations": first.annotations,
        "alerts": [first],
        "truncated": told - 1,
        "counts": {"firing": 0 if over else told, "suppressed": 1, "resolved": int(over), "not_listed": 0},
        "started_at_ms": start_ms,
        "updated_at_ms": start_ms + 60_000 * (told - 1),
        "root_cause": {"status": "ok", "causes": [{"name": "deploy of chat"}]} if told > 1 else None,
    }
    return Incident(**(facts | changes)).to_json()


def score(number: int, **changes: Any) -> RequestScore:
    """The score of request `number`, one a minute; every fourth has no figure, every second stands for ten requests."""
    without = number % 4 == 3
    facts: dict[str, Any] = {
        "trace_id": f"{number:032x}",
        "span_id": f"{number:016x}",
        "event_time_ms": START_MS + 60_000 * number,
        "labels": {"service_name": "chat", "model": f"m{number % 2}"},
        "scorer": "factuality",
        "scorer_version": "1",
        "model_digest": "sha256:" + "e" * 64,
        "score": "factuality",
        "value": None if without else number / 100,
        "status": "no_data" if without else "ok",
        "sampling_rate": 0.1 if number % 2 else 1.0,
        "truncated": number % 5 == 0,
        "judge": JudgeReport(0.94, 500, "2026-11-30", "sha256:" + "f" * 64),
    }
    return RequestScore(**(facts | changes))


def decision(number: int, **changes: Any) -> bytes:
    """The review of request `number`."""
    cause = score(number)
    facts: dict[str, Any] = {
        "action": Action.REVIEW,
        "subject": cause.trace_id,
        "subject_type": "request",
        "rule": "low_score(factuality)",
        "reason": "factuality 0.01 is below 0.5",
        "cause_id": cause.score_id,
        "event_time_ms": cause.event_time_ms,
        "labels": cause.labels,
        "inputs": {"value": cause.value, "below": 0.5},
        "config_digest": "sha256:" + "c" * 64,
    }
    return Decision(**(facts | changes)).to_json()


def feedback(number: int, **changes: Any) -> bytes:
    """What was said of alert `number` a minute after it fired; its note must never reach Delta."""
    start_ms = START_MS + 600_000 * number
    facts: dict[str, Any] = {
        "score": "alert",
        "value": 0.0,
        "confidence": 1.0,
        "label_time_ms": start_ms + 60_000,
        "event_time_ms": start_ms,
        "source": "person",
        "series": {"tenant": "acme"},
        "fingerprint": f"{number:016x}",
        "note": SECRET.decode(),
    }
    facts |= changes
    name = record_id(number, facts["score"], facts["label_time_ms"])
    return Feedback(**({"feedback_id": name} | facts)).to_json()


def labels() -> list[bytes]:
    """Alert 0: acknowledged, called false, and then true after all. Alert 1: false. Alert 2: nothing. And a request."""
    later = {"label_time_ms": START_MS + 120_000}
    thumb = orjson.loads(feedback(5, fingerprint=None, trace_id="f" * 32, score="helpful", note=None))
    del thumb["value"]
    thumb |= {"label": "good", "label_time": "2023-11-15T01:00:00+02:00"}
    return [
        feedback(0, score="acknowledged", value=1.0, note=None),
        feedback(0),
        feedback(0, value=1.0, **later),
        feedback(1),
        orjson.dumps(thumb),
    ]


def dead_letter(number: int, **changes: Any) -> bytes:
    """A dead letter whose bytes hold what must never reach Delta."""
    facts = {
        "reason": "late" if number % 2 else "bad_value",
        "detail": "event_time: older than the watermark",
        "job": "ingest",
        "topic": "otlp_spans",
        "partition": 0,
        "offset": number,
        "index": 0,
        "payload": SECRET,
        "kafka_timestamp_ms": START_MS + number,
    }
    return dead_letter_record(**(facts | changes))


def book(number: int, **changes: Any) -> bytes:
    """A book entry; each number is an interval in which ingest counted two spans in and two out."""
    entry = {"job": "ingest", "kind": "spans", "count": 2, "window_end_ms": START_MS + 2000 * number}
    return orjson.dumps(entry | changes)


class Bad(NamedTuple):
    """A record, the topic it is on, and how the reason begins for which it is quarantined."""

    topic: str
    value: bytes | None
    reason: str


def bad_records() -> list[Bad]:
    """One record a kind of fault."""
    good = verdict(0).to_json()
    letter = orjson.loads(dead_letter(0))
    scored = orjson.loads(score(1).to_json())

    def changed(**changes: Any) -> bytes:
        return orjson.dumps(orjson.loads(good) | changes)

    def cut(old: bytes, new: bytes) -> bytes:
        assert old in good
        return good.replace(old, new)

    return [
        Bad("verdicts", None, "value: must not be empty"),
        Bad("verdicts", b"", "value: must be one JSON object"),
        Bad("verdicts", b"\xff\xfe\x00", "value: must not be empty, and must be UTF-8"),
        Bad("verdicts", b"5", "value: must be one JSON object"),
        Bad("verdicts", b"[]", "value: must be one JSON object"),
        Bad("verdicts", b"null", "value: must be one JSON object"),
        Bad("verdicts", good[:-7], "value: must be one JSON object"),
        Bad("verdicts", good + b" x", "value: must be one JSON object"),
        Bad("verdicts", good + b"," + good, "value: must be one JSON object"),
        Bad("verdicts", b'{"a":' * 5000, "value: must be one JSON object"),
        Bad("verdicts", b"{}", "verdict_id: must not be missing"),
        Bad("verdicts", changed(p_value=2), "p_value: must be null or in 0 to 1"),
        Bad("verdicts", cut(b'"p_value":0.0', b'"p_value":NaN'), "p_value: must be null or in 0 to 1"),
        Bad("verdicts", cut(b'"effect":0.2', b'"effect":1e999'), "effect: must be null or finite"),
        Bad("verdicts", cut(b'"effect":0.2', b'"effect":-Infinity'), "effect: must be null or finite"),
        Bad("verdicts", cut(b'"chat"', b'"chat","monitor":"b"'), "value: must be strict JSON"),
        Bad("verdicts", changed(p_value="0.5"), "p_value: must be a number"),
        Bad("verdicts", changed(drifted=None), "drifted: must be null exactly where status is not ok"),
        Bad("verdicts", changed(status="low_traffic"), "statistic: must be null exactly where status is not ok"),
        Bad("verdicts", changed(status="fine"), "status: must be one of 'ok', 'no_data'"),
        Bad("verdicts", changed(monitor={"a": 1}), "monitor: must be a text"),
        Bad("verdicts", changed(monitor=None), "monitor: must not be missing"),
        Bad("verdicts", changed(series=[1]), "series: must be an object of texts"),
        Bad("verdicts", changed(window_end="2023"), "window_end: must be a time"),
        Bad("verdicts", changed(window_end="2023-02-31T00:00:00Z"), "window_end: must be a time"),
        Bad("verdicts", changed(window_end=orjson.loads(good)["window_start"]), "window_end: must be after"),
        Bad("verdicts", changed(n_window=-1), "n_window: must be 0 or more"),
        Bad("verdicts", changed(n_window=1.5), "n_window: must be an integer"),
        Bad("verdicts", cut(b'"n_window":500', b'"n_window":' + b"9" * 30), "n_window: must be an integer"),
        Bad("verdicts", changed(schema_version=2), "schema_version: must be 1"),
        Bad("verdicts", changed(verdict_id="A" * 32), "verdict_id: must be 32 hex digits"),
        Bad("verdicts", changed(drifted="true"), "drifted: must be true or false"),
        Bad("verdicts", changed(evidence="x"), "evidence: must be an object or a list"),
        Bad("alerts", alert(0, AlertState.FIRING).replace(b'"firing"', b'"on fire"'), "state: must be one of"),
        Bad("incidents", incident(0, IncidentEvent.OPENED, 0), "number: must be 1 or more"),
        Bad("incidents", incident(0, IncidentEvent.OPENED, 1, counts={"firing": 1}), "counts: must have firing, suppr"),
        Bad(
            "incidents",
            incident(0, IncidentEvent.RESOLVED, 1, counts=dict.fromkeys(COUNTS, 1)),
            "status: must be resolved exactly where event is",
        ),
        Bad("incidents", incident(0, IncidentEvent.OPENED, 1, updated_at_ms=0), "updated_at: must not be before"),
        Bad("scores", orjson.dumps(scored | {"sampling_rate": 0}), "sampling_rate: must be above 0 and at most 1"),
        Bad(
            "scores", orjson.dumps(scored | {"value": None}), "score_value: must be null exactly where status is not ok"
        ),
        Bad(
            "scores", score(1).to_json().replace(b'"value":0.01', b'"value":NaN'), "score_value: must be null or finite"
        ),
        Bad("scores", orjson.dumps(scored | {"judge": "me"}), "judge: must be an object or a list"),
        Bad("decisions", decision(0).replace(b'"review"', b'"panic"'), "action: must be one of 'review', 'scale'"),
        Bad("decisions", decision(0)[:-1], "value: must be one JSON object"),
        Bad("feedback", feedback(9, value=1.5), "label_value: must be null or in 0 to 1"),
        Bad("feedback", feedback(9, label_time_ms=0), "label_time: must be at most 300 s before event_time"),
        Bad(
            "feedback",
            feedback(9, trace_id="f" * 32, fingerprint=None).replace(b'"trace_id"', b'"x"'),
            "trace_id: must",
        ),
        Bad("feedback", feedback(9).replace(b'"note":"', b'"note":5,"n":"'), "note: must be a text"),
        Bad("feedback", feedback(9)[:-1], "value: must be one JSON object"),
        Bad("dead_letters", dead_letter(0, reason="boredom"), "reason: must be one of"),
        Bad("dead_letters", dead_letter(0, kafka_timestamp_ms=2**62), "kafka_timestamp_ms: must be a time"),
        Bad("dead_letters", orjson.dumps(letter | {"payload_base64": "!"}), "masked_prefix: can't be made"),
        Bad("dead_letters", dead_letter(0)[:-2], "value: must be one JSON object"),
        Bad("dead_letters", SECRET, "value: must be one JSON object"),
        Bad("books", book(0, count=-1), "count: must be 0 or more, but for kind waiting, which counts down too"),
        Bad("books", book(0, window_end_ms=2**62), "window_end_ms: must be a time"),
    ]


def mutated(count: int, seed: int) -> Iterator[tuple[str, bytes]]:
    """Yield `count` records of all topics with bytes changed, cut out or put in at random."""
    rng = random.Random(seed)
    makers = {
        "verdicts": lambda: verdict(1_000 + rng.randrange(1000)).to_json(),
        "alerts": lambda: alert(rng.randrange(100), AlertState.FIRING),
        "incidents": lambda: incident(rng.randrange(100), IncidentEvent.OPENED, 1),
        "scores": lambda: score(rng.randrange(1000)).to_json(),
        "decisions": lambda: decision(rng.randrange(1000)),
        "feedback": lambda: feedback(rng.randrange(1000)),
        "dead_letters": lambda: dead_letter(rng.randrange(1000)),
        "books": lambda: book(rng.randrange(1000)),
    }
    for _ in range(count):
        topic = rng.choice(list(makers))
        value = bytearray(makers[topic]())
        for _ in range(rng.randint(1, 4)):
            at = rng.randrange(len(value))
            piece = rng.choice([b"", b"\x00", b"\xff", b'"', b"{", b"}", b"\\", b"1e999", b"null", b"-", b"\xc3\x28"])
            value[at : at + rng.randint(0, 3)] = piece
        yield topic, bytes(value)
