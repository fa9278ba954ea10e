"""Reference profiles: what is kept, how far D may be off, and which files are refused with which words."""

import math
import pickle
from pathlib import Path

import numpy as np
import orjson
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy.stats import ks_2samp

from udfs.references.feature import FeatureReference, middle_order_statistics
from udfs.references.profile import ReferenceProfile, ReferenceProfileError
from udfs.sketches.rank import RankSketch
from udfs.sketches.reference import RankReference

INF = math.inf
COLUMNS = {"tokens": [3, 1, None, 1], "latency_ms": [0.1, INF, -INF, 2.5, float("nan")], "constant": [7.0] * 5}
ORDERED_FLOATS = st.floats(allow_nan=False, allow_infinity=True)


def profile(**changes: object) -> ReferenceProfile:
    return ReferenceProfile.build("chat", COLUMNS, source="a test", created_at_ms=0, **changes)  # type: ignore[arg-type]


def test_a_file_is_read_back_whole(tmp_path: Path) -> None:
    path = profile().save(tmp_path / "references")
    read = ReferenceProfile.load(path)
    assert path.name == f"chat-{read.digest[7:19]}.json"
    assert (read.name, read.source, read.created_at) == ("chat", "a test", "1970-01-01T00:00:00.000Z")
    for name, feature in profile().features.items():
        kept = read.features[name]
        assert kept.points.tolist() == feature.points.tolist()
        assert [
            getattr(kept, f) for f in ("n_raw", "n_null", "n_infinite", "minimum", "maximum", "quantisation_bound")
        ] == [
            getattr(feature, f) for f in ("n_raw", "n_null", "n_infinite", "minimum", "maximum", "quantisation_bound")
        ]
        assert read.feature(name) == profile().feature(name)
    assert sorted(p.name for p in path.parent.iterdir()) == [path.name]


def test_what_is_kept_of_a_feature() -> None:
    latency = profile().features["latency_ms"]
    assert latency.points.tolist() == [-INF, 0.1, 2.5, INF]
    assert (latency.n_raw, latency.n_null, latency.n_infinite) == (4, 1, 2)
    assert (latency.minimum, latency.maximum, latency.null_rate, latency.quantisation_bound) == (-INF, INF, 0.2, 0.0)


def test_nulls_of_the_reference_reach_the_result() -> None:
    result = RankSketch.from_values([1.0, None], profile().feature("tokens")).result()
    assert (result.n_reference, result.n_reference_null, result.n_window, result.n_window_null) == (3, 1, 1, 1)


def test_a_constant_feature_is_a_reference() -> None:
    constant = profile().feature("constant")
    assert RankSketch.from_values([7.0] * 9, constant).statistic() == 0.0
    assert RankSketch.from_values([7.0, 8.0], constant).statistic() == 0.5


def test_the_digest_is_over_the_content_only() -> None:
    digest = profile().digest
    later = ReferenceProfile.build("chat", dict(reversed(COLUMNS.items())), source="a test", created_at_ms=99)
    assert later.digest == digest
    assert later.file_name == profile().file_name
    zeros = [ReferenceProfile.build("z", {"x": [zero]}, source="").digest for zero in (0.0, -0.0)]
    assert zeros[0] == zeros[1]
    changed = ReferenceProfile.build("chat", COLUMNS | {"tokens": [3, 1, None, 2]}, source="a test", created_at_ms=0)
    assert changed.digest != digest


def test_a_profile_travels_to_workers() -> None:
    copy = pickle.loads(pickle.dumps(profile()))
    assert copy.digest == profile().digest
    assert copy.feature("tokens") == profile().feature("tokens")


@given(st.lists(ORDERED_FLOATS, min_size=1, max_size=200), st.lists(ORDERED_FLOATS, min_size=1), st.integers(2, 40))
def test_d_is_within_the_bound_written_in_the_file(raw: list[float], window: list[float], max_points: int) -> None:
    feature = FeatureReference.from_values(raw, max_points=max_points)
    assert feature.points.size == min(len(raw), max_points)
    d = RankSketch.from_values(window, feature.ranks).statistic()
    assert abs(d - ks_2samp(raw, window, method="asymp").statistic) <= feature.quantisation_bound + 1e-12
    assert (feature.quantisation_bound == 0.0) == (len(raw) <= max_points)


def test_the_bound_is_reached() -> None:
    kept = middle_order_statistics(np.arange(1000.0), 10)
    share_below_fifty = (kept < 50).mean()
    assert abs(share_below_fifty - 0.05) == pytest.approx(0.5 / 10)


@pytest.mark.parametrize(
    ("changes", "words"),
    [
        (
            {"columns": {"tokens": [None, float("nan")]}},
            ["tokens", "no usable value (2 nulls)", "Leave the feature out"],
        ),
        ({"columns": {"tokens": []}}, ["tokens", "no usable value (0 nulls)"]),
        ({"columns": {"model": ["a", "b"]}}, ["model", "must be numbers"]),
        ({"columns": {}}, ["features", "there are none"]),
        ({"max_points": 1}, ["max_points", "1 is too few"]),
        ({"name": "../chat"}, ["name", "may hold letters"]),
        ({"name": ""}, ["name", "may hold letters"]),
    ],
)
def test_what_is_no_reference_is_refused_at_build(changes: dict[str, object], words: list[str]) -> None:
    with pytest.raises(ReferenceProfileError) as raised:
        ReferenceProfile.build(**({"name": "chat", "columns": COLUMNS, "source": "a test"} | changes))  # type: ignore[arg-type]
    assert [word for word in words if word not in str(raised.value)] == []
    assert raised.value.field == words[0]
    assert raised.value.remedy


def test_an_unknown_feature_is_refused_with_the_known_ones() -> None:
    with pytest.raises(
        ReferenceProfileError, match=r"nope: there is no such feature\. It has: constant, latency_ms, tokens"
    ):
        profile().feature("nope")


@pytest.mark.parametrize(
    ("change", "field"),
    [
        (lambda body: body.update(digest="sha256:0"), "digest"),
        (lambda body: body.update(source="another"), "digest"),
        (lambda body: body["features"]["tokens"]["points"].append(99.0), "digest"),
        (lambda body: body.pop("digest"), "digest"),
        (lambda body: body.update(schema_version=2), "schema_version"),
        (lambda body: body.pop("schema_version"), "schema_version"),
        (lambda body: body.pop("name"), "name"),
        (lambda body: body.update(features=[]), "features"),
        (lambda body: body["features"].update(tokens=1), "features.tokens"),
        (lambda body: body["features"]["tokens"].update(points=[]), "features.tokens.points"),
        (lambda body: body["features"]["tokens"].update(points=[2.0, 1.0]), "features.tokens.points"),
        (lambda body: body["features"]["tokens"].update(points=["NaN"]), "features.tokens.points"),
        (lambda body: body["features"]["tokens"].update(points=[None]), "features.tokens.points"),
        (lambda body: body["features"]["tokens"].update(points=[True]), "features.tokens.points"),
        (lambda body: body["features"]["tokens"].update(n_null=True), "features.tokens.n_null"),
        (lambda body: body["features"]["tokens"].update(n_raw="3"), "features.tokens.n_raw"),
        (lambda body: body["features"]["tokens"].pop("maximum"), "features.tokens.maximum"),
    ],
)
def test_a_changed_file_is_refused_by_field(tmp_path: Path, change: object, field: str) -> None:
    path = profile().save(tmp_path)
    body = orjson.loads(path.read_bytes())
    change(body)  # type: ignore[operator]
    path.write_bytes(orjson.dumps(body))
    with pytest.raises(ReferenceProfileError) as raised:
        ReferenceProfile.load(path)
    assert (raised.value.where, raised.value.field) == (str(path), field)
    assert "Build" in raised.value.remedy


@pytest.mark.parametrize("content", [b"", b"{", b"[]", b"null", b"\xff\xfe"])
def test_what_is_no_profile_is_refused(tmp_path: Path, content: bytes) -> None:
    path = tmp_path / "broken.json"
    path.write_bytes(content)
    with pytest.raises(
        ReferenceProfileError, match=r"broken\.json: (file|schema_version): .*Build the reference again"
    ):
        ReferenceProfile.load(path)


def test_a_missing_file_is_refused(tmp_path: Path) -> None:
    with pytest.raises(ReferenceProfileError) as refused:
        ReferenceProfile.load(tmp_path / "none.json")
    assert str(refused.value) == (
        f"{tmp_path}/none.json: file: No such file in {tmp_path}. "
        f"Build it with `slacktide reference build NAME --out {tmp_path}`"
    )


def test_where_a_missing_file_was_looked_for_others_are_named(tmp_path: Path) -> None:
    for name in ("b-1.json", "a-1.json", "e-1.embedding.json"):
        (tmp_path / name).touch()
    with pytest.raises(ReferenceProfileError, match=r"or name one that is there: a-1\.json, b-1\.json$"):
        ReferenceProfile.load(tmp_path / "none.json")


def test_a_reference_of_two_raw_values_is_exact() -> None:
    assert RankReference.from_values([1, 2]).ecdf.tolist() == [0.0, 0.5, 0.5, 1.0, 1.0]


CATEGORIES = {"reason": ["stop"] * 3 + ["length", None, True, 2, 2.5, INF], "model": ["a"] * 5}


def with_categories(**changes: object) -> ReferenceProfile:
    fields = {"columns": COLUMNS, "categories": CATEGORIES, "source": "a test", "created_at_ms": 0} | changes
    return ReferenceProfile.build("chat", **fields)  # type: ignore[arg-type]


def test_categories_are_read_back_whole(tmp_path: Path) -> None:
    path = with_categories().save(tmp_path)
    read = ReferenceProfile.load(path)
    assert orjson.loads(path.read_bytes())["schema_version"] == 2
    assert read.digest == with_categories().digest
    for name, feature in with_categories().category_features.items():
        assert (read.categories(name).counts, read.categories(name).n_categories) == (
            feature.counts,
            feature.n_categories,
        )
    assert (read.categories("reason").n_raw, read.categories("reason").n_null) == (8, 1)
    assert read.categories("reason").counts.count(INF) == 1
    assert read.feature("tokens") == profile().feature("tokens")


def test_a_profile_of_numbers_keeps_its_digest_and_version(tmp_path: Path) -> None:
    """Written before categories were known."""
    assert profile().digest == "sha256:8dd6f6f01ed3247e044a73e9d1c8bfc4ef7ce29da86d2d857e9dc6dfa76dcde5"
    assert with_categories(categories={}).digest == profile().digest
    assert orjson.loads(profile().save(tmp_path).read_bytes())["schema_version"] == 1


def test_the_rest_of_many_categories_is_one_bucket() -> None:
    values = [f"c{i}" for i in range(100) for _ in range(100 - i)] + [None]
    kept = ReferenceProfile.build("x", {}, categories={"c": values}, source="", max_categories=3).categories("c")
    assert [category.value for category in kept.counts.top(9)] == ["c0", "c1", "c2"]
    assert (kept.counts.n_other, kept.n_raw, kept.n_categories) == (5050 - 297, 5050, 100)
    assert kept.null_rate == 1 / 5051


@pytest.mark.parametrize(
    ("changes", "words"),
    [
        ({"categories": {"reason": [None]}}, ["reason", "no usable value (1 nulls)"]),
        ({"categories": {"reason": [b"x"]}}, ["reason", "a category must be text"]),
        ({"categories": {"tokens": ["a"]}}, ["tokens", "both a number and a category"]),
        ({"max_categories": 0}, ["max_categories", "0 is too few"]),
    ],
)
def test_what_is_no_category_is_refused_at_build(changes: dict[str, object], words: list[str]) -> None:
    with pytest.raises(ReferenceProfileError) as raised:
        with_categories(**changes)
    assert [word for word in words if word not in str(raised.value)] == []
    assert raised.value.field == words[0]


def test_an_unknown_category_feature_is_refused_with_the_known_ones() -> None:
    with pytest.raises(ReferenceProfileError, match=r"there is no such category feature\. It has: model, reason"):
        with_categories().categories("tokens")
    with pytest.raises(ReferenceProfileError, match=r"It has: none"):
        profile().categories("reason")


def change_at(path: str, value: object) -> object:
    def change(body: dict[str, object]) -> None:
        *way, last = path.split(".")
        for key in way:
            body = body[key]  # type: ignore[assignment]
        body[last] = value

    return change


@pytest.mark.parametrize(
    ("change", "field"),
    [
        (change_at("categories.reason.counts.text", [["stop", 4], ["length", 1]]), "digest"),
        (change_at("categories.reason.n_other", 7), "digest"),
        (change_at("schema_version", 1), "schema_version"),
        (lambda body: body.pop("categories"), "schema_version"),
        (change_at("categories", []), "categories"),
        (change_at("categories.reason", 1), "categories.reason"),
        (change_at("categories.reason.n_null", None), "categories.reason.n_null"),
        (change_at("categories.reason.counts", {}), "categories.reason.counts"),
        (change_at("categories.reason.counts.text", 3), "categories.reason.counts.text"),
        (change_at("categories.reason.counts.colour", [["x", 1]]), "categories.reason.counts.colour"),
        (change_at("categories.reason.counts.text", [["x"]]), "categories.reason.counts.text"),
        (change_at("categories.reason.counts.text", [["x", 0]]), "categories.reason.counts.text"),
        (change_at("categories.reason.counts.text", [["x", True]]), "categories.reason.counts.text"),
        (change_at("categories.reason.counts.text", [[1, 1]]), "categories.reason.counts.text"),
        (change_at("categories.reason.counts.truth", [[1, 1]]), "categories.reason.counts.truth"),
        (change_at("categories.reason.counts.number", [[True, 1]]), "categories.reason.counts.number"),
        (change_at("categories.reason.counts.number", [["x", 1]]), "categories.reason.counts.number"),
    ],
)
def test_a_changed_category_is_refused_by_field(tmp_path: Path, change: object, field: str) -> None:
    path = with_categories().save(tmp_path)
    body = orjson.loads(path.read_bytes())
    change(body)  # type: ignore[operator]
    path.write_bytes(orjson.dumps(body))
    with pytest.raises(ReferenceProfileError) as raised:
        ReferenceProfile.load(path)
    assert (raised.value.where, raised.value.field) == (str(path), field)
