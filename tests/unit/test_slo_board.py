"""`slacktide slo`, its table, its figure, and what is read back from verdicts."""

from dataclasses import replace
from pathlib import Path

import matplotlib as mpl
import orjson
import pytest
from click.testing import CliRunner

from infra.cli import COMMANDS
from infra.commands.plot import slo as plot_slo
from infra.commands.slo import command
from infra.errors import StackError
from infra.paths import CONF
from infra.plots.slo_chart import draw_slo
from infra.service_levels.standings import SloBook
from schemas.times import rfc3339
from tests.slo_files import SLICE_MS, START_MS, about, run, slo
from udfs.slo.indicators import Tally

mpl.use("Agg")
_, BURNING = run(slo("errors"), [*[Tally(100, 100)] * 120, *[Tally(70, 100)] * 60])
_, FEW = run(slo("few", min_events=10_000), [Tally(1, 1)] * 4)


@pytest.fixture
def file(tmp_path: Path) -> Path:
    path = tmp_path / "verdicts.jsonl"
    lines = [verdict.to_json() for verdict in [*BURNING, *FEW]]
    path.write_bytes(b"\n".join([b"garbage", *lines, b'{"kind":"slo"}', b'{"kind":"drift"}']))
    return path


def records() -> list[dict[str, object]]:
    return [orjson.loads(verdict.to_json()) for verdict in [*BURNING, *FEW]]


def test_the_newest_standing_of_each_series() -> None:
    book = SloBook.of(records())
    errors = SloBook.of(records(), "errors").find("errors")
    newest = errors.standings[-1]
    told = about(BURNING, "budget")[-1]
    assert (newest.at_ms, newest.remaining, newest.total) == (START_MS + 180 * SLICE_MS, told.statistic, 18_000)
    assert (errors.label, errors.period, len(errors.standings)) == ("errors/model=m1", "30d", 90)
    assert newest.firing == ("page", "ticket")
    assert newest.exhausted_ms == newest.at_ms
    assert book.n_skipped == 0
    assert len(book.histories) == 2


def test_names_that_are_not_there_or_not_enough() -> None:
    with pytest.raises(StackError, match="no verdict on a service level called x"):
        SloBook.of(records(), "x").find("x")
    with pytest.raises(StackError, match="has 2 series: errors/model=m1, few/model=m1"):
        SloBook.of(records()).find("all")


def test_records_that_are_no_standing_are_counted() -> None:
    book = SloBook.of([None, {"kind": "slo"}, {"kind": "drift"}, records()[0] | {"evidence": "no"}])
    assert (len(book.histories), book.n_skipped) == (0, 2)


def test_the_table(file: Path) -> None:
    result = CliRunner().invoke(command, ["--from", str(file)])
    assert result.exit_code == 0, result.output
    (errors,) = [line for line in result.output.splitlines() if line.startswith("errors")]
    (few,) = [line for line in result.output.splitlines() if line.startswith("few")]
    assert "page, ticket" in errors
    assert "is gone" in errors
    assert "-900.0%" in errors
    assert "low_traffic" in few
    assert "skipped 2 records" in result.output


def test_labels_of_every_kind_stay_text_in_the_table(tmp_path: Path) -> None:
    _, said = run(slo("er\x1b[31mrors"), [Tally(98, 100)] * 2)
    hostile = {"model": 'a\x1b[2J\nb[red]|",=\x00\u202e'}
    file = tmp_path / "hostile.jsonl"
    file.write_bytes(b"".join(replace(verdict, series=hostile).to_json() + b"\n" for verdict in said))
    result = CliRunner().invoke(command, ["--from", str(file)])
    assert result.exit_code == 0, result.output
    assert all(line.isprintable() for line in result.output.splitlines())
    _, row = result.output.splitlines()
    assert 'model=a\ufffd[2J\ufffdb[red]|",=\ufffd\ufffd' in row


def test_json_lines(file: Path) -> None:
    result = CliRunner().invoke(command, ["--from", str(file), "--json", "--name", "errors"])
    (body,) = [orjson.loads(line) for line in result.output.splitlines() if line.startswith("{")]
    assert body["told_at"] == rfc3339(START_MS + 180 * SLICE_MS)
    assert body["burn_rates"]["1h&5m"] == pytest.approx(15.0, rel=0.02)
    assert (body["sli"], body["status"]) == (0.9, "ok")


def test_nothing_yet(tmp_path: Path) -> None:
    (tmp_path / "none.jsonl").write_text("")
    result = CliRunner().invoke(command, ["--from", str(tmp_path / "none.jsonl")])
    assert isinstance(result.exception, StackError)
    assert "none.jsonl holds no verdict on a service level. Give a file that `slacktide sql" in str(result.exception)


def test_check_explains_the_shipped_file() -> None:
    result = CliRunner().invoke(command, ["check", str(CONF / "slos.yaml")])
    assert result.exit_code == 0
    assert "p95 over 60 s every 30 s, above 0.8 in 3 windows in a row: page" in result.output
    assert "page at burn rate 13.44 over 1h&5m" in result.output
    assert result.output.endswith("all is well\n")
    assert "slo" in COMMANDS


def test_the_figure_holds_budget_and_burn_rates() -> None:
    history = SloBook.of(records(), "errors").find("errors")
    budget, burn = draw_slo(history).axes
    lines = {str(line.get_label()): line for line in budget.lines}
    left = [100.0 * (verdict.statistic or 0.0) for verdict in about(BURNING, "budget")]
    assert lines["budget left"].get_ydata().tolist() == pytest.approx(left)
    labelled = [str(line.get_label()) for line in burn.lines if not str(line.get_label()).startswith("_")]
    assert labelled == ["1h&5m (page at 14.4)", "6h&30m (page at 6)", "1d&2h (ticket at 3)", "3d&6h (ticket at 1)"]


def test_a_figure_of_a_series_without_figures() -> None:
    budget, _ = draw_slo(SloBook.of(records(), "few").find("few")).axes
    assert "low_traffic" in [line.get_label() for line in budget.lines]


@pytest.mark.parametrize("name", ["slo.png", "slo.svg"])
def test_plot_writes_the_file(file: Path, tmp_path: Path, name: str) -> None:
    out = tmp_path / name
    result = CliRunner().invoke(plot_slo, ["errors", "--from", str(file), "--out", str(out)])
    assert result.exit_code == 0, result.output
    assert out.read_bytes().startswith(b"\x89PNG" if name.endswith("png") else b"<?xml")
