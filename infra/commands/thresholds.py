"""`slacktide thresholds`: the alpha that a false-alarm budget asks of each feature, simulated where it must be."""

from pathlib import Path

import click
from rich.console import Console
from rich.table import Table

from jobs.kafka_client import ConfigurationError
from jobs.monitor_judges import cache_folder
from udfs.budget.cache import AnswerCache
from udfs.budget.false_alarms import FalseAlarmBudget
from udfs.budget.threshold import Threshold, source_for, threshold_curve
from udfs.references.feature import FeatureReference
from udfs.references.profile import ReferenceProfile, ReferenceProfileError

TABLE_WIDTH = 120  # where there is no terminal to ask
PLACE = "command line"
EXAMPLES = """
\b
Examples:
  slacktide thresholds references/chat-0123456789ab.json --false-alarms "1 per 30d" --values 600 \\
      --window-seconds 300 --slide-seconds 30 --series 10
"""


@click.command(name="thresholds", epilog=EXAMPLES, context_settings={"show_default": True})
@click.argument("reference", type=click.Path(exists=True, dir_okay=False, path_type=Path))
@click.option("--false-alarms", required=True, help="The budget of the monitor: '1 per 30d', '1 per 1000 windows'.")
@click.option("--values", type=click.IntRange(1), required=True, help="Values in a window, about.")
@click.option("--window-seconds", type=click.IntRange(1), required=True, help="Length of a window.")
@click.option("--slide-seconds", type=click.IntRange(1), required=True, help="How often a window ends.")
@click.option("--series", type=click.IntRange(1), default=1, help="Series that share the budget.")
@click.option("--min-effect", type=click.FloatRange(0, 1), default=0.05, help="The monitor's minimum effect.")
def command(reference: Path, *, false_alarms: str, values: int, series: int, min_effect: float, **seconds: int) -> None:
    """Compute and keep the thresholds for the numeric features of REFERENCE.

    What isn't shipped is simulated (up to a few minutes a feature) and kept under `$XDG_CACHE_HOME/slacktide`, where
    `submit drift` finds it. The budget is shared by all features and series.
    """
    window_seconds, slide_seconds = seconds["window_seconds"], seconds["slide_seconds"]
    if window_seconds % slide_seconds:
        problem = f"{slide_seconds} s does not divide the window of {window_seconds} s"
        raise ConfigurationError(PLACE, "--slide-seconds", problem, "Choose a slide of which it holds a whole number")
    profile = _profile(reference)
    tests = max(1, len(profile.features)) * series
    budget = _budget(false_alarms)
    cache = AnswerCache(cache_folder())
    found: dict[str, Threshold] = {}
    try:
        rate = budget.onset_rate(slide_seconds=slide_seconds, tests=tests)
        for name, feature in sorted(profile.features.items()):
            overlap = window_seconds // slide_seconds
            found[name] = _threshold(feature, rate, values, overlap, min_effect=min_effect, cache=cache)
    except ValueError as error:
        remedy = "Allow fewer alarms, or take windows of more values"
        raise ConfigurationError(PLACE, "--false-alarms, --values", str(error), remedy) from None
    _show(found)
    for note in cache.notes:
        click.echo(f"warning: {note}", err=True)


def _budget(text: str) -> FalseAlarmBudget:
    try:
        return FalseAlarmBudget.parse(text)
    except ValueError as error:
        raise ConfigurationError(PLACE, "--false-alarms", str(error), "Write it like one of these") from None


def _profile(path: Path) -> ReferenceProfile:
    try:
        return ReferenceProfile.load(path)
    except ReferenceProfileError as error:
        raise ConfigurationError(str(path), error.field, error.problem, error.remedy) from None


def _threshold(
    feature: FeatureReference, rate: float, values: int, overlap: int, *, min_effect: float, cache: AnswerCache
) -> Threshold:
    curve = threshold_curve(
        n_reference=feature.n_raw,
        n_points=feature.points.size,
        n=values,
        overlap=overlap,
        source=source_for(feature.points, feature.autocorrelation or 0.0),
        rate=rate,
        min_effect=min_effect,
        order_known=feature.autocorrelation is not None,
        cache=cache,
    )
    return curve.at(values)


def _show(found: dict[str, Threshold]) -> None:
    console = Console(highlight=False, soft_wrap=True)
    if not console.is_terminal:
        console.width = TABLE_WIDTH
    table = Table(box=None, pad_edge=False)
    for heading in ("feature", "alpha", "drifted where D >", "windows an onset", "error", "kept", "from"):
        table.add_column(heading, justify="left" if heading == "feature" else "right")
    for name, threshold in found.items():
        windows = f"{1 / threshold.onset_rate:,.0f}" if threshold.onset_rate else "never seen"
        table.add_row(
            name,
            f"{threshold.alpha_effective:.3g}",
            f"{threshold.critical_statistic:.4f}",
            windows,
            f"{threshold.relative_error:.0%}",
            "yes" if threshold.kept else "NO",
            threshold.origin,
        )
    console.print(table)
    for name, threshold in found.items():
        if threshold.reason:
            console.print(f"{name}: {threshold.reason}.")
