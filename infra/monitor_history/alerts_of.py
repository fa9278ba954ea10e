"""What the alert job would have sent of a backtest's verdicts."""

from collections.abc import Iterable, Iterator

from schemas.alerts import Alert
from schemas.verdicts import Verdict
from udfs.alerts.lifecycle import step
from udfs.alerts.rule import AlertRules
from udfs.alerts.state import LifecycleState
from udfs.alerts.verdict_event import decode_verdict


def alerts_of(verdicts: Iterable[Verdict], rules: AlertRules) -> Iterator[Alert]:
    """Yield the transitions of every series; the verdicts of one series must come in the order of their windows."""
    states: dict[str, LifecycleState] = {}
    for verdict in verdicts:
        event = decode_verdict(verdict.to_json())
        state, alerts = step(states.get(event.series_key, LifecycleState()), event, rules.for_monitor(event.monitor))
        states[event.series_key] = state
        yield from alerts
