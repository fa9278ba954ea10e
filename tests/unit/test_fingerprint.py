"""The fingerprint against Alertmanager's and Prometheus's own values."""

import json
from itertools import permutations
from pathlib import Path

import pytest

from udfs.alerts.fingerprint import fingerprint, label_set_fingerprint, scope_fingerprint

CASES = {case["id"]: case for case in json.loads((Path(__file__).parent.parent / "cases/alerts_slo.json").read_text())}


def test_case_fp_empty_label() -> None:
    with_empty, without = CASES["fp-empty-label"]["input"]
    expected = CASES["fp-empty-label"]["expected"]
    assert fingerprint(with_empty) == fingerprint(without) == expected["both"]
    assert label_set_fingerprint(with_empty) == expected["without_removal"]


def test_case_fp_pod_churn() -> None:
    before, after = CASES["fp-pod-churn"]["input"]
    ignoring = CASES["fp-pod-churn"]["expected"]["scope_fingerprint_equal_ignoring"]
    assert fingerprint(before) != fingerprint(after)
    assert scope_fingerprint(before, ignoring) == scope_fingerprint(after, ignoring)
    assert scope_fingerprint(before, ignoring) != scope_fingerprint({**before, "namespace": "other"}, ignoring)


@pytest.mark.parametrize(
    ("labels", "signature"),
    [
        # prometheus/common model/signature_test.go, TestLabelsToSignature
        ({}, 14695981039346656037),
        ({"name": "garland, briggs", "fear": "love is not enough"}, 5799056148416392346),
    ],
)
def test_prometheus_own_test_values(labels: dict[str, str], signature: int) -> None:
    assert int(fingerprint(labels), 16) == signature


def test_names_are_sorted_by_their_bytes() -> None:
    # UTF-16 order would put U+1F600 before U+FF5E; byte order puts it behind, as Go does.
    labels = {"z": "1", "A": "2", "é": "3", "～": "4", "😀": "5"}
    assert len({fingerprint(dict(order)) for order in permutations(labels.items())}) == 1
    # FNV-1a by hand over the bytes in that order.
    digest = 0xCBF29CE484222325
    for byte in b"A\xff2\xffz\xff1\xff\xc3\xa9\xff3\xff\xef\xbd\x9e\xff4\xff\xf0\x9f\x98\x80\xff5\xff":
        digest = (digest ^ byte) * 0x100000001B3 % 2**64
    assert fingerprint(labels) == f"{digest:016x}"


@pytest.mark.parametrize("delimiter", [",", "=", ";", "\n", "\0", '"', "ÿ", "\ufffd"])
def test_a_delimiter_in_a_value_does_not_join_labels(delimiter: str) -> None:
    assert fingerprint({"a": f"1{delimiter}b{delimiter}2"}) != fingerprint({"a": "1", "b": "2"})
    assert fingerprint({"a": f"x{delimiter}", "b": "y"}) != fingerprint({"a": "x", "b": f"{delimiter}y"})


def test_leading_zeros_are_kept() -> None:
    digests = [fingerprint({"a": str(number)}) for number in range(200)]
    assert {len(digest) for digest in digests} == {16}
    assert any(digest.startswith("0") for digest in digests)
