"""One record of topic `alerts` as a line for a terminal, coloured by how urgent it is."""

from typing import Any

import click
import orjson

from schemas.alerts import AlertState
from schemas.times import epoch_ms

_COLOURS = {"critical": "red", "page": "red", "warning": "yellow", "ticket": "yellow", "info": "cyan"}
_OTHER_STATES = {AlertState.PENDING: "blue", AlertState.SUPPRESSED: "magenta", AlertState.RESOLVED: "green"}
_STATE_WIDTH = max(len(state) for state in AlertState)


def alert_line(value: bytes | None) -> str:
    """Return the line: when, state, severity, what, which series, figures, why, since when, and the fingerprint.

    Raises ValueError, TypeError, LookupError or AttributeError when it is no alert.
    """
    alert = orjson.loads(value or b"")
    labels, state = alert["labels"], AlertState(alert["state"])
    what = printable(f"{labels['alertname']} {alert['monitor']}/{alert['feature']}")
    words = [
        _clock(alert["updatedAt"]),
        _state(state, labels["severity"]),
        printable(f"{labels['severity']:<8}"),
        click.style(what, bold=state is AlertState.FIRING),
        printable(" ".join(f"{name}={text}" for name, text in alert["series"].items())),
        _figures(alert["evidence"]),
        _reason(alert),
        f"since {_clock(alert['active_at'])}",
        click.style(printable(alert["fingerprint"]), dim=True),
    ]
    return "  ".join(word for word in words if word)


def _state(state: AlertState, severity: str) -> str:
    """The state, firing in the colour of its severity."""
    shown = f"{state.upper():<{_STATE_WIDTH}}"
    if state is AlertState.FIRING:
        return click.style(shown, fg=_COLOURS.get(severity, "yellow"), bold=True)
    return click.style(shown, fg=_OTHER_STATES[state])


def _figures(evidence: list[dict[str, Any]]) -> str:
    """The last window's statistic, by what it was judged, and how many records it had."""
    if not evidence:
        return ""
    last = evidence[-1]
    judged = f"p={figure(last['p_value'])}" if last["p_value"] is not None else f"limit={figure(last['threshold'])}"
    return f"statistic={figure(last['statistic'])} {judged} n={last['n_window']}"


def _reason(alert: dict[str, Any]) -> str:
    """Why it is suppressed, or what probably causes it."""
    if suppression := alert.get("suppression"):
        return printable(f"{suppression['reason']}: {suppression['detail']}")
    causes = (alert.get("root_cause") or {}).get("causes") or []
    is_likely = "root_cause" in (alert.get("annotations") or {})  # the job's word for what is likely enough to be named
    return printable(f"cause: {causes[0]['name']} ({figure(causes[0]['score'])})") if causes and is_likely else ""


def printable(text: str) -> str:
    """Return `text` fit for a line of a terminal: labels come from telemetry, and may hold anything.

    >>> printable("a\\x1b[31m\\nb")
    'a\ufffd[31m\ufffdb'
    """
    return "".join(character if character.isprintable() else "\ufffd" for character in text)


def _clock(instant: str) -> str:
    """Return an instant without milliseconds. Raises ValueError when it is none."""
    epoch_ms(instant)
    return f"{instant[:10]} {instant[11:19]}Z"


def figure(number: float | None) -> str:
    """Return three digits of a number.

    >>> figure(0.18249), figure(0.0), figure(None)
    ('0.182', '0', '-')
    """
    return "-" if number is None else f"{number:.3g}"
