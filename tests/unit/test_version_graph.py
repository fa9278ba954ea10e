"""Snapshots of a version's graph: what is refused, with file, field and remedy, and what order doesn't matter."""

import random
from pathlib import Path
from typing import Any

import orjson
import pytest

from schemas.version_graph import VersionGraphError, load_version_graph, parse_version_graph
from tests.version_graphs import document, graph

GOOD = document([[0.5, 1], [2, -3.5], [0, 0]], [(0, 1, 0.5), (1, 2), (2, 2, 3)], version="7")


def changed(path: list[Any], value: Any) -> bytes:
    """GOOD with the field at `path` set, or left out where `value` is ...."""
    copy = orjson.loads(orjson.dumps(GOOD))
    place = copy
    for part in path[:-1]:
        place = place[part]
    if value is ...:
        del place[path[-1]]
    else:
        place[path[-1]] = value
    return orjson.dumps(copy)


@pytest.mark.parametrize(
    ("path", "value", "field", "problem", "remedy"),
    [
        (["edges", 1, "weight"], -0.5, "edges.1.weight", "minimum of 0", "Give a number from 0"),
        (["edges", 1, "weight"], 1e101, "edges.1.weight", "maximum of 1e+100", "Give a number from 0"),
        (["edges", 1, "weight"], "1", "edges.1.weight", "not of type 'number'", "Give a number from 0"),
        (["edges", 1, "weight"], True, "edges.1.weight", "not of type 'number'", "Give a number from 0"),
        (["edges", 1, "weight"], None, "edges.1.weight", "not of type 'number'", "Give a number from 0"),
        (["edges", 1, "weight"], ..., "edges.1.weight", "is missing", "Give a number from 0"),
        (["edges", 2, "target"], "n0009", "edges.2.target", "'n0009' is no node", "List the node in nodes"),
        (["edges", 0, "colour"], "red", "edges.0.colour", "not a known field", "source, target, weight"),
        (["nodes", 2, "id"], "n0001", "nodes.2.id", "'n0001' is the id of nodes.1 too", "a name of its own"),
        (["nodes", 2, "id"], "", "nodes.2.id", "non-empty", "Name the node"),
        (["nodes", 1, "features"], [1], "nodes.1.features", "has 1 numbers where nodes.0.features has 2", "same order"),
        (["nodes", 1, "features", 1], 2e100, "nodes.1.features.1", "maximum", "finite numbers"),
        (["nodes", 1, "features", 1], None, "nodes.1.features.1", "not of type 'number'", "finite numbers"),
        (["version"], ..., "version", "is missing", "Name the model's version"),
        (["schema_version"], "2.0.0", "schema_version", "'1.0.0' was expected", 'Write "1.0.0"'),
    ],
)
def test_a_fault_is_told_with_file_field_and_remedy(
    path: list[Any], value: Any, field: str, problem: str, remedy: str
) -> None:
    with pytest.raises(VersionGraphError) as caught:
        parse_version_graph(changed(path, value), "graphs/v7.json")
    error = caught.value
    assert (error.file, error.field) == ("graphs/v7.json", field)
    assert problem in error.problem
    assert remedy in error.remedy
    assert str(error) == f"graphs/v7.json: {field}: {error.problem}. {error.remedy}"


@pytest.mark.parametrize(
    ("text", "problem"),
    [
        (b"", "is not JSON"),
        (b"[1, 2", "is not JSON"),
        (b"\xff\xfe", "is not JSON"),
        (orjson.dumps(GOOD).replace(b"0.5", b"NaN", 1), "NaN is no JSON number"),
        (orjson.dumps(GOOD).replace(b"0.5", b"-Infinity", 1), "-Infinity is no JSON number"),
        (orjson.dumps(GOOD).replace(b"0.5", b"1e999", 1), "1e999 is beyond a double"),
        (orjson.dumps(GOOD).replace(b'"version":', b'"version":"6","version":', 1), "'version' stands twice"),
    ],
)
def test_what_is_no_strict_json_is_refused(text: bytes, problem: str) -> None:
    with pytest.raises(VersionGraphError) as caught:
        parse_version_graph(text, "v7.json")
    assert caught.value.field == "(file)"
    assert problem in caught.value.problem


def test_a_whole_number_beyond_float64_is_refused() -> None:
    with pytest.raises(VersionGraphError, match="maximum"):
        parse_version_graph(orjson.dumps(GOOD).replace(b"0.5", b"1" + b"0" * 400, 1), "v7.json")


def test_a_file_that_is_not_there(tmp_path: Path) -> None:
    with pytest.raises(VersionGraphError, match="can't be read"):
        load_version_graph(tmp_path / "none.json")


def test_a_file_is_loaded(tmp_path: Path) -> None:
    path = tmp_path / "v7.json"
    path.write_bytes(orjson.dumps(GOOD))
    loaded = load_version_graph(path)
    assert (loaded.model, loaded.version, loaded.n_features) == ("chat", "7", 2)
    assert loaded.edges == ((0, 1, 0.5), (1, 2, 1.0), (2, 2, 3.0))


def test_the_order_in_the_file_changes_nothing() -> None:
    shuffled = orjson.loads(orjson.dumps(GOOD))
    shuffler = random.Random(4)
    for name in ("nodes", "edges"):
        shuffler.shuffle(shuffled[name])
    for edge in shuffled["edges"]:
        edge["source"], edge["target"] = edge["target"], edge["source"]
    expected = parse_version_graph(orjson.dumps(GOOD), "a")
    assert parse_version_graph(orjson.dumps(shuffled), "b") == expected
    assert parse_version_graph(changed(["edges", 0, "weight"], 0.6), "c").digest != expected.digest


def test_repeated_edges_add_up_and_those_of_weight_zero_are_none() -> None:
    assert graph([(), (), ()], [(0, 1, 0.1), (1, 0, 0.2), (0, 1, 0.3), (1, 2, 0)]).edges == ((0, 1, 0.6),)


def test_a_graph_may_be_empty() -> None:
    empty = graph([], [])
    assert (empty.node_ids, empty.edges, empty.n_features) == ((), (), None)
