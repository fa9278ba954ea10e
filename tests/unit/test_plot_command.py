"""`slacktide plot`: figures from files, tables on the terminal, and plain words where there is nothing to draw."""

import subprocess
import sys
from collections.abc import Sequence
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import numpy as np
import orjson
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from click.testing import CliRunner, Result
from matplotlib.image import imread

from infra.commands.plot import command
from infra.errors import StackError
from infra.plots.distance_map import draw_distances
from jobs.kafka_client import ConfigurationError
from tests.unit.test_drift_series import NAME, record, records, unknown
from tests.version_graphs import document, random_edges


def run(*arguments: str | Path) -> Result:
    return CliRunner().invoke(command, [str(argument) for argument in arguments])


def lines_file(folder: Path, *found: dict[str, Any], more: bytes = b"") -> Path:
    path = folder / "verdicts.jsonl"
    path.write_bytes(b"".join(orjson.dumps(one) + b"\n" for one in found) + more)
    return path


def test_a_series_is_drawn_from_json_lines(tmp_path: Path) -> None:
    source = lines_file(tmp_path, *(record(number) for number in range(5)), unknown(5))
    out = tmp_path / "d.svg"
    result = run("drift", "chat/feature_0", "--from", source, "--out", out)
    assert result.exit_code == 0, result.output
    assert result.stdout == f"{out}\n"
    drawn = out.read_text()
    for text in (NAME, "6 windows, 5 with a figure, 1 drifted", "insufficient_data", "threshold", "drifted"):
        assert text in drawn


def test_a_series_is_drawn_from_parquet_alike(tmp_path: Path) -> None:
    verdicts = [record(number) for number in range(4)]
    rows = []
    for verdict in verdicts:
        times = {name: datetime.fromisoformat(verdict[name]) for name in ("window_start", "window_end")}
        rows.append(verdict | times | {"evidence": orjson.dumps(verdict["evidence"]).decode()})
    schema = pa.Table.from_pylist(rows).schema
    schema = schema.set(schema.get_field_index("series"), pa.field("series", pa.map_(pa.string(), pa.string())))
    schema = schema.set(schema.get_field_index("window_end"), pa.field("window_end", pa.timestamp("us", "UTC")))
    maps = [row | {"series": list(row["series"].items())} for row in rows]
    pq.write_table(pa.Table.from_pylist(maps, schema=schema), tmp_path / "verdicts.parquet")
    figures = []
    for source in (lines_file(tmp_path, *verdicts), tmp_path / "verdicts.parquet"):
        result = run("drift", NAME, "--from", source, "--out", tmp_path / "d.svg")
        assert result.exit_code == 0, result.output
        figures.append((tmp_path / "d.svg").read_bytes())
    assert figures[0] == figures[1]


def test_a_figure_is_named_after_its_series(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    source = lines_file(tmp_path, record(1, series={"tenant": "../a b"}))
    assert run("drift", "chat", "--from", source).stdout == "drift-chat-feature_0-tenant=..-a-b.png\n"
    assert imread(tmp_path / "drift-chat-feature_0-tenant=..-a-b.png").shape[2] == 4


def test_without_a_series_those_there_are_are_listed(tmp_path: Path) -> None:
    firing = orjson.loads(records.alert(0, records.AlertState.FIRING))
    source = lines_file(tmp_path, record(0), unknown(1), record(2, feature="feature_1"), firing, more=b"garbage\n{}\n")
    result = run("drift", "--from", source)
    assert result.exit_code == 0
    rows = [line.split() for line in result.stdout.splitlines()]
    assert rows[0] == ["series", "windows", "ok", "drifted", "alerts", "last", "window"]
    assert rows[1] == [NAME, "2", "1", "1", "1", "2023-11-14T22:18:50.000Z"]
    assert rows[2] == ["chat/feature_1/tenant=acme", "1", "1", "0", "0", "2023-11-14T22:19:20.000Z"]
    assert result.stderr == "skipped 2 records that are neither a verdict nor an alert\n"


def refused(result: Result, words: str) -> None:
    """The command ended with an error that `slacktide` shows as a sentence, and wrote no figure."""
    assert isinstance(result.exception, StackError | ConfigurationError), result.output
    assert words in str(result.exception)


@pytest.mark.parametrize("content", [b"", b"\x89PNG\r\n\xff\xfe", b"monitors:\n  - name: a\n", b'{"a": 1}\n'])
def test_a_file_without_verdicts_is_told_of_as_such(tmp_path: Path, content: bytes) -> None:
    source = lines_file(tmp_path, more=content)
    for line in (("drift",), ("drift", "chat")):
        refused(run(*line, "--from", source), f"{source} holds no verdicts. Give a file that `slacktide sql")
    refused(run("slo", "chat", "--from", source), f"{source} holds no verdict on a service level called chat. Give")


def test_plain_words_where_nothing_can_be_drawn(tmp_path: Path) -> None:
    source = lines_file(tmp_path, record(1))
    refused(run("drift", "chat/none", "--from", source), "there is no series chat/none; there are chat/feature_0")
    refused(run("drift", "chat", "--from", source, "--out", tmp_path / "d.bmp"), "names no form of a figure")
    refused(run("drift", "chat", "--from", source, "--out", tmp_path / "no" / "d.png"), "there is no folder")
    only_alert = lines_file(tmp_path, orjson.loads(records.alert(0, records.AlertState.FIRING)))
    refused(run("drift", "chat", "--from", only_alert), "there are alerts of chat/feature_0/tenant=acme, but no")
    (tmp_path / "bad.parquet").write_bytes(b"PAR1")
    refused(run("drift", "chat", "--from", tmp_path / "bad.parquet"), "can't be read as Parquet")
    assert "--since is about a topic" in run("drift", "chat", "--from", source, "--since", "2h").output
    assert "does not exist" in run("drift", "chat", "--from", tmp_path / "none.jsonl").output


def test_the_error_of_a_wrong_snapshot_is_a_sentence(tmp_path: Path) -> None:
    bad = document([[1.0]], [(0, 0, 1)])
    bad["edges"][0]["weight"] = -1
    (tmp_path / "v1.json").write_bytes(orjson.dumps(bad))
    line = [sys.executable, "-m", "infra.cli", "plot", "versions", str(tmp_path / "v1.json"), str(tmp_path / "v1.json")]
    done = subprocess.run(line, capture_output=True, text=True, check=False)
    assert done.returncode == 2
    assert done.stderr.startswith(
        f"slacktide: {tmp_path / 'v1.json'}: edges.0.weight: -1 is less than the minimum of 0"
    )
    assert len(done.stderr.splitlines()) == 1


def snapshots(folder: Path, *graphs: dict[str, Any]) -> list[Path]:
    paths = [folder / f"v{number}.json" for number in range(len(graphs))]
    for path, one in zip(paths, graphs, strict=True):
        path.write_bytes(orjson.dumps(one))
    return paths


def three() -> list[dict[str, Any]]:
    features = np.random.default_rng(1).normal(size=(8, 2))
    edges = random_edges(8, 12, 1)
    moved = (features + 1.0).tolist()
    return [document(features.tolist(), edges, "7"), document(moved, edges, "8"), document([], [], "9")]


def test_versions_are_drawn_and_printed(tmp_path: Path) -> None:
    out = tmp_path / "versions.svg"
    result = run("versions", *snapshots(tmp_path, *three()), "--out", out)
    assert result.exit_code == 0, result.output
    lines = result.stdout.splitlines()
    assert lines[0].split() == ["distance", "7", "8", "9"]
    first, second, third = (line.split() for line in lines[1:4])
    assert (first[1], first[3]) == ("0", "unknown")
    assert first[2] == second[1] != "0"
    assert third == ["9", "unknown", "unknown", "unknown"]
    assert lines[4] == str(out)
    assert first[2] in out.read_text()


def test_the_heat_map_holds_the_matrix() -> None:
    distances = [[0.0, 0.25, None], [0.25, 0.0, None], [None, None, None]]
    figure = draw_distances(["a$", "b", "c"], distances)
    axes = figure.axes[0]
    shown = np.ma.filled(axes.images[0].get_array(), np.nan)
    assert [[None if np.isnan(value) else value for value in row] for row in shown.tolist()] == distances
    assert axes.images[0].get_clim() == (0.0, 0.25)
    assert [label.get_text() for label in axes.get_xticklabels()] == ["a$", "b", "c"]
    cells = [text.get_text() for text in axes.texts]
    assert cells == ["0", "0.2500", "unknown", "0.2500", "0", "unknown", *["unknown"] * 3]


@pytest.mark.parametrize("distances", [[[0.0, 0.0], [0.0, 0.0]], [[None, None], [None, None]]])
def test_a_map_without_differences_is_drawn(distances: list[list[float | None]]) -> None:
    assert draw_distances(["a", "b"], distances).axes[0].images[0].get_clim() == (0.0, 1.0)


def test_edit_distances_are_printed_where_asked(tmp_path: Path) -> None:
    ring = document([()] * 5, [(i, (i + 1) % 5) for i in range(5)], "1")
    more = document([()] * 5, [*((i, (i + 1) % 5) for i in range(5)), (0, 2)], "2")
    result = run("versions", *snapshots(tmp_path, ring, more), "--out", tmp_path / "v.png", "--edit-distance")
    rows = [line.split() for line in result.stdout.splitlines()]
    assert rows[3:6] == [["edits", "1", "2"], ["1", "0", "1"], ["2", "1", "0"]]


def test_versions_that_can_not_be_compared_are_refused(tmp_path: Path) -> None:
    one, other, _ = snapshots(tmp_path, document([[1.0]], []), document([[1.0, 2.0]], []), document([], []))
    out = tmp_path / "v.png"
    refused(run("versions", one, other, "--out", out), "v1.json: nodes: nodes have 2 features, those of the baseline 1")
    refused(run("versions", one, tmp_path / "none.json", "--out", out), "can't be read")
    assert "at least two snapshots" in run("versions", one, "--out", out).output
    large = document([()] * 61, [], "large")
    paths = snapshots(tmp_path, large, large)
    refused(run("versions", *paths, "--out", out, "--edit-distance"), "version large has 61 nodes")


def test_versions_of_one_name_are_told_apart_by_model_or_file(tmp_path: Path) -> None:
    def labels(*graphs: dict[str, Any]) -> Sequence[str]:
        result = run("versions", *snapshots(tmp_path, *graphs), "--out", tmp_path / "v.png")
        return [line.split("  ")[0] for line in result.stdout.splitlines()[1:3]]

    one = document([[1.0]], [], "7")
    assert labels(one, one | {"version": "8"}) == ["7", "8"]
    assert labels(one, one | {"model": "search"}) == ["chat 7", "search 7"]
    assert labels(one, one) == ["7 (v0.json)", "7 (v1.json)"]


def test_help_imports_no_matplotlib() -> None:
    code = (
        "import sys\nfrom infra.cli import main\n"
        "try: main(['plot', 'drift', '--help'])\nexcept SystemExit: pass\n"
        "sys.exit(1 if 'matplotlib' in sys.modules else 0)"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    assert "Examples:" in done.stdout


def test_times_are_utc_whatever_the_zone_of_the_machine(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("TZ", "Asia/Tokyo")
    source = lines_file(tmp_path, *(record(number) for number in range(8)))
    assert run("drift", "chat", "--from", source, "--out", tmp_path / "d.svg").exit_code == 0
    assert datetime.fromtimestamp(records.START_MS / 1000, UTC).hour == 22
    assert "22:18" in (tmp_path / "d.svg").read_text()
