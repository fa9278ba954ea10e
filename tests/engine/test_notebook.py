"""The notebooks run from top to bottom on real Delta tables, and show what is in them."""

import json
from collections.abc import Iterator
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pytest
from pyspark.sql import SparkSession

from infra.paths import jars
from infra.plots.picture import Picture
from jobs.audit_batch import BatchWriter
from jobs.audit_session import open_session
from jobs.audit_tables import create_tables, put_model_cards
from schemas.delta_tables import ALERTS, VERDICTS
from schemas.model_card import load_model_card
from tests import audit_records as records

pytestmark = [pytest.mark.engine, pytest.mark.slow, pytest.mark.timeout(1200)]
NOTEBOOKS = Path(__file__).parent.parent.parent / "notebooks"
N_WINDOWS = 12


@pytest.fixture(scope="module")
def warehouse(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Path]:
    """Tables as the audit job makes and fills them: two series, a window without figures, an alert."""
    folder = tmp_path_factory.mktemp("notebook")
    spark = open_session("test", jars=jars("spark"))
    place = str(folder / "warehouse")
    create_tables(spark, place)
    put_model_cards(spark, place, [load_model_card(records.CARD)])
    values = [records.verdict(number, feature="feature_0") for number in range(N_WINDOWS)]
    values += [records.verdict(number, feature="feature_1") for number in range(1, 4)]
    values.append(records.unknown_verdict(N_WINDOWS + 3))  # feature_0, after a gap of three windows
    _write(spark, place, [value.to_json() for value in values], [records.alert(0, records.AlertState.FIRING)])
    yield folder / "warehouse"
    spark.stop()


def _write(spark: SparkSession, place: str, verdicts: list[bytes], alerts: list[bytes]) -> None:
    now = datetime.now(UTC)
    rows = [
        (topic, 0, offset, now, bytearray(value))
        for topic, values in (("verdicts", verdicts), ("alerts", alerts))
        for offset, value in enumerate(values)
    ]
    schema = "topic STRING, partition INT, offset BIGINT, timestamp TIMESTAMP, value BINARY"
    writer = BatchWriter(place, {"verdicts": VERDICTS, "alerts": ALERTS}, "notebook-test")
    figures = writer.write(spark.createDataFrame(rows, schema), 0)
    assert sum(one.inserted for one in figures) == len(rows)


def run_notebook(path: Path) -> tuple[dict[str, Any], list[Any]]:
    """Run the code cells in order in one namespace; return it, and the value each cell would show."""
    names: dict[str, Any] = {"__name__": "__main__"}
    shown = []
    for cell in json.loads(path.read_text())["cells"]:
        if cell["cell_type"] != "code":
            continue
        *statements, last = "".join(cell["source"]).splitlines()
        try:
            value = compile(last, str(path), "eval")
        except SyntaxError:
            statements, value = [*statements, last], None
        exec(compile("\n".join(statements), str(path), "exec"), names)
        shown.append(eval(value, names) if value else None)
    return names, shown


def test_drift_review_shows_the_series_that_drifted_most(
    warehouse: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setenv("SLACKTIDE_WAREHOUSE", str(warehouse))
    monkeypatch.delenv("SLACKTIDE_SERIES", raising=False)
    monkeypatch.setenv("SLACKTIDE_STATE", str(warehouse.parent / "state"))
    names, shown = run_notebook(NOTEBOOKS / "drift_review.ipynb")
    series = names["series"]
    assert series.name == "chat/feature_0/tenant=acme"
    expected = [records.verdict(number, feature="feature_0").statistic for number in range(N_WINDOWS)]
    assert [window.statistic for window in series.windows] == [*expected, None]
    over_time = names["figure"].axes[0]
    lines = {line.get_label(): line for line in over_time.lines}
    assert lines["statistic"].get_ydata().tolist()[:N_WINDOWS] == expected
    assert len(lines["drifted"].get_ydata()) == 2
    starts = [at.timestamp() * 1000 for at in lines["alert starts"].get_xdata()]
    assert starts == [records.START_MS] * 2
    assert {patch.get_label() for patch in over_time.patches} == {"insufficient_data", "no verdict"}
    assert any(isinstance(value, Picture) and value.png.startswith(b"\x89PNG") for value in shown)
    printed = capsys.readouterr().out
    assert f"chat/feature_0/tenant=acme: {N_WINDOWS + 1} windows, 2 drifted, 1 alerts" in printed
    assert "azure-llm-conversation-2023" in printed


def test_notebooks_are_committed_without_results() -> None:
    for path in NOTEBOOKS.glob("*.ipynb"):
        notebook = json.loads(path.read_text())
        assert notebook["nbformat"] == 4
        for cell in notebook["cells"]:
            assert cell["cell_type"] == "markdown" or (cell["outputs"], cell["execution_count"]) == ([], None)
