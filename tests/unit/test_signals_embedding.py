"""Embeddings from raw vectors to the decayed mean (spec D3), held against plain numpy and scipy."""

import math
import pickle
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import orjson
import pytest
from numpy.typing import NDArray
from scipy.stats import ks_2samp

from schemas.verdicts import Verdict
from tests.signal_verdicts import DAY_MS, EPOCH_MS, HOUR_MS, window
from udfs.judging.embedding import EmbeddingJudge, EmbeddingPolicy
from udfs.judging.frame import Frame
from udfs.references.embedding_reference import EmbeddingReference, build_embedding_reference
from udfs.references.errors import ReferenceProfileError
from udfs.signals.embedding_decay import DecayPolicy, EmbeddingDecay, decode
from udfs.signals.follow import History
from udfs.signals.versioned_state import UnknownStateVersionError
from udfs.statistics.cosines import cosines_to

FRAME = Frame("chat", "mean_cosine(e)", ("model",), 60_000, 30_000, "sha256:c", "sha256:r", "sha256:m")
DIMENSION = 384


def embeddings(n: int, *, seed: int, turned: float = 0.0) -> NDArray[np.float64]:
    """Embeddings about one direction, of lengths from 0.1 to 10, turned towards another by `turned`."""
    rng = np.random.default_rng(seed)
    middle = np.zeros(DIMENSION)
    middle[0], middle[1] = math.cos(turned), math.sin(turned)
    noisy = middle + rng.normal(0, 0.5 / math.sqrt(DIMENSION), (n, DIMENSION))
    return noisy * rng.uniform(0.1, 10, (n, 1))


def unit(vectors: NDArray[np.float64]) -> NDArray[np.float64]:
    return np.asarray(vectors / np.linalg.norm(vectors, axis=1, keepdims=True))


@pytest.fixture(scope="module")
def reference() -> EmbeddingReference:
    return build_embedding_reference(embeddings(2000, seed=1), name="chat", source="a test", created_at_ms=0)


def judged(judge: EmbeddingJudge, vectors: Any, n_slices: int = 3) -> list[Verdict]:
    return judge.judge(["m1"], 60_000, [judge.sketch(list(vectors)[i::n_slices]) for i in range(n_slices)])


def test_the_reference_is_what_numpy_makes_of_the_vectors(reference: EmbeddingReference) -> None:
    units = unit(embeddings(2000, seed=1))
    centroid = units.mean(axis=0)
    cosines = np.sort(units @ (centroid / np.linalg.norm(centroid)))
    assert reference.centroid == pytest.approx(centroid, abs=1e-9)
    assert reference.mean_cosine == pytest.approx(cosines.mean(), abs=1e-9)
    assert reference.mean_cosine == pytest.approx(np.linalg.norm(centroid), abs=1e-9)
    assert (reference.similarity_points.size, reference.quantisation_bound) == (1000, 0.0005)
    assert np.isin(reference.similarity_points.round(9), cosines.round(9)).all()


def test_the_reference_comes_back_from_its_file(reference: EmbeddingReference, tmp_path: Path) -> None:
    path = reference.save(tmp_path)
    assert path.name == reference.file_name
    assert [file.name for file in tmp_path.iterdir()] == [path.name]
    read = EmbeddingReference.load(path)
    assert read.digest == reference.digest
    assert read.similarities == reference.similarities
    assert read.direction.tolist() == reference.direction.tolist()
    holed = build_embedding_reference([[1.0], None, [0.0], [math.nan]], name="holed", source="a test")
    assert EmbeddingReference.load(holed.save(tmp_path)).similarities.n_null == holed.similarities.n_null == 3
    again = build_embedding_reference(embeddings(2000, seed=1), name="chat", source="a test", created_at_ms=99)
    assert again.digest == reference.digest


@pytest.mark.parametrize(
    ("name", "value"),
    [
        ("mean_cosine", 0.5),
        ("mean_cosine", "much"),
        ("n", -1),
        ("n", True),
        ("dimension", 3),
        ("similarity_points", [0.5, 0.4]),
        ("similarity_points", []),
        ("centroid", [None]),
        ("schema_version", 2),
        ("source", 7),
    ],
)
def test_an_edited_reference_is_refused(reference: EmbeddingReference, tmp_path: Path, name: str, value: Any) -> None:
    path = reference.save(tmp_path)
    path.write_bytes(orjson.dumps(orjson.loads(path.read_bytes()) | {name: value}))
    with pytest.raises(ReferenceProfileError, match=str(path)):
        EmbeddingReference.load(path)


@pytest.mark.parametrize(
    ("vectors", "problem"),
    [
        ([], "no usable embedding"),
        ([None, [0.0, 0.0], [math.nan, 1.0]], "no usable embedding"),
        ([[1.0, 0.0], [-1.0, 0.0]], "cancel out"),
        ([["a", "b"]], "numbers"),
    ],
)
def test_what_has_no_centroid_makes_no_reference(vectors: list[Any], problem: str) -> None:
    with pytest.raises(ReferenceProfileError, match=problem):
        build_embedding_reference(vectors, name="chat", source="a test")


def test_a_name_and_a_number_of_points_are_checked() -> None:
    with pytest.raises(ReferenceProfileError, match="name"):
        build_embedding_reference([[1.0]], name="../chat", source="a test")
    with pytest.raises(ReferenceProfileError, match="too few"):
        build_embedding_reference([[1.0]], name="chat", source="a test", max_points=1)


def test_the_mean_cosine_is_numpys_and_the_distribution_scipys(reference: EmbeddingReference) -> None:
    judge = EmbeddingJudge(FRAME, "e", reference, EmbeddingPolicy(max_drop=0.02))
    vectors = embeddings(700, seed=2, turned=0.4)
    mean, distribution = judged(judge, vectors, n_slices=7)
    cosines = unit(vectors) @ reference.direction
    assert mean.statistic == pytest.approx(cosines.mean(), abs=1e-9)
    assert (mean.feature, mean.kind, mean.drifted) == ("mean_cosine(e)", "drift", True)
    assert mean.threshold == reference.mean_cosine - 0.02
    assert mean.effect == pytest.approx(reference.mean_cosine - cosines.mean(), abs=1e-9)
    scipys = ks_2samp(reference.similarity_points, cosines_to(vectors, reference.direction), method="asymp")
    assert (distribution.statistic, distribution.drifted) == (scipys.statistic, True)
    assert distribution.p_value == pytest.approx(scipys.pvalue, rel=1e-12)


def test_a_quiet_window_is_quiet(reference: EmbeddingReference) -> None:
    judge = EmbeddingJudge(FRAME, "e", reference, EmbeddingPolicy(max_drop=0.02))
    assert [verdict.drifted for verdict in judged(judge, embeddings(700, seed=3))] == [False, False]


def test_a_tenth_far_away_shows_in_the_distribution_alone(reference: EmbeddingReference) -> None:
    judge = EmbeddingJudge(FRAME, "e", reference, EmbeddingPolicy(max_drop=0.2, min_effect=0.05))
    vectors = np.concatenate([embeddings(900, seed=4), embeddings(100, seed=5, turned=1.2)])
    mean, distribution = judged(judge, vectors)
    assert (mean.drifted, distribution.drifted) == (False, True)


def test_what_has_no_direction_is_counted_and_moves_nothing(reference: EmbeddingReference) -> None:
    judge = EmbeddingJudge(FRAME, "e", reference, EmbeddingPolicy())
    good = list(embeddings(200, seed=6))
    broken = [None, np.zeros(DIMENSION), np.full(DIMENSION, np.nan), np.full(DIMENSION, np.inf), [1.0, 2.0], []]
    half_nan = good[0].copy()
    half_nan[7] = np.nan
    alone, beside = judged(judge, good), judged(judge, [*broken, half_nan, *good])
    assert [v.statistic for v in beside] == [v.statistic for v in alone]
    assert (beside[0].n_window, beside[0].n_window_null) == (200, 1)
    assert (beside[0].evidence["n_zero"], beside[0].evidence["n_invalid"]) == (1, 5)
    assert (beside[1].n_window, beside[1].n_window_null) == (200, 7)


@pytest.mark.parametrize("vectors", [[], [None] * 500, [[0.0] * DIMENSION] * 500, embeddings(99, seed=1)])
def test_too_few_directions_are_no_pass(reference: EmbeddingReference, vectors: Any) -> None:
    for verdict in judged(EmbeddingJudge(FRAME, "e", reference, EmbeddingPolicy()), vectors):
        assert (verdict.status, verdict.statistic, verdict.drifted) == ("insufficient_data", None, None)
        orjson.dumps(verdict.evidence)


def test_the_bytes_depend_on_the_window_alone(reference: EmbeddingReference) -> None:
    judge = pickle.loads(pickle.dumps(EmbeddingJudge(FRAME, "e", reference, EmbeddingPolicy())))
    vectors = list(embeddings(300, seed=7))
    assert judge.sketch(vectors) == judge.sketch(vectors[::-1])
    once, shuffled = judged(judge, vectors, 1), judged(judge, vectors[::-1], 13)
    assert [v.to_json() for v in once] == [v.to_json() for v in shuffled]
    assert [cosines_to([vector], reference.direction)[0] for vector in vectors] == cosines_to(
        vectors, reference.direction
    ).tolist()


def test_sketches_of_another_reference_are_refused(reference: EmbeddingReference) -> None:
    other = build_embedding_reference([[1.0, 2.0]], name="chat", source="a test")
    stranger = EmbeddingJudge(FRAME, "e", other, EmbeddingPolicy()).sketch([[1.0, 2.0]])
    judge = EmbeddingJudge(FRAME, "e", reference, EmbeddingPolicy())
    with pytest.raises(ValueError, match="dimension"):
        judge.judge(["m1"], 60_000, [stranger])


# The decayed mean.

MINUTE_MS = 60_000
POLICY = DecayPolicy(min_effective_n=1.0)


def mean_cosine(end_ms: int, mean: float | None, n: int = 100, **changes: Any) -> Verdict:
    found = window("mean_cosine", "mean_cosine(e)", end_ms, mean, window_ms=MINUTE_MS, n_window=n, **changes)
    return replace(found, evidence={"reference_mean_cosine": 0.9})


def followed(verdicts: list[Verdict], policy: DecayPolicy = POLICY) -> list[Verdict]:
    return History([EmbeddingDecay("chat", "e", policy)]).take(verdicts)


def test_a_week_later_a_request_weighs_a_third() -> None:
    """By hand: weights e^-1 and 1, so the mean is (0.9 e^-1 + 0.6) / (e^-1 + 1)."""
    _, last = followed([mean_cosine(0, 0.9), mean_cosine(7 * DAY_MS, 0.6)])
    assert last.statistic == pytest.approx(0.68068242641, abs=1e-10)
    assert last.evidence["effective_n"] == pytest.approx(100 * (math.exp(-1) + 1) ** 2 / (math.exp(-2) + 1))
    assert (last.feature, last.kind, last.test) == ("embedding_decay(e)", "signal", "embedding_decay")
    assert (last.threshold, last.drifted) == (0.87, True)
    assert last.effect == pytest.approx(0.9 - 0.68068242641)


def test_irregular_gaps_decay_by_their_length() -> None:
    rng = np.random.default_rng(3)
    ends = np.cumsum(rng.integers(1, 3 * HOUR_MS, 60) + MINUTE_MS)
    means, counts = rng.uniform(0.5, 1, 60), rng.integers(1, 500, 60)
    said = followed([mean_cosine(int(e), float(m), int(n)) for e, m, n in zip(ends, means, counts, strict=True)])
    for k, verdict in enumerate(said, 1):
        weights = counts[:k] * np.exp(-(ends[k - 1] - ends[:k]) / (7 * DAY_MS))
        assert verdict.statistic == pytest.approx(np.average(means[:k], weights=weights), rel=1e-12)


def test_overlapping_windows_count_an_embedding_once() -> None:
    slides = [mean_cosine(i * 30_000, 0.8, slide_seconds=30.0) for i in range(10)]
    assert followed(slides)[-1].evidence["effective_n"] == pytest.approx(500, rel=1e-3)
    by_count = [mean_cosine(i * 30_000, 0.8, slide_seconds=0.0) for i in range(10)]
    assert followed(by_count)[-1].evidence["effective_n"] == pytest.approx(1000, rel=1e-3)


def test_an_unjudged_window_says_so_and_adds_nothing() -> None:
    said = followed([mean_cosine(0, 0.9), mean_cosine(DAY_MS, None, n=3), mean_cosine(2 * DAY_MS, 0.8)])
    without = followed([mean_cosine(0, 0.9), mean_cosine(2 * DAY_MS, 0.8)])
    assert (said[1].status, said[1].statistic, said[1].drifted) == ("insufficient_data", None, None)
    assert said[2].statistic == pytest.approx(without[1].statistic, rel=1e-14)


def test_few_requests_are_no_mean() -> None:
    (verdict,) = followed([mean_cosine(0, 0.1)], DecayPolicy(min_effective_n=101))
    assert (verdict.status, verdict.drifted) == ("insufficient_data", None)


def test_older_windows_and_repeats_say_nothing() -> None:
    windows = [mean_cosine(0, 0.9), mean_cosine(DAY_MS, 0.8)]
    assert followed([*windows, *windows, mean_cosine(HOUR_MS, 0.1)]) == followed(windows)


def test_a_new_reference_starts_anew() -> None:
    said = followed([mean_cosine(0, 0.1), mean_cosine(DAY_MS, 0.8, reference_digest="sha256:f1")])
    assert said[1].statistic == pytest.approx(0.8)


def test_years_of_silence_leave_no_stale_mean() -> None:
    said = followed([mean_cosine(0, 0.1), mean_cosine(20 * 365 * DAY_MS, None, n=0)])
    assert (said[1].status, said[1].evidence["effective_n"]) == ("insufficient_data", 0.0)


def test_updates_a_day_are_the_judged_windows() -> None:
    hourly = [mean_cosine(hour * HOUR_MS, 0.9 if hour % 2 else None) for hour in range(24 * 60)]
    assert followed(hourly)[-1].evidence["updates_per_day"] == pytest.approx(12, rel=0.01)


def test_only_its_own_verdicts_are_accepted() -> None:
    decay = EmbeddingDecay("chat", "e", POLICY)
    assert decay.accepts(mean_cosine(0, 0.9))
    others: list[dict[str, Any]] = [{"monitor": "other"}, {"test": "quantile"}, {"feature": "mean_cosine(f)"}]
    for change in others:
        assert not decay.accepts(replace(mean_cosine(0, 0.9), **change))


def test_the_state_is_read_back_and_a_newer_one_refused() -> None:
    decay = EmbeddingDecay("chat", "e", POLICY)
    state, _ = decay.step(None, mean_cosine(0, 0.9))
    assert decode(state).last_window_end_ms == EPOCH_MS
    for other in (orjson.loads(state) | {"version": 2}, orjson.loads(state) | {"state": "feedback"}):
        with pytest.raises(UnknownStateVersionError):
            decay.step(orjson.dumps(other), mean_cosine(1, 0.9))
