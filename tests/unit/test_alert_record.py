"""The `alerts` record: committed bytes, its JSON Schema, and Alertmanager's own shape."""

from collections.abc import Iterator
from importlib.resources import files
from pathlib import Path
from typing import Any

import jsonschema
import orjson
import pytest

from schemas.alerts import Alert
from schemas.ids import record_id
from tests.alert_verdicts import RULE, events, verdicts
from udfs.alerts.lifecycle import step
from udfs.alerts.state import LifecycleState

GOLDEN = Path(__file__).parent.parent / "golden" / "alerts"
SCHEMA = orjson.loads(files("schemas").joinpath("alerts.schema.json").read_bytes())

# Alertmanager api/v2/openapi.yaml: required fields of gettableAlert and alertStatus.
GETTABLE_ALERT = {
    "type": "object",
    "required": [
        "labels",
        "receivers",
        "fingerprint",
        "startsAt",
        "updatedAt",
        "endsAt",
        "annotations",
        "status",
    ],
    "properties": {
        "labels": {"type": "object", "additionalProperties": {"type": "string"}},
        "annotations": {"type": "object", "additionalProperties": {"type": "string"}},
        "generatorURL": {"type": "string", "format": "uri"},
        "status": {
            "type": "object",
            "required": ["state", "silencedBy", "inhibitedBy", "mutedBy"],
            "properties": {"state": {"enum": ["unprocessed", "active", "suppressed"]}},
        },
    },
}


def transitions(timeline: str = "DDDqqq") -> Iterator[Alert]:
    state = LifecycleState()
    for event in events(verdicts(timeline)):
        state, alerts = step(state, event, RULE)
        yield from alerts


@pytest.mark.parametrize("name", ["firing", "resolved"])
def test_payloads_as_committed(name: str) -> None:
    found = {str(alert.state): alert.to_json() for alert in transitions()}
    assert found[name] == (GOLDEN / f"{name}.json").read_bytes()


@pytest.mark.parametrize("alert", [*transitions()], ids=lambda alert: str(alert.state))
def test_fits_our_schema_and_alertmanagers(alert: Alert) -> None:
    body = orjson.loads(alert.to_json())
    jsonschema.Draft202012Validator.check_schema(SCHEMA)
    jsonschema.validate(body, SCHEMA, cls=jsonschema.Draft202012Validator)
    jsonschema.validate(body, GETTABLE_ALERT)
    assert body["alert_id"] == record_id(body["fingerprint"], body["startsAt"], body["state"])


@pytest.mark.parametrize(
    "broken",
    [
        {"state": "inactive"},
        {"fingerprint": "xyz"},
        {"labels": {"alertname": "A", "monitor": "m", "feature": "f", "severity": "s", "a-b": "x"}},
        {"labels": {"alertname": "A", "monitor": "m", "feature": "f", "severity": ""}},
        {"endsAt": "2026-01-01"},
        {"evidence": []},
        {"surprise": 1},
    ],
)
def test_the_schema_refuses(broken: dict[str, Any]) -> None:
    body = orjson.loads(next(transitions()).to_json()) | broken
    with pytest.raises(jsonschema.ValidationError):
        jsonschema.validate(body, SCHEMA, cls=jsonschema.Draft202012Validator)
