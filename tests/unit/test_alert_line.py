"""What `slacktide alerts` prints for one record."""

from pathlib import Path

import click
import orjson
import pytest

from infra.alert_line import alert_line
from infra.commands.alerts import Since, json_line, shown_line

GOLDEN = Path(__file__).parent.parent / "golden" / "alerts"
FIRING, RESOLVED = ((GOLDEN / f"{state}.json").read_bytes() for state in ("firing", "resolved"))


def changed(**changes: object) -> bytes:
    return orjson.dumps(orjson.loads(FIRING) | changes)


def test_a_transition_is_a_line() -> None:
    assert click.unstyle(alert_line(FIRING)) == (
        "2023-11-14 22:14:30Z  FIRING      warning   FeatureDrift chat/input_tokens  region=eu service.name=assistant  "
        "statistic=0.182 p=0.0007 n=412  since 2023-11-14 22:13:30Z  8838bd88645e3332"
    )
    assert click.unstyle(alert_line(RESOLVED)) == (
        "2023-11-14 22:16:00Z  RESOLVED    warning   FeatureDrift chat/input_tokens  region=eu service.name=assistant  "
        "statistic=0.031 p=0.84 n=412  since 2023-11-14 22:13:30Z  8838bd88645e3332"
    )


def test_a_threshold_stands_where_there_is_no_p() -> None:
    window = orjson.loads(FIRING)["evidence"][0] | {"p_value": None, "threshold": 0.15}
    assert "statistic=0.182 limit=0.15 n=412" in alert_line(changed(evidence=[window]))


def test_it_says_why_an_alert_is_kept_from_people_and_what_may_cause_it() -> None:
    suppression = {"reason": "change", "by": "c1", "detail": "deploy v2 of assistant", "until": None}
    shown = click.unstyle(alert_line(changed(state="suppressed", suppression=suppression)))
    assert "SUPPRESSED  warning" in shown
    assert "change: deploy v2 of assistant" in shown
    causes = [{"rank": 1, "kind": "signal", "name": "prompt_entropy", "score": 0.62, "evidence": {}}]
    likely = changed(root_cause={"causes": causes}, annotations={"root_cause": "Likeliest causes: prompt_entropy 0.62"})
    assert "cause: prompt_entropy (0.62)" in alert_line(likely)
    assert "cause" not in alert_line(
        changed(root_cause={"causes": causes})
    )  # ranked, but not likely enough to be named
    assert "cause" not in alert_line(changed(root_cause={"causes": []}))


def test_the_colour_is_the_severitys() -> None:
    def colour(**changes: object) -> str:
        return alert_line(changed(**changes)).split("\x1b[")[1].split("m")[0]

    labels = orjson.loads(FIRING)["labels"]
    found = {severity: colour(labels=labels | {"severity": severity}) for severity in ("page", "warning", "info")}
    assert found == {"page": "31", "warning": "33", "info": "36"}
    assert (colour(state="pending"), colour(state="resolved")) == ("34", "32")


def test_only_the_states_that_were_asked_for_are_shown() -> None:
    assert shown_line(FIRING, ["resolved"], as_json=True) is None
    assert shown_line(FIRING, ["firing", "resolved"], as_json=True) == FIRING.decode()
    assert shown_line(FIRING, [], as_json=False) == alert_line(FIRING)
    with pytest.raises(ValueError, match=r"unexpected|JSON"):
        shown_line(b"garbage", ["firing"], as_json=False)


def test_a_series_without_labels_leaves_no_gap() -> None:
    assert "chat/input_tokens  statistic=0.182" in click.unstyle(alert_line(changed(series={})))


def test_labels_can_neither_break_the_line_nor_colour_it() -> None:
    line = alert_line(changed(series={"tenant": "a\x1b[2J\nFIRING\u202e"}))
    assert "\n" not in line
    assert "\x1b[2J" not in line
    assert "\u202e" not in line


def test_json_is_the_record_itself() -> None:
    assert json_line(FIRING).encode() == FIRING


@pytest.mark.parametrize(
    "value", [b"", b"garbage", b"[]", b"{}", changed(labels={}), changed(evidence=[{}]), changed(state="over"), None]
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
