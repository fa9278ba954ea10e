"""A verdict's bytes, there and back."""

from dataclasses import replace

import orjson
import pytest

from schemas.verdicts import Verdict
from tests.alert_verdicts import DRIFTED, QUIET, UNKNOWN


@pytest.mark.parametrize("verdict", [DRIFTED, QUIET, UNKNOWN, replace(DRIFTED, kind="signal", reference_digest=None)])
def test_a_verdict_comes_back_from_its_bytes(verdict: Verdict) -> None:
    read = Verdict.from_json(verdict.to_json())
    assert read == verdict
    assert read.to_json() == verdict.to_json()


def test_evidence_comes_back_as_it_was() -> None:
    verdict = replace(DRIFTED, evidence={"weights": [0.4, None], "largest_gap": {"at": 1.5, "relation": "<="}})
    assert Verdict.from_json(verdict.to_json()) == verdict


def test_a_build_that_knew_fewer_fields_is_read() -> None:
    body = orjson.loads(DRIFTED.to_json())
    for later in ("threshold", "kind", "evidence"):
        del body[later]
    assert Verdict.from_json(orjson.dumps(body)) == DRIFTED


@pytest.mark.parametrize("data", [b"", b"{", b"[]", b"null", b"7", b"{}", QUIET.to_json()[:-2]])
def test_what_is_no_verdict_is_refused(data: bytes) -> None:
    with pytest.raises(ValueError, match="not a verdict"):
        Verdict.from_json(data)


@pytest.mark.parametrize("change", [{"monitor": "other"}, {"window_end": "2026-01-31T12:00:00Z"}, {"verdict_id": "x"}])
def test_an_id_of_something_else_is_refused(change: dict[str, str]) -> None:
    with pytest.raises(ValueError, match="its id"):
        Verdict.from_json(orjson.dumps(orjson.loads(QUIET.to_json()) | change))


def test_a_field_that_is_missing_or_no_instant_is_refused() -> None:
    body = orjson.loads(QUIET.to_json())
    for changed in (body | {"window_end": 7}, {k: v for k, v in body.items() if k != "test"}):
        with pytest.raises(ValueError, match="not a verdict"):
            Verdict.from_json(orjson.dumps(changed))
