"""Records of suppressed alerts and incidents: committed bytes, JSON Schemas, and Alertmanager's own shapes."""

from collections.abc import Callable
from dataclasses import replace
from importlib.resources import files
from pathlib import Path

import jsonschema
import orjson
import pytest

from schemas.alerts import Alert
from schemas.changes import Change, ChangeKind
from schemas.matchers import parse_matcher
from schemas.silences import Silence
from tests.incident_alerts import POLICY, Scope, at, firing, resolved
from udfs.alerts.cause_signals import Observation, ReferenceFigures
from udfs.alerts.incident import Context
from udfs.alerts.incident_policy import ChangeRule
from udfs.alerts.incident_state import (
    UnknownIncidentVersionError,
    decode_entry,
    decode_scope,
    encode_entry,
    encode_scope,
)

GOLDEN = Path(__file__).parent.parent / "golden" / "alerts"
# prometheus/alertmanager notify/webhook/webhook.go and template/template.go.
WEBHOOK = {
    "type": "object",
    "required": [
        "version",
        "groupKey",
        "truncatedAlerts",
        "status",
        "receiver",
        "groupLabels",
        "commonLabels",
        "commonAnnotations",
        "externalURL",
        "alerts",
    ],
    "properties": {
        "version": {"const": "4"},
        "status": {"enum": ["firing", "resolved"]},
        "truncatedAlerts": {"type": "integer"},
        "alerts": {
            "items": {
                "required": ["status", "labels", "annotations", "startsAt", "endsAt", "generatorURL", "fingerprint"]
            }
        },
    },
}


def schema(name: str) -> dict[str, object]:
    found: dict[str, object] = orjson.loads(files("schemas").joinpath(f"{name}.schema.json").read_bytes())
    jsonschema.Draft202012Validator.check_schema(found)
    return found


def story() -> Scope:
    """A page and a warning after a deploy, a silence on a third, and the page's end."""
    deploy = Change("ci", "4711", ChangeKind.DEPLOY, "chat", at(0), summary="chat 1.8")
    seen = Observation("prompt_entropy", "s", "v1", at(90), True, value=6.0, reference=ReferenceFigures(5, 0.5, 4, 6))
    silence = Silence("s1", (parse_matcher("feature=c"),), at(0), at(900), at(0), "ann", "load test")
    rules = {ChangeKind.DEPLOY: ChangeRule("suppress", 600, 600, explains=(parse_matcher("feature=d"),))}
    context = Context((silence,), (deploy,), (seen,))
    page = firing(100, "a", severity="page", never_suppress=True)
    scope = Scope(policy=replace(POLICY, changes=rules, top_alerts=2), context=context)
    scope.tick(101, page, firing(100, "b"), firing(100, "c"), firing(100, "d"))
    scope.tick(800, resolved(page, 200))
    scope.tick(3000)
    return scope


def test_records_as_committed() -> None:
    scope = story()
    alerts = b"\n".join(alert.to_json() for alert in scope.alerts) + b"\n"
    incidents = b"\n".join(told.to_json() for told in scope.incidents) + b"\n"
    assert alerts == (GOLDEN / "incident_alerts.jsonl").read_bytes()
    assert incidents == (GOLDEN / "incidents.jsonl").read_bytes()


def test_every_record_fits_its_schema() -> None:
    scope = story()
    assert {str(alert.state) for alert in scope.alerts} == {"firing", "suppressed", "resolved"}
    assert {str(alert.suppression.reason) for alert in scope.alerts if alert.suppression} == {
        "silence",
        "change",
        "inhibition",
    }
    for alert in scope.alerts:
        jsonschema.validate(orjson.loads(alert.to_json()), schema("alerts"), cls=jsonschema.Draft202012Validator)
        assert Alert.from_json(alert.to_json()).to_json() == alert.to_json()
    for told in scope.incidents:
        body = orjson.loads(told.to_json())
        jsonschema.validate(body, schema("incidents"), cls=jsonschema.Draft202012Validator)
        jsonschema.validate(body, WEBHOOK)


@pytest.mark.parametrize("name", ["changes", "silences"])
def test_what_we_write_fits_its_schema(name: str) -> None:
    context = story().context
    for record in context.changes if name == "changes" else context.silences:
        jsonschema.validate(orjson.loads(record.to_json()), schema(name), cls=jsonschema.Draft202012Validator)


def test_what_is_no_alert_is_refused() -> None:
    for data in (b"{}", b"[]", b"nonsense"):
        with pytest.raises(ValueError, match="not an alert"):
            Alert.from_json(data)


def test_states_are_still_written_as_committed_and_read() -> None:
    """Version 1 of both: a change of either needs the next version, and a step that reads this one."""
    scope = Scope(policy=replace(POLICY, top_alerts=2))
    scope.tick(101, firing(100, "a", severity="page"), firing(100, "b"))
    entry = scope.entries[firing(100, "b").fingerprint]
    assert scope.state == (GOLDEN / "incident_scope_v1.json").read_bytes()
    assert entry == (GOLDEN / "incident_entry_v1.json").read_bytes()
    assert encode_scope(decode_scope(scope.state)) == scope.state
    assert encode_entry(decode_entry(entry)) == entry


@pytest.mark.parametrize("decode", [decode_scope, decode_entry])
def test_a_newer_state_stops_the_job(decode: Callable[[bytes], object]) -> None:
    with pytest.raises(UnknownIncidentVersionError, match="version 2"):
        decode(b'{"version":2}')
