"""`slacktide thresholds`: a threshold a feature, with the reason where the budget can't be kept."""

from pathlib import Path

import numpy as np
import pytest
from click.testing import CliRunner, Result

from infra.commands.thresholds import command
from jobs.kafka_client import ConfigurationError
from udfs.references.profile import ReferenceProfile


@pytest.fixture(scope="module")
def reference(tmp_path_factory: pytest.TempPathFactory) -> Path:
    rng = np.random.default_rng(1)
    columns = {"latency": rng.lognormal(size=10_000), "tokens": rng.lognormal(size=10_000)}
    profile = ReferenceProfile.build("chat", columns, source="a test", in_time_order=True)
    return profile.save(tmp_path_factory.mktemp("references"))


def run(reference: Path, cache: Path, *changed: str) -> Result:
    asked = ["--false-alarms", "1 per 7d", "--values", "600", "--window-seconds", "300", "--slide-seconds", "30"]
    environment = {"XDG_CACHE_HOME": str(cache)}
    return CliRunner().invoke(command, [str(reference), *asked, *changed], env=environment)


def test_each_feature_has_a_row(reference: Path, tmp_path: Path) -> None:
    found = run(reference, tmp_path)
    assert found.exit_code == 0, found.output
    rows = [line.split() for line in found.stdout.splitlines()]
    assert [row[0] for row in rows] == ["feature", "latency", "tokens"]
    # 7 days of windows a half minute apart are 20,160; two features share the alarm.
    assert all(float(row[3].replace(",", "")) == pytest.approx(40_320, rel=0.02) for row in rows[1:])
    assert {tuple(row[-2:]) for row in rows[1:]} == {("yes", "shipped")}


def test_a_promise_that_is_not_kept_says_why(reference: Path, tmp_path: Path) -> None:
    found = run(reference, tmp_path, "--values", "2000", "--min-effect", "0")
    assert "latency: the reference stands for 10000 values, fewer than 10 times the 2000 of a window" in found.stdout


@pytest.mark.parametrize(
    ("changed", "says"),
    [
        (("--slide-seconds", "70"), "does not divide"),
        (("--false-alarms", "often"), "or '1 per 1000 windows'. Write it like one of these"),
        (("--false-alarms", "1 per 5m"), "Allow fewer alarms"),
    ],
)
def test_what_can_not_be_is_refused(reference: Path, tmp_path: Path, changed: tuple[str, str], says: str) -> None:
    error = run(reference, tmp_path, *changed).exception
    assert isinstance(error, ConfigurationError)
    assert says in str(error)
