"""What of a monitors file a drift job's state is made of: which edits keep it, and which need a fresh start.

Flink maps the state of an SQL job by the shape of its graph, and neither the length of a window nor a field nor a
reference is part of that. So after some edits it takes over what the new job can't read, or, worse, reads as something
else (docs/operations.md has what was seen of each). `plan_of_state` says all that the state depends on, and the
submission compares it with what the job had that wrote the state.
"""

import hashlib
from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from jobs.monitors import Monitor, Monitors
from udfs.judging.two_streams import TwoStreams
from udfs.judging.window_judge import Input, InputKind, WindowJudge
from udfs.judging.with_findings import WithFindings

Plan = dict[str, Any]
VERSION = 1
_PROBED = 100


def plan_of_state(monitors: Monitors) -> Plan:
    """Return what the state of a job with these monitors depends on, as JSON has it.

    Thresholds, budgets, model cards, `watermark_bound_seconds` and the like are not in it: they may change.
    """
    follows = {"verdicts": bool(monitors.followers or monitors.feedback), "labels": bool(monitors.feedback)}
    return {"version": VERSION, "signals": follows, "monitors": [_of_monitor(monitor) for monitor in monitors.monitors]}


def _of_monitor(monitor: Monitor) -> Plan:
    return {
        "name": monitor.name,
        "group_by": list(monitor.group_by),
        "slide_seconds": monitor.slide_ms / 1000,
        "window_seconds": monitor.window_ms / 1000,
        "fields": [f"{given.field} as {given.kind.name.lower()}" for given in monitor.inputs],
        "tests": {name: layout_of(judge) for name, judge in _named(monitor).items()},
        "slices_in_turn": [machine.uid for machine in monitor.machines],
    }


def _named(monitor: Monitor) -> dict[str, WindowJudge]:
    """The monitor's judges by a name for people, in their order."""
    found: dict[str, WindowJudge] = {}
    for judge in monitor.judges:
        parts = [judge.main, *judge.beside] if isinstance(judge, WithFindings) else [judge]
        kinds = " with ".join(type(part).__name__ for part in parts)
        # A label is kept apart from many others because it is the baseline.
        against = f" against {judge.baseline}" if isinstance(judge, TwoStreams) and judge.baseline else ""
        name = f"{kinds}({', '.join(given.field for given in judge.inputs)}{against})"
        while name in found:
            name += "'"
        found[name] = judge
    return found | {type(judge).__name__: judge for judge in monitor.capped}


def layout_of(judge: WindowJudge) -> str:
    """A digest of the sketch of some made-up values: judges that sketch these alike can share their sketches."""
    return hashlib.sha256(judge.sketch(*map(_probe, judge.inputs))).hexdigest()[:16]


def _probe(given: Input) -> NDArray[Any]:
    """More labels than a judge keeps apart, numbers of every size; vectors are all null, for their length is the
    reference's."""
    if given.kind is InputKind.NUMBER:
        sizes = np.logspace(-12.0, 12.0, _PROBED // 2)
        return np.concatenate([-sizes, sizes])
    texts = [f"probe {number}" for number in range(_PROBED)]
    return np.array(texts if given.kind is InputKind.TEXT else [None] * _PROBED, dtype=object)


def hindrances(before: Mapping[str, Any], after: Mapping[str, Any]) -> list[tuple[str, str]]:
    """Return why a job of plan `after` can't take over the state of one of plan `before`: (field, problem), if any.

    >>> chat = {"name": "chat", "group_by": [], "slide_seconds": 30.0, "window_seconds": 300.0, "fields": [],
    ...         "tests": {}, "slices_in_turn": []}
    >>> plan = {"version": 1, "signals": {"verdicts": False, "labels": False}, "monitors": [chat]}
    >>> hindrances(plan, plan | {"monitors": [chat | {"window_seconds": 600.0}]})
    [('chat.window_seconds', 'is 600, was 300')]
    """
    if before.get("version") != after["version"]:
        return [("(file)", "the state was kept in another form, by another version of Slacktide")]
    names, had = ([monitor["name"] for monitor in plan["monitors"]] for plan in (after, before))
    if names != had:
        return [("monitors", _changed(had, names))]
    found = [
        (f"{new['name']}.{field}", problem)
        for old, new in zip(before["monitors"], after["monitors"], strict=True)
        for field, problem in _of_one(old, new)
    ]
    for name, said in (("verdicts", "signals"), ("labels", "the signal `feedback`")):
        if before["signals"][name] != after["signals"][name]:
            change = "the last of {} was taken out" if before["signals"][name] else "there was no {} before"
            found.append(("signals", change.format(said)))
    return found


def _of_one(old: Mapping[str, Any], new: Mapping[str, Any]) -> list[tuple[str, str]]:
    found = [
        (name, f"is {new[name]:g}, was {old[name]:g}")
        for name in ("window_seconds", "slide_seconds")
        if new[name] != old[name]
    ]
    if new["group_by"] != old["group_by"]:
        found.append(("group_by", _changed(old["group_by"], new["group_by"])))
    if list(new["tests"]) != list(old["tests"]):
        found.append(("features, tests, findings", _changed(list(old["tests"]), list(new["tests"]))))
    elif new["tests"] != old["tests"]:
        other = [name for name, layout in new["tests"].items() if layout != old["tests"][name]]
        found.append(("reference", f"is another, or test parameters are others, for {', '.join(other)}"))
    if new["slices_in_turn"] != old["slices_in_turn"]:
        found.append(("window_requests, same_hour", _changed(old["slices_in_turn"], new["slices_in_turn"])))
    if new["fields"] != old["fields"] and not found:
        found.append(("features, tests", _changed(old["fields"], new["fields"])))
    return found


def _changed(old: Sequence[str], new: Sequence[str]) -> str:
    """Say in words how a list of names changed."""
    came, went = [name for name in new if name not in old], [name for name in old if name not in new]
    said = [f"{', '.join(names)} {word}" for names, word in ((came, "is new"), (went, "is gone")) if names]
    return "; ".join(said) if said else f"the order is another: {', '.join(new)}; it was {', '.join(old)}"
