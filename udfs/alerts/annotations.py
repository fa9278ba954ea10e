"""What a person reads in an alert: a summary, a sentence of evidence, and the rule's own notes."""

from schemas.alerts import AlertState, EvidenceWindow
from udfs.alerts.root_cause import Cause, RootCause
from udfs.alerts.rule import AlertRule
from udfs.alerts.verdict_event import VerdictEvent


def alert_annotations(
    rule: AlertRule,
    event: VerdictEvent,
    state: AlertState,
    evidence: tuple[EvidenceWindow, ...],
    flapping: bool = False,
) -> dict[str, str]:
    """Return `summary`, `description` and, where set, `runbook_url`; the rule's `annotations` go over them."""
    subject = f"{event.feature} of monitor {event.monitor}"
    happened, nothing = ("breaches its objective", "a breach") if event.kind == "slo" else ("has drifted", "drift")
    windows = f"{len(evidence)} window{'' if len(evidence) == 1 else 's'} in a row"
    if state is AlertState.RESOLVED:
        summary = f"{subject} is back"
        found = f"{windows} without {nothing}"
    else:
        may = " (pending: the first window of a row)" if state is AlertState.PENDING else ""
        summary = f"{subject} {happened}{may}"
        found = f"{windows} {_why(evidence[-1])}".rstrip()
    ours = {"summary": summary, "description": f"{found}; the last: {_figures(evidence[-1])}."}
    if flapping:
        ours["flapping"] = (
            f"It fired {rule.flap_firings} times within {rule.flap_within_seconds:g} s, and now stays firing until "
            f"{rule.flap_quiet_seconds:g} s have passed without {nothing}."
        )
    if rule.runbook_url:
        ours["runbook_url"] = rule.runbook_url
    return ours | dict(rule.annotations)


def _why(window: EvidenceWindow) -> str:
    """What the windows had in common."""
    if window.alpha is not None:
        return f"with p below {window.alpha:g}"
    return "" if window.threshold is None else f"beyond {window.threshold:.4g}"


def _figures(window: EvidenceWindow) -> str:
    statistic = "unknown" if window.statistic is None else f"{window.statistic:.4g}"
    p_value = "" if window.p_value is None else f", p {window.p_value:.2g}"
    return f"statistic {statistic}{p_value}, n {window.n_window}"


def cause_line(found: RootCause, named_from: float = 0.0) -> str:
    """Return the ranking in one line: the first three causes from a score on, and the confidence; "" without any.

    >>> from schemas.status import Status
    >>> from udfs.alerts.root_cause import Cause
    >>> cause = Cause(1, "signal", "prompt_entropy", 0.931, {})
    >>> cause_line(RootCause(Status.OK, 0.84, 1.0, (cause,)))
    'Likeliest causes: prompt_entropy 0.93; confidence 0.84 over 100 % of the weights.'
    """
    likely = [cause for cause in found.causes[:3] if cause.score >= named_from]
    if not likely:
        return ""
    named = ", ".join(f"{_cause_name(cause)} {cause.score:.2f}" for cause in likely)
    if found.confidence is None:
        return f"Likeliest causes: {named}; no signal observed."
    confidence = f"confidence {found.confidence:.2f} over {100 * found.coverage:.0f} % of the weights"
    return f"Likeliest causes: {named}; {confidence}."


def _cause_name(cause: Cause) -> str:
    if cause.kind == "signal":
        return cause.name
    summary = f" ({cause.evidence['summary']})" if cause.evidence["summary"] else ""
    return f"{cause.evidence['kind']} of {cause.evidence['service']}{summary}"
