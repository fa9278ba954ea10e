"""The verdicts over masking's time: what they say, that the alert job reads them, and that a breach is one."""

import pytest

from schemas.verdicts import Verdict
from udfs.alerts.verdict_event import decode_verdict
from udfs.privacy.kinds import Kind
from udfs.privacy.latency_verdict import LATENCY, MONITOR, WITHHELD, MaskingLimits, masking_verdicts
from udfs.privacy.ledger import Ledger


def ledger(*latencies_ms: float, withheld: int = 0) -> str:
    result = Ledger()
    for latency_ms in latencies_ms:
        result.note({Kind.EMAIL: 1}, latency_ms, is_cut=False)
    for _ in range(withheld):
        result.note_withheld(1.0)
    return result.to_json()


def test_p99_over_its_limit_is_a_breach() -> None:
    quick, slow = [1.0] * 98, [400.0] * 2
    (late, withheld) = masking_verdicts([ledger(*quick), ledger(*slow)], 0, 60_000)
    assert (late.feature, withheld.feature) == (LATENCY, WITHHELD)
    assert (late.drifted, withheld.drifted) == (True, False)
    assert late.statistic == pytest.approx(400, rel=0.01)
    assert late.threshold == 150
    assert late.evidence["texts"] == 100
    assert late.evidence["found"] == {"EMAIL": 100}
    (late, _) = masking_verdicts([ledger(*[1.0] * 199, 400.0)], 0, 60_000)
    assert late.drifted is False


def test_one_text_withheld_is_a_breach() -> None:
    _, withheld = masking_verdicts([ledger(1.0, withheld=1)], 0, 60_000)
    assert (withheld.statistic, withheld.drifted) == (0.5, True)


def test_no_texts_no_verdict_and_nonsense_raises() -> None:
    assert masking_verdicts([], 0, 60_000) == []
    with pytest.raises(ValueError, match="unexpected"):
        masking_verdicts(["{"], 0, 60_000)


def test_order_of_ledgers_changes_nothing_and_limits_change_the_digest() -> None:
    ledgers = [ledger(1.0, 2.0), ledger(3.0), ledger(250.0)]
    one, other = masking_verdicts(ledgers, 0, 60_000), masking_verdicts(ledgers[::-1], 0, 60_000)
    assert [v.to_json() for v in one] == [v.to_json() for v in other]
    strict = masking_verdicts(ledgers, 0, 60_000, MaskingLimits(latency_ms=1.0))
    assert strict[0].config_digest != one[0].config_digest
    assert strict[0].verdict_id != one[0].verdict_id


def test_what_is_written_reads_back_and_the_alert_job_takes_it() -> None:
    for verdict in masking_verdicts([ledger(1.0)], 0, 60_000):
        assert Verdict.from_json(verdict.to_json()) == verdict
        event = decode_verdict(verdict.to_json())
        assert event.monitor == MONITOR
