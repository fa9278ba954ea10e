"""The service-time model: the queue against queueing theory, times that add up, and draws that follow the seed."""

import copy
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from infra.replay.request_block import Arrivals
from infra.replay.service_model import DEFAULT_MODEL, ServiceModel, load_constants
from infra.replay.span_attributes import ATTRIBUTE_KEYS
from infra.replay.trace import read_trace
from jobs.kafka_client import ConfigurationError


def constants(**queue: Any) -> dict[str, Any]:
    changed = copy.deepcopy(dict(load_constants()))
    changed["queue"] |= queue
    return changed


def model(seed: int = 1, rate_ratio: float = 1.0, **queue: Any) -> ServiceModel:
    return ServiceModel(constants(**queue), np.random.default_rng(seed), rate_ratio)


def trace_arrivals(rows: int = 5_000) -> Arrivals:
    trace = read_trace()
    return Arrivals(trace.arrival_ns[:rows], trace.input_tokens[:rows], trace.output_tokens[:rows])


def test_waiting_is_that_of_an_m_d_1_queue() -> None:
    """Pollaczek-Khinchine for constant service s at load r: the mean wait is r s / (2 (1 - r))."""
    settings = constants(slots=1, schedule_median_seconds=1e-9, schedule_log_sigma=0.0)
    settings["latency"] |= {"decode_log_sigma": 0.0, "prefill_log_sigma": 0.0, "prefill_seconds_per_token": 0.0}
    settings["latency"] |= {"decode_median_seconds_per_token": 0.01, "prefill_fixed_seconds": 0.1}
    service, load, n = 0.1 + 90 * 0.01, 0.6, 200_000
    gaps = np.random.default_rng(5).exponential(service / load, n)
    arrivals = Arrivals((np.cumsum(gaps) * 1e9).astype(np.int64), np.full(n, 100), np.full(n, 91))
    block = ServiceModel(settings, np.random.default_rng(6)).serve(arrivals)
    assert block.fields["queue_seconds"].mean() == pytest.approx(load * service / (2 * (1 - load)), rel=0.03)


def test_no_more_run_than_there_are_slots_and_none_waits_beside_a_free_one() -> None:
    slots = 20
    block = model(slots=slots, schedule_median_seconds=1e-9, schedule_log_sigma=0.0).serve(trace_arrivals())
    busy_ns = np.rint((block.fields["prefill_seconds"] + block.fields["decode_seconds"]) * 1e9).astype(np.int64)
    begin_ns = block.end_ns - busy_ns
    assert (np.diff(begin_ns) >= -2).all(), "first come, first served"
    waited = begin_ns - block.start_ns > 2
    assert waited.sum() > 100
    # Just before it begins, every slot is taken by another.
    for row in np.flatnonzero(waited)[:300]:
        running = (begin_ns[:row] < begin_ns[row] - 5) & (block.end_ns[:row] >= begin_ns[row] - 5)
        assert running.sum() == slots


def test_times_add_up() -> None:
    block = model().serve(trace_arrivals())
    f = block.fields
    assert np.allclose(f["time_to_first_token_seconds"], f["queue_seconds"] + f["prefill_seconds"])
    parts = f["queue_seconds"] + f["prefill_seconds"] + f["decode_seconds"]
    assert np.allclose(f["end_to_end_seconds"], parts)
    assert np.allclose((block.end_ns - block.start_ns) / 1e9, parts, atol=2e-9)
    per_token = f["decode_seconds"] / (f["output_tokens"] - 1)
    assert np.allclose(per_token, f["time_per_output_token_seconds"])
    assert list(f) == list(ATTRIBUTE_KEYS)
    assert all(np.isfinite(values).all() for values in f.values() if values.dtype.kind in "fi")


def test_the_queue_goes_on_from_block_to_block() -> None:
    """Cut anywhere, requests wait for the same slots: with nothing drawn, both ways give the same times."""
    settings = constants(slots=8, schedule_log_sigma=0.0)
    settings["latency"] |= {"decode_log_sigma": 0.0, "prefill_log_sigma": 0.0}
    settings["kv_cache"] |= {"miss_share": 1.0}
    whole, half = trace_arrivals(2_000), 700
    parts = [
        Arrivals(*(c[s] for c in (whole.arrival_ns, whole.input_tokens, whole.output_tokens)))
        for s in (slice(half), slice(half, None))
    ]
    once = ServiceModel(settings, np.random.default_rng(0)).serve(whole)
    twice = ServiceModel(settings, np.random.default_rng(0))
    blocks = [twice.serve(part) for part in parts]
    assert np.array_equal(once.end_ns, np.concatenate([block.end_ns for block in blocks]))
    used = np.concatenate([block.fields["kv_cache_used_ratio"] for block in blocks])
    assert np.array_equal(once.fields["kv_cache_used_ratio"], used)
    assert used.max() > used.min() > 0


def test_a_slow_episode_stretches_service_and_queue() -> None:
    arrivals = trace_arrivals()
    slow = np.where(arrivals.arrival_ns > arrivals.arrival_ns[2_500], 3.0, 1.0)
    before, after = model().serve(arrivals), model().serve(arrivals, slow)
    for phase in ("prefill_seconds", "decode_seconds"):
        ratio = after.fields[phase] / before.fields[phase]
        assert np.allclose(ratio, slow)
    assert after.fields["queue_seconds"][2_600:].mean() > 20 * before.fields["queue_seconds"][2_600:].mean()


def test_the_seed_decides() -> None:
    arrivals = trace_arrivals(500)
    first, same, other = (model(seed).serve(arrivals) for seed in (1, 1, 2))
    assert all(np.array_equal(first.fields[name], same.fields[name]) for name in first.fields)
    assert not np.array_equal(first.fields["prompt_entropy"], other.fields["prompt_entropy"])


def test_slots_grow_with_the_rate() -> None:
    assert model(rate_ratio=100).slots == 5_600
    assert model(rate_ratio=100, slots_scale_with_rate=False).slots == 56


def test_labels_come_in_their_shares() -> None:
    block = model().serve(trace_arrivals())
    assert np.mean(block.fields["arm"] == "treatment") == pytest.approx(0.05, abs=0.01)
    assert block.fields["is_streaming"].dtype == np.bool_
    full = block.fields["output_tokens"] >= 1000
    assert full.any()
    assert (block.fields["finish_reason"][full] == "length").all()


@pytest.mark.parametrize(
    ("cut", "field"), [("  slots: 56\n", "queue.slots"), ("max_output_tokens: 1000", "max_output")]
)
def test_a_model_file_without_a_constant_is_refused(tmp_path: Path, cut: str, field: str) -> None:
    file = tmp_path / "model.yaml"
    text = DEFAULT_MODEL.read_text()
    assert cut in text
    file.write_text(text.replace(cut, ""))
    with pytest.raises(ConfigurationError) as refused:
        load_constants(file)
    assert refused.value.field.startswith(field)
    file.write_text("a: [")
    with pytest.raises(ConfigurationError, match="not YAML"):
        load_constants(file)
