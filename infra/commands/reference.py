"""`slacktide reference`: build and show the reference profiles that drift is judged against."""

import time
from pathlib import Path
from typing import Any

import click
import numpy as np
from rich.console import Console
from rich.table import Table

from infra.commands.kafka_options import kafka_options
from infra.commands.replay import EXISTING, POSITION
from infra.monitor_history.requests import requests_of, vectors_of
from infra.reference_sources.replayed_trace import columns_of_trace
from infra.reference_sources.request_topic import columns_of_topic
from infra.reference_sources.table_file import columns_of_file
from infra.reference_sources.wanted import CATEGORIES, Columns, Wanted, wanted
from infra.replay.plan import BEGIN, END, ReplayPlan
from infra.replay.position import Position
from infra.replay.service_model import DEFAULT_MODEL
from infra.replay.trace import AZURE_TRACE
from jobs.kafka_client import ConfigurationError, load_kafka_client
from schemas.times import rfc3339
from udfs.references.embedding_reference import build_embedding_reference
from udfs.references.profile import DEFAULT_MAX_CATEGORIES, DEFAULT_MAX_POINTS, ReferenceProfile, ReferenceProfileError

# The asymptotic p-value is off below a few dozen values, and D itself can't be below 1 / (2 n).
FEW_VALUES = 100
TABLE_WIDTH = 120  # where there is no terminal to ask
REFERENCE_SEED = 1  # not the replay's, which is 0: two draws of one model

BUILD_EXAMPLES = """
\b
Examples:
  slacktide reference build chat --from-topic requests --since 1h --where tenant=acme
  slacktide reference build chat --from-parquet requests.parquet --features input_tokens,attributes.temperature
  slacktide reference build chat --from-trace --until 50%
"""
EMBED_EXAMPLES = """
\b
Examples:
  slacktide reference embed chat --from-topic requests
  slacktide reference embed chat --from-parquet requests.parquet --field response_embedding --out references
"""
SHOW_EXAMPLES = """
\b
Example:
  slacktide reference show references/chat-0123456789ab.json
"""


class Refused(click.ClickException):
    """What the user can mend, with the exit status that `slacktide` has for it."""

    exit_code = 2


GROUP_EXAMPLES = """
\b
Examples:
  slacktide reference build --help
  slacktide reference embed --help
  slacktide reference show --help
"""


@click.group(name="reference", epilog=GROUP_EXAMPLES)
def command() -> None:
    """Build and show the reference profiles that drift is judged against."""


@command.command(name="build", epilog=BUILD_EXAMPLES, context_settings={"show_default": True})
@click.argument("name")
@click.option("--from-csv", type=EXISTING, help="CSV with columns named like request fields.")
@click.option("--from-parquet", type=EXISTING, help="Parquet with columns named like request fields.")
@click.option("--from-topic", help="Topic of requests, read from the range of event time.")
@click.option("--from-trace", is_flag=True, help="The trace that `replay` sends, through its service model, offline.")
@click.option(
    "--since", type=POSITION, help="Begin: an instant or how long ago (topic), a place (trace). [default: all]"
)
@click.option("--until", type=POSITION, help="End, not included. [default: now (topic), 100% (trace)]")
@click.option(
    "--features",
    help="Of a,b,attributes.c; text and truth fields become category features. "
    "[default: every numeric field that is filled]",
)
@click.option(
    "--in-time-order",
    is_flag=True,
    help="The rows of the file stand in the order of time, though it has no column event_time_ms.",
)
@click.option("--where", multiple=True, help="Take only requests with FIELD=VALUE. Repeatable.")
@click.option("--points", type=click.IntRange(2), default=DEFAULT_MAX_POINTS, help="Kept a feature at most.")
@click.option(
    "--categories",
    "max_categories",
    type=click.IntRange(1),
    default=DEFAULT_MAX_CATEGORIES,
    help="Kept by name a category feature at most; the rest is counted as one.",
)
@click.option("--out", type=click.Path(file_okay=False, path_type=Path), default=Path("references"), help="Folder.")
@click.option("--seed", type=click.IntRange(0), default=REFERENCE_SEED, help="Of the service model, with --from-trace.")
@click.option("--trace", type=EXISTING, default=AZURE_TRACE, show_default="the Azure LLM trace 2023", help="Its CSV.")
@click.option("--service-model", type=EXISTING, default=DEFAULT_MODEL, show_default="ours", help="Its YAML.")
@kafka_options
def build(
    name: str,
    *,
    features: str | None,
    where: tuple[str, ...],
    points: int,
    max_categories: int,
    out: Path,
    **options: Any,
) -> None:
    """Build a reference profile NAME and print its file and digest.

    The file is named by its content, so the same values always give the same file, and a verdict's digest finds it.
    """
    columns, source, is_ordered = _columns(wanted(features, where), options)
    try:
        profile = ReferenceProfile.build(
            name,
            {feature: values for feature, values in columns.items() if feature not in CATEGORIES},
            categories={feature: values for feature, values in columns.items() if feature in CATEGORIES},
            source=source,
            max_points=points,
            max_categories=max_categories,
            # So that how they depend on each other can be told.
            in_time_order=is_ordered,
        )
    except ReferenceProfileError as error:
        raise Refused(str(error)) from None
    path = profile.save(out)
    _show(profile)
    sizes = {feature: kept.n_raw for feature, kept in profile.features.items()}
    sizes |= {feature: kept.n_raw for feature, kept in profile.category_features.items()}
    for feature, n_raw in sizes.items():
        if n_raw < FEW_VALUES:
            click.echo(f"warning: {feature} has {n_raw} values; below {FEW_VALUES} p-values are rough", err=True)
    click.echo(path)


@command.command(name="embed", epilog=EMBED_EXAMPLES, context_settings={"show_default": True})
@click.argument("name")
@click.option("--from-parquet", type=EXISTING, help="Parquet with columns named like request fields.")
@click.option("--from-topic", help="Topic of requests, all it holds now.")
@click.option("--field", default="prompt_embedding", help="Field of a request that holds vectors.")
@click.option("--points", type=click.IntRange(2), default=DEFAULT_MAX_POINTS, help="Similarities kept at most.")
@click.option("--out", type=click.Path(file_okay=False, path_type=Path), default=Path("references"), help="Folder.")
@kafka_options
def embed(
    name: str, *, from_parquet: Path | None, from_topic: str | None, field: str, points: int, out: Path, **kafka: Any
) -> None:
    """Build an embedding reference NAME: centroid and similarities, for test `embedding` of a monitor.

    Like a profile, the file is named by its content.
    """
    if (from_parquet is None) == (from_topic is None):
        raise Refused("give exactly one of --from-parquet, --from-topic")
    try:
        vectors = list(vectors_of(requests_of(from_topic, from_parquet, kafka), field))
        found = build_embedding_reference(vectors, name=name, source=f"{from_parquet or from_topic}", max_points=points)
    except ReferenceProfileError as error:
        raise Refused(str(error)) from None
    click.echo(
        f"{found.n:,} embeddings of {found.dimension} dimensions, mean cosine to the centroid {found.mean_cosine:.4f}; "
        f"{found.n_null:,} without, {found.n_zero:,} zero, {found.n_invalid:,} of another kind"
    )
    click.echo(found.save(out))


@command.command(name="show", epilog=SHOW_EXAMPLES)
@click.argument("file", type=EXISTING)
def show(file: Path) -> None:
    """Show what a reference profile holds; the digest is verified."""
    try:
        profile = ReferenceProfile.load(file)
    except ReferenceProfileError as error:
        raise Refused(str(error)) from None
    _show(profile)


def _columns(asked: Wanted, options: dict[str, Any]) -> tuple[Columns, str, bool]:
    """Return the values of the one source that was named, that source in words, and whether they are in time order."""
    named = [option for option in ("from_csv", "from_parquet", "from_topic", "from_trace") if options[option]]
    if len(named) != 1:
        problem = "give exactly one of --from-csv, --from-parquet, --from-topic, --from-trace"
        raise click.UsageError(problem)
    suffix = f", {asked.condition}" if asked.where else ""
    if named[0] in ("from_csv", "from_parquet"):
        if options["since"] or options["until"]:
            raise click.UsageError("--since and --until cut a topic or a trace; cut a file with --where, or beforehand")
        path: Path = options[named[0]]
        columns, has_times = columns_of_file(path, asked, is_parquet=named[0] == "from_parquet")
        return columns, f"file {path.name}{suffix}", has_times or options["in_time_order"]
    if options["in_time_order"]:
        raise click.UsageError("--in-time-order is said of a file; the order of a topic and of a trace is known")
    if named[0] == "from_topic":
        since_ms, until_ms = _instant_ms(options["since"], 0), _instant_ms(options["until"], _now_ms())
        kafka = load_kafka_client(options["bootstrap_servers"], options["kafka_config"])
        columns = columns_of_topic(kafka, options["from_topic"], since_ms, until_ms, asked)
        words = f"topic {options['from_topic']}, event time {rfc3339(since_ms)} to {rfc3339(until_ms)}{suffix}"
        return columns, words, True
    for option in ("since", "until"):
        if options[option] is not None and options[option].instant_ms is not None:
            problem, remedy = "is an instant, but a trace is replayed at any time", "Give a share (50%) or a time (30m)"
            raise ConfigurationError("command line", f"--{option}", problem, remedy)
    plan = ReplayPlan(
        trace=options["trace"],
        service_model=options["service_model"],
        seed=options["seed"],
        part_from=options["since"] or BEGIN,
        part_until=options["until"] or END,
    )
    columns = columns_of_trace(plan, asked)
    part = f"{_words(plan.part_from)} to {_words(plan.part_until)}"
    return columns, f"trace {plan.trace.name}, {part}, model seed {plan.seed}{suffix}", True


def _instant_ms(at: Position | None, default_ms: int) -> int:
    """An instant, or a duration taken as so long ago."""
    if at is None:
        return default_ms
    if at.instant_ms is not None:
        return at.instant_ms
    if at.seconds is None:
        problem, remedy = "is a share of nothing", "Give an instant (2026-01-31T12:00:00Z) or how long ago (1h)"
        raise ConfigurationError("command line", "--since, --until", problem, remedy)
    return _now_ms() - round(at.seconds * 1000)


def _now_ms() -> int:
    return time.time_ns() // 1_000_000


def _words(at: Position) -> str:
    return f"{at.share:.0%}" if at.share is not None else f"{at.seconds:g} s"


def _show(profile: ReferenceProfile) -> None:
    """Print a profile as a table."""
    console = Console(highlight=False, soft_wrap=True)
    if not console.is_terminal:
        console.width = TABLE_WIDTH
    console.print(f"reference {profile.name}, built {profile.created_at} of {profile.source}")
    console.print(f"digest {profile.digest}")
    if profile.features:
        console.print(_numeric_table(profile))
    if profile.category_features:
        console.print(_category_table(profile))


def _numeric_table(profile: ReferenceProfile) -> Table:
    table = Table(box=None, pad_edge=False)
    for heading in ("feature", "n", "nulls", "infinite", "min", "median", "max", "points", "D within"):
        table.add_column(heading, justify="left" if heading == "feature" else "right")
    for feature, reference in sorted(profile.features.items()):
        median = np.quantile(reference.points, 0.5, method="inverted_cdf")  # a point itself, also among infinities
        numbers = (reference.minimum, median, reference.maximum)
        bound = f"{reference.quantisation_bound:g}" if reference.quantisation_bound else "exact"
        table.add_row(
            feature,
            *(f"{count:,}" for count in (reference.n_raw, reference.n_null, reference.n_infinite)),
            *(f"{number:.4g}" for number in numbers),
            f"{len(reference.points):,}",
            bound,
        )
    return table


def _category_table(profile: ReferenceProfile) -> Table:
    table = Table(box=None, pad_edge=False)
    for heading in ("category feature", "n", "nulls", "categories", "kept", "other", "most frequent"):
        is_text = heading in ("category feature", "most frequent")
        table.add_column(heading, justify="left" if is_text else "right")
    for feature, reference in sorted(profile.category_features.items()):
        (top,) = reference.counts.top(1)
        sizes = (reference.n_raw, reference.n_null, reference.n_categories, len(reference.known))
        numbers = (f"{count:,}" for count in (*sizes, reference.counts.n_other))
        table.add_row(feature, *numbers, f"{top.value} ({reference.counts.counts[top] / reference.n_raw:.1%})")
    return table
