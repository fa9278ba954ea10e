"""What `slacktide alerts` prints for one record."""

from pathlib import Path

import click
import orjson
import pytest

from infra.commands.alerts import Since, alert_line, json_line

GOLDEN = Path(__file__).parent.parent / "golden" / "alerts"
FIRING, RESOLVED = ((GOLDEN / f"{state}.json").read_bytes() for state in ("firing", "resolved"))


def changed(**changes: object) -> bytes:
    return orjson.dumps(orjson.loads(FIRING) | changes)


def test_a_transition_is_a_line() -> None:
    assert click.unstyle(alert_line(FIRING)) == (
        "2023-11-14 22:14:30Z  FIRING    warning   FeatureDrift chat/input_tokens  region=eu service.name=assistant  "
        "D=0.182 p=0.0007 n=412  since 2023-11-14 22:13:30Z"
    )
    assert click.unstyle(alert_line(RESOLVED)) == (
        "2023-11-14 22:16:00Z  RESOLVED  warning   FeatureDrift chat/input_tokens  region=eu service.name=assistant  "
        "D=0.031 p=0.84 n=412  since 2023-11-14 22:13:30Z"
    )


def test_a_series_without_labels_leaves_no_gap() -> None:
    assert "chat/input_tokens  D=0.182" in click.unstyle(alert_line(changed(series={})))


def test_labels_can_neither_break_the_line_nor_colour_it() -> None:
    line = alert_line(changed(series={"tenant": "a\x1b[2J\nFIRING\u202e"}))
    assert "\n" not in line
    assert "\x1b[2J" not in line
    assert "\u202e" not in line


def test_json_is_the_record_itself() -> None:
    assert json_line(FIRING).encode() == FIRING


@pytest.mark.parametrize(
    "value", [b"", b"garbage", b"[]", b"{}", changed(labels={}), changed(evidence=[]), changed(state="pending"), None]
)
def test_no_alert_is_said_so(value: bytes) -> None:
    with pytest.raises((ValueError, TypeError, LookupError, AttributeError)):
        alert_line(value)


def test_since_takes_an_instant_or_an_age() -> None:
    assert Since().convert("2023-11-14T22:14:30Z", None, None) == 1_700_000_070_000
    hour, now = Since().convert("1h", None, None), Since().convert("0s", None, None)
    assert 3_599_000 <= now - hour <= 3_601_000
    with pytest.raises(click.BadParameter, match="2h"):
        Since().convert("yesterday", None, None)
