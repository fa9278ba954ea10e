"""`slacktide plot`: figures of a drift series, of a service level, and of the distances between versions."""

from pathlib import Path
from typing import Any

import click

from infra.commands.alerts import Since
from infra.commands.kafka_options import kafka_options

GROUP_EXAMPLES = """
\b
Examples:
  slacktide plot drift
  slacktide plot drift chat/input_tokens --out drift.svg
  slacktide plot slo availability
  slacktide plot versions v1.json v2.json v3.json
"""
DRIFT_EXAMPLES = """
\b
Examples:
  slacktide plot drift                                       the series there are
  slacktide plot drift chat/input_tokens/model=m1            a PNG named after the series
  slacktide plot drift chat/input_tokens --since 6h --out drift.svg
  slacktide sql -e "TABLE verdicts" --format json --max-rows 1000000 > verdicts.jsonl
  slacktide plot drift chat/input_tokens --from verdicts.jsonl
"""
SLO_EXAMPLES = """
\b
Examples:
  slacktide plot slo availability
  slacktide plot slo availability/model=m1,service_name=chat --since 2d --out budget.svg
  slacktide sql -e "SELECT * FROM verdicts WHERE kind = 'slo'" --format json --max-rows 1000000 > verdicts.jsonl
  slacktide plot slo availability --from verdicts.jsonl
"""
VERSIONS_EXAMPLES = """
\b
Examples:
  slacktide plot versions v1.json v2.json v3.json
  slacktide plot versions graphs/*.json --out versions.svg
  slacktide plot versions v1.json v2.json --edit-distance

docs/versions.md says how a snapshot is written, and what the figures mean.
"""
FILE = click.Path(exists=True, dir_okay=False, path_type=Path)
OUT = click.Path(dir_okay=False, path_type=Path)


@click.group(name="plot", epilog=GROUP_EXAMPLES)
def command() -> None:
    """Draw a drift series, a service level, or the distances between versions, as PNG, SVG or PDF."""


@command.command(name="drift", epilog=DRIFT_EXAMPLES)
@click.argument("series", required=False)
@click.option("--out", type=OUT, help="The file; its name says the form. [default: a PNG named after the series]")
@click.option("--from", "source", type=FILE, help="Parquet, or a JSON record a line, instead of the topics.")
@click.option("--since", type=Since(), help="Only what was published since: 2h, 90s or 2026-01-31T12:00:00Z.")
@click.option("--topic-prefix", default="", help="Put before the topics' names.")
@kafka_options
def drift(*, series: str | None, out: Path | None, **where: Any) -> None:
    """Draw SERIES: its statistic and threshold over time, drifted windows, alerts, and reference against window.

    SERIES is monitor/feature/label=value,... as listed without it; its beginning will do where that is one series
    only. Verdicts and alerts are read from topics `verdicts` and `alerts`, or from a file.
    """
    from infra.plots.drift_series import SeriesBook
    from infra.plots.figure_file import checked_figure_path, default_path
    from infra.plots.record_sources import none_in_file

    if out is not None:
        checked_figure_path(out)
    book = SeriesBook.of(_records(**where), series)
    if book.n_skipped:
        click.echo(f"skipped {book.n_skipped} records that are neither a verdict nor an alert", err=True)
    if where["source"] is not None and not book.series:
        raise none_in_file(where["source"], "verdicts")
    if series is None:
        _list(book)
        return
    found = book.find(series)
    _save_drift(found, out or default_path("drift", found.name))


def _records(
    *, source: Path | None, since: int | None, topic_prefix: str, bootstrap_servers: str, kafka_config: str | None
) -> Any:
    from infra.plots.record_sources import records_of_file, records_of_topics
    from jobs.kafka_client import load_kafka_client

    if source is None:
        return records_of_topics(load_kafka_client(bootstrap_servers, kafka_config), topic_prefix, since)
    if since is not None:
        raise click.UsageError("--since is about a topic; a file is taken whole")
    return records_of_file(source)


def _save_drift(series: Any, out: Path) -> None:
    from infra.errors import StackError
    from infra.plots.drift_chart import draw_drift
    from infra.plots.figure_file import save

    if not series.by_end:
        raise StackError(f"there are alerts of {series.name}, but no verdicts", "Give an earlier --since, or none")
    save(draw_drift(series), out)
    click.echo(out)


def _list(book: Any) -> None:
    from rich.markup import escape

    from infra.commands.whole_table import print_whole
    from schemas.times import rfc3339

    table = _table()
    table.add_column("series", no_wrap=True)
    for heading in ("windows", "ok", "drifted", "alerts", "last window"):
        table.add_column(heading, justify="right", no_wrap=True)
    for one in sorted(book.series.values(), key=lambda one: one.name):
        counts = (len(one.by_end), one.n_ok, one.n_drifted, len(one.alert_starts))
        last = rfc3339(max(one.by_end)) if one.by_end else ""
        table.add_row(escape(one.name), *(f"{count:,}" for count in counts), last)
    if table.row_count:
        print_whole(table)
    else:
        click.echo("There are no verdicts yet. `slacktide submit drift` starts the job that writes them.")


@command.command(name="slo", epilog=SLO_EXAMPLES)
@click.argument("name")
@click.option("--out", type=OUT, help="The file; its name says the form. [default: slo-NAME.png]")
@click.option("--from", "source", type=FILE, help="Parquet, or a JSON record a line, instead of the topic.")
@click.option("--since", type=Since(), help="Only what was published since: 2h, 90s or 2026-01-31T12:00:00Z.")
@click.option("--topic-prefix", default="", help="Put before the topics' names.")
@kafka_options
def slo(*, name: str, out: Path | None, **where: Any) -> None:
    """Draw the budget and the burn rates of the SLO called NAME; with several series, NAME/label=value,..."""
    from infra.plots.figure_file import checked_figure_path, default_path, save
    from infra.plots.record_sources import none_in_file
    from infra.plots.slo_chart import draw_slo
    from infra.service_levels.standings import SloBook

    if out is not None:
        checked_figure_path(out)
    book = SloBook.of(_records(**where), name)
    if where["source"] is not None and not book.histories:
        raise none_in_file(where["source"], f"verdict on a service level called {name}")
    history = book.find(name)
    path = out or default_path("slo", history.label)
    save(draw_slo(history), path)
    click.echo(path)


@command.command(name="versions", epilog=VERSIONS_EXAMPLES)
@click.argument("snapshots", nargs=-1, required=True, type=click.Path(path_type=Path), metavar="SNAPSHOT...")
@click.option("--out", type=OUT, default=Path("versions.png"), show_default=True, help="The file.")
@click.option("--edit-distance", is_flag=True, help="Print bounds of the graph edit distance too; for small graphs.")
def versions(*, snapshots: tuple[Path, ...], out: Path, edit_distance: bool) -> None:
    """Draw how far the graphs of versions are apart, as a heat map, and print the matrix.

    The first snapshot is the baseline that sets the scale of features. Distances are 1 less the cosine of diffusion
    embeddings: 0 for graphs that are the same to it.
    """
    from infra.plots.distance_map import cell, draw_distances
    from infra.plots.figure_file import checked_figure_path, save
    from udfs.versions.graph_distance import version_distances

    if len(snapshots) < 2:
        raise click.UsageError("Give at least two snapshots to compare.")
    checked_figure_path(out)
    graphs = _graphs(snapshots)
    labels = _labels(snapshots, graphs)
    distances = version_distances(graphs)
    save(draw_distances(labels, distances), out)
    _print_matrix("distance", labels, [[cell(value) for value in row] for row in distances])
    if edit_distance:
        _print_matrix("edits", labels, _edit_distances(graphs))
    click.echo(out)


def _graphs(snapshots: tuple[Path, ...]) -> list[Any]:
    from jobs.kafka_client import ConfigurationError
    from schemas.version_graph import VersionGraphError, load_version_graph

    try:
        graphs = [load_version_graph(path) for path in snapshots]
    except VersionGraphError as error:
        raise ConfigurationError(error.file, error.field, error.problem, error.remedy) from None
    first = next((graph for graph in graphs if graph.node_ids), None)
    for path, graph in zip(snapshots, graphs, strict=True):
        if first is not None and graph.node_ids and graph.n_features != first.n_features:
            problem = f"nodes have {graph.n_features} features, those of the baseline {first.n_features}"
            raise ConfigurationError(str(path), "nodes", problem, "Write the same features for every version")
    return graphs


def _labels(snapshots: tuple[Path, ...], graphs: list[Any]) -> list[str]:
    """Versions by their names, with the model's where there are several, and the file's where that is not enough."""
    several = len({graph.model for graph in graphs}) > 1
    labels = [f"{graph.model} {graph.version}" if several else graph.version for graph in graphs]
    return [
        f"{label} ({path.name})" if labels.count(label) > 1 else label
        for label, path in zip(labels, snapshots, strict=True)
    ]


def _edit_distances(graphs: list[Any]) -> list[list[str]]:
    from infra.errors import StackError
    from udfs.versions.graph_edit_distance import graph_edit_distance

    try:
        found = [[graph_edit_distance(one, other) for other in graphs] for one in graphs]
    except ValueError as error:
        raise StackError(f"no edit distance: {error}", "Leave --edit-distance out") from None
    return [[f"{d.upper:.4g}" if d.is_exact else f"{d.lower:.4g} to {d.upper:.4g}" for d in row] for row in found]


def _print_matrix(name: str, labels: list[str], rows: list[list[str]]) -> None:
    from rich.markup import escape

    from infra.commands.whole_table import print_whole

    table = _table()
    table.add_column(name, no_wrap=True)
    for label in labels:
        table.add_column(escape(label), justify="right", no_wrap=True)
    for label, row in zip(labels, rows, strict=True):
        table.add_row(escape(label), *row)
    print_whole(table)


def _table() -> Any:
    from rich.table import Table

    return Table(box=None, pad_edge=False, padding=(0, 2, 0, 0))
