"""The view of service levels and the notebook over it, on Delta tables filled with the machine's verdicts."""

from collections.abc import Iterator
from pathlib import Path

import pytest
from pyspark.sql import SparkSession

from infra.paths import jars
from infra.plots.picture import Picture
from jobs.audit_session import open_session
from jobs.audit_tables import create_tables, put_model_cards, register
from schemas.model_card import load_model_card
from schemas.verdicts import Verdict
from tests import audit_records as records
from tests.engine.test_notebook import NOTEBOOKS, _write, run_notebook
from tests.slo_files import SLICE_MS, START_MS, about, run, slo
from udfs.slo.budgeting import Budgeting, Method
from udfs.slo.indicators import Tally

pytestmark = [pytest.mark.engine, pytest.mark.slow, pytest.mark.timeout(1200)]


def verdicts() -> list[Verdict]:
    """A service that burns, one with too little traffic, one by time slices."""
    _, burning = run(slo("errors"), [*[Tally(100, 100)] * 20, *[Tally(70, 100)] * 20])
    _, few = run(slo("few", min_events=10_000), [Tally(1, 1)] * 4)
    sliced = slo("sliced", budgeting=Budgeting(Method.RATIO_TIMESLICES, 60_000), burn_rules=())
    _, by_slices = run(sliced, [Tally(95, 100)] * 4)
    return [*burning, *few, *by_slices]


@pytest.fixture(scope="module")
def warehouse(tmp_path_factory: pytest.TempPathFactory) -> Iterator[tuple[SparkSession, Path]]:
    folder = tmp_path_factory.mktemp("slo-notebook")
    spark = open_session("test", jars=jars("spark"))
    place = str(folder / "warehouse")
    create_tables(spark, place)
    put_model_cards(spark, place, [load_model_card(records.CARD)])
    _write(spark, place, [verdict.to_json() for verdict in verdicts()], [])
    register(spark, place)
    yield spark, folder / "warehouse"
    spark.stop()


def test_the_view_has_the_newest_standing_of_each(warehouse: tuple[SparkSession, Path]) -> None:
    spark, _ = warehouse
    rows = {row.slo: row.asDict() for row in spark.table("slo_status").collect()}
    assert set(rows) == {"errors", "few", "sliced"}
    told = about([verdict for verdict in verdicts() if verdict.monitor == "errors"], "budget")[-1]
    errors = rows["errors"]
    assert (errors["budget_remaining"], errors["sli"], errors["total"]) == (told.statistic, 0.85, 4000)
    assert errors["firing"] == ["page", "ticket"]
    assert errors["burn_rates"]["1h&5m"] == pytest.approx(15.0)
    (told_at,) = spark.sql("SELECT unix_millis(told_at) FROM slo_status WHERE slo = 'errors'").first()
    assert told_at == START_MS + 40 * SLICE_MS
    assert (rows["few"]["status"], rows["few"]["budget_remaining"], rows["few"]["firing"]) == ("low_traffic", None, [])
    assert (rows["sliced"]["good"], rows["sliced"]["total"]) == (pytest.approx(1.9), 2)


def test_the_review_shows_the_slo_with_the_least_budget(
    warehouse: tuple[SparkSession, Path], monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    _, place = warehouse
    monkeypatch.setenv("SLACKTIDE_WAREHOUSE", str(place))
    monkeypatch.delenv("SLACKTIDE_SLO", raising=False)
    monkeypatch.setenv("SLACKTIDE_STATE", str(place.parent / "state"))
    names, shown = run_notebook(NOTEBOOKS / "slo_review.ipynb")
    assert names["history"].label == "errors/model=m1"
    assert len(names["figure"].axes) == 2
    assert any(isinstance(value, Picture) and value.png.startswith(b"\x89PNG") for value in shown)
    assert "errors/model=m1: 20 standings, ok, firing: page, ticket" in capsys.readouterr().out
    breached = {row.feature: row.breached for row in names["breaches"].collect()}
    assert breached["burn_page(errors)"] > 0
