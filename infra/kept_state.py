"""Whether a job may take over a state: what it is made of, noted at each submission, held against the new job's.

Flink itself refuses only a state that it can't map by the shape of the job. What fits in shape and not in meaning it
takes, and then the job fails at every start, or judges windows on half of their requests (docs/operations.md).
"""

import re
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import orjson

from infra.flink_home import FlinkHome
from jobs.kafka_client import ConfigurationError
from jobs.monitor_state import hindrances

# .../checkpoints/JOB_ID/chk-7, or .../savepoints/savepoint-FIRST_SIX-487716b47641
_JOB_OF_PATH = re.compile(r"(?:^|/)(?:([0-9a-f]{32})/chk-\d+|savepoint-([0-9a-f]{6})-[0-9a-f]+)/?$")


def note_plan(home: FlinkHome, job_id: str, plan: Mapping[str, Any]) -> None:
    """Note what the state of a job just submitted is made of."""
    file = _notes(home) / f"{job_id}.json"
    file.parent.mkdir(parents=True, exist_ok=True)
    file.write_bytes(orjson.dumps(plan))


def noted_plan(home: FlinkHome, job_id: str) -> dict[str, Any] | None:
    """Return what was noted of the job whose id starts so, the newest; None where nothing was."""
    files = sorted(_notes(home).glob(f"{job_id}*.json"), key=lambda file: file.stat().st_mtime)
    return orjson.loads(files[-1].read_bytes()) if files else None


def plan_of_savepoint(home: FlinkHome, path: str) -> dict[str, Any] | None:
    """Return what was noted of the job that wrote a checkpoint or savepoint; None where that can't be told."""
    found = _JOB_OF_PATH.search(path)
    return noted_plan(home, found[1] or found[2]) if found else None


def refuse_other_state(before: Mapping[str, Any], after: Mapping[str, Any], file: str, savepoint: str) -> None:
    """Raise ConfigurationError where a job of plan `after` can't take over what one of plan `before` wrote."""
    found = hindrances(before, after)
    if found:
        (field, problem), *others = found
        more = "".join(f"; {name} {what}" for name, what in others)
        wanted = f"with which the state in {savepoint} can't be taken over"
        remedy = f"Put it back as it was, or start fresh, without a savepoint. {cost_of_fresh_start(before)}"
        raise ConfigurationError(file, field, f"{problem}{more}, {wanted}", remedy)


def cost_of_fresh_start(before: Mapping[str, Any]) -> str:
    """Say what is lost with the state of a job of this plan."""
    longest = max((monitor["window_seconds"] for monitor in before.get("monitors", ())), default=0.0)
    said = (
        f"A fresh start reads on where the old job stopped, and costs the windows open then, up to {longest:g} s of "
        "requests a series: they are judged on what comes after"
    )
    learnt = before.get("signals", {}).get("verdicts") or any(m["slices_in_turn"] for m in before.get("monitors", ()))
    return f"{said}; what signals, same_hour and windows by count remember is gone too" if learnt else said


def advice_on_running(before: Mapping[str, Any] | None, after: Mapping[str, Any], name: str) -> str:
    """Say what becomes of a running job's state when it is stopped and submitted with a plan as `after`."""
    again = f"`slacktide submit {name} ... --resume`"
    if before is None:
        return f"then {again} goes on from its state"
    found = hindrances(before, after)
    if not found:
        return f"then {again} goes on from its state"
    said = "; ".join(f"{field} {problem}" for field, problem in found)
    return f"then submit without --resume, for its state can't be taken over: {said}. {cost_of_fresh_start(before)}"


def _notes(home: FlinkHome) -> Path:
    return home.folder / "plans"
