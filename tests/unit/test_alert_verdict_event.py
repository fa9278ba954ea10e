"""What the alert job takes as a verdict, and what becomes a dead letter with which reason."""

import orjson
import pytest

from schemas.dead_letters import Reason
from tests.alert_verdicts import DRIFTED, EPOCH_MS, UNKNOWN
from udfs.alerts.verdict_event import UnreadableVerdictError, decode_verdict, key_of, refuse_future


def changed(**changes: object) -> bytes:
    return orjson.dumps(orjson.loads(DRIFTED.to_json()) | changes)


def test_a_verdict_is_read_whole() -> None:
    event = decode_verdict(DRIFTED.to_json())
    assert (event.monitor, event.feature, event.series) == ("chat", "input_tokens", DRIFTED.series)
    assert event.drifted is True
    assert event.slide_ms == 30_000
    assert event.series_key == DRIFTED.series_key == key_of(DRIFTED.to_json())
    assert (event.window.window_end_ms, event.window.verdict_id) == (EPOCH_MS, DRIFTED.verdict_id)
    assert (event.window.statistic, event.window.p_value, event.window.n_window) == (0.182, 0.0007, 412)
    assert (event.window.alpha, event.window.min_effect, event.window.threshold) == (0.01, 0.1, None)
    assert (event.config_digest, event.reference_digest) == ("sha256:c0", "sha256:f0")
    assert event.model_card_digest == "sha256:ca"


def test_a_window_not_judged_is_unknown_whatever_it_says() -> None:
    assert decode_verdict(UNKNOWN.to_json()).drifted is None
    assert decode_verdict(changed(status="insufficient_data", drifted=True)).drifted is None
    assert decode_verdict(changed(status="ok", drifted=None)).drifted is None


@pytest.mark.parametrize(
    ("payload", "reason", "named"),
    [
        (None, Reason.NO_VALUE, "message"),
        (b"", Reason.NO_VALUE, "message"),
        (b"\xff\xfe\x00 garbage", Reason.MALFORMED_JSON, "message"),
        (b'{"schema_version": 1', Reason.MALFORMED_JSON, "message"),
        (b"[]", Reason.MALFORMED_JSON, "message"),
        (b"null", Reason.MALFORMED_JSON, "message"),
        (b'{"schema_version":1,"status":"\\ud800"}', Reason.MALFORMED_JSON, "message"),
        (b"{}", Reason.BAD_VALUE, "schema_version"),
        (changed(schema_version=2), Reason.BAD_VALUE, "schema_version"),
        (changed(monitor=None), Reason.BAD_VALUE, "monitor"),
        (changed(status=7), Reason.BAD_VALUE, "status"),
        (changed(drifted="yes"), Reason.BAD_VALUE, "drifted"),
        (changed(drifted=1), Reason.BAD_VALUE, "drifted"),
        (changed(series=["a"]), Reason.BAD_VALUE, "series"),
        (changed(series={"a": 1}), Reason.BAD_VALUE, "series"),
        (changed(slide_seconds=0), Reason.BAD_VALUE, "slide_seconds"),
        (changed(slide_seconds=-30), Reason.BAD_VALUE, "slide_seconds"),
        (changed(slide_seconds=True), Reason.BAD_VALUE, "slide_seconds"),
        (changed(slide_seconds=366 * 86_400 + 1), Reason.BAD_VALUE, "slide_seconds"),
        (changed(slide_seconds=1e300), Reason.BAD_VALUE, "slide_seconds"),
        (changed(window_end="9999-12-31T23:59:59.999Z"), Reason.BAD_TIME, "window_end"),
        (changed(window_end="0001-01-01T00:00:00Z"), Reason.BAD_TIME, "window_end"),
        (changed(window_end="1969-12-31T23:59:59.999Z"), Reason.BAD_TIME, "window_end"),
        (changed(statistic="0.1"), Reason.BAD_VALUE, "statistic"),
        (changed(n_window=-1), Reason.BAD_VALUE, "n_window"),
        (changed(n_window=1.5), Reason.BAD_VALUE, "n_window"),
        (changed(window_end="yesterday"), Reason.BAD_TIME, "window_end"),
        (changed(window_end="2026-01-01T00:00:00"), Reason.BAD_TIME, "window_end"),
        (changed(window_end=1700000000), Reason.BAD_VALUE, "window_end"),
        (changed(series_key='["other","input_tokens",{}]'), Reason.BAD_ID, "series_key"),
        (changed(series_key=None), Reason.BAD_ID, "series_key"),
    ],
)
def test_unreadable(payload: bytes | None, reason: Reason, named: str) -> None:
    with pytest.raises(UnreadableVerdictError) as caught:
        decode_verdict(payload)
    assert caught.value.reason == reason
    assert named in caught.value.detail
    assert key_of(payload) == ""


@pytest.mark.parametrize("name", sorted(orjson.loads(DRIFTED.to_json())))
def test_a_missing_field_never_raises_anything_else(name: str) -> None:
    body = orjson.loads(DRIFTED.to_json())
    del body[name]
    try:
        decode_verdict(orjson.dumps(body))
    except UnreadableVerdictError as error:
        assert name in error.detail  # noqa: PT017  (optional fields may be missing)


def test_the_detail_quotes_no_value() -> None:
    with pytest.raises(UnreadableVerdictError) as caught:
        decode_verdict(changed(window_end="alice@example.com"))
    assert "alice" not in str(caught.value)


def test_a_window_from_the_future_is_refused() -> None:
    event = decode_verdict(DRIFTED.to_json())
    refuse_future(event, EPOCH_MS - 300_000, max_clock_skew_seconds=300)
    refuse_future(event, None, max_clock_skew_seconds=300)
    with pytest.raises(UnreadableVerdictError) as caught:
        refuse_future(event, EPOCH_MS - 300_001, max_clock_skew_seconds=300)
    assert caught.value.reason == Reason.CLOCK_SKEW
