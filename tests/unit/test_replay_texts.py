"""Made-up texts of a replay: seeded, alone in what they change, and read back by ingest, masked."""

from dataclasses import replace

import pytest

from infra.replay import ReplayPlan
from infra.replay.generate import Generator
from infra.replay.resolve import resolve
from tests.unit.test_replay_generate import NOW_NS, START_MS
from udfs.privacy.mask import Masker, derived_key
from udfs.telemetry.masking import TextMasking
from udfs.telemetry.otlp import decode_spans

PLAN = ReplayPlan(seed=4, start=START_MS, limit=400, text=True, personal_share=0.5)


def made(plan: ReplayPlan) -> tuple[list[bytes], list[str]]:
    generator = Generator(resolve(plan, NOW_NS), partitions=2)
    messages = [message.value for message in generator.messages()]
    return messages, generator.tally.planted


def test_the_same_seed_makes_the_same_texts() -> None:
    assert made(PLAN) == made(PLAN)
    assert made(PLAN)[1] != made(replace(PLAN, seed=5))[1]


def test_text_changes_nothing_else() -> None:
    with_text, _ = decode_spans(made(PLAN)[0], "otlp_proto")
    without, _ = decode_spans(made(replace(PLAN, text=False))[0], "otlp_proto")
    names = [name for name in without.column_names if name not in ("message_index", "span_index")]
    assert with_text.select(names).sort_by("span_id") == without.select(names).sort_by("span_id")


@pytest.mark.parametrize("encoding", ["otlp_proto", "otlp_json"])
def test_ingest_reads_texts_back_and_no_planted_value(encoding: str) -> None:
    messages, planted = made(replace(PLAN, encoding=encoding))
    masking = TextMasking(Masker(derived_key("a key for tests only")), carries_text=True)
    table, dead = decode_spans(messages, encoding, masking=masking)
    assert dead == []
    prompts, responses = (table.column(name).to_pylist() for name in ("prompt", "response"))
    assert None not in prompts + responses
    assert 120 < len(planted) < 280
    text = "\n".join(prompts + responses)
    assert [value for value in planted if value in text] == []
    assert masking.take_ledger().texts == 2 * len(prompts)
