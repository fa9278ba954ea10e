"""`slacktide models`: the models of a scorers file, loaded: from where, which digest, on which device."""

from pathlib import Path
from typing import TYPE_CHECKING, Any

import click
import orjson
from rich.console import Console
from rich.table import Table

from gpu_scorers.model_files import ModelError, ModelSource, fetch_from_hub, find_model
from infra.commands.score import DEFAULT_SCORERS, FILE, TABLE_WIDTH
from jobs.kafka_client import ConfigurationError
from jobs.scorers import build_with_models, load_scorers

if TYPE_CHECKING:
    from gpu_scorers.loaded_models import LoadedModels

MIB = 1 << 20
EXAMPLES = """
\b
Examples:
  slacktide models
  slacktide models --scorers scorers.yaml --json
  slacktide models --digest models/nli-deberta-v3-small
  slacktide models --fetch cross-encoder/nli-deberta-v3-small@COMMIT
"""


@click.command(name="models", epilog=EXAMPLES)
@click.option("--scorers", type=FILE, default=DEFAULT_SCORERS, show_default="ours", help="YAML of scorers.")
@click.option("--json", "as_json", is_flag=True, help="A JSON object a model instead of a table.")
@click.option("--digest", "folder", type=click.Path(path_type=Path), help="Only print the digest of a model's folder.")
@click.option("--fetch", metavar="NAME@COMMIT", help="Only fetch a model of the Hugging Face hub into the local cache.")
def command(scorers: Path, folder: Path | None, fetch: str | None, *, as_json: bool) -> None:
    """Load the models of a scorers file as a worker would, and list them.

    Nothing is fetched but by --fetch.
    """
    if folder is not None:
        click.echo(_found(ModelSource(str(folder), path=str(folder)), "--digest")["digest"])
    elif fetch is not None:
        click.echo(_fetched(fetch))
    else:
        _, models = build_with_models(load_scorers(str(scorers)))
        _show(rows_of(models), as_json=as_json)


def rows_of(models: "LoadedModels") -> list[dict[str, Any]]:
    """What is known of each loaded model."""
    loaded: list[Any] = [*models.encoders.values(), *models.classifiers.values()]
    return [
        {
            "model": model.files.source.name,
            "kind": type(model).__name__,
            "from": model.files.source.origin,
            "folder": str(model.files.folder),
            "digest": model.files.digest,
            "device": model.device.name,
            "precision": model.device.precision,
            "parameters": model.n_parameters,
            "mib": round(model.files.n_bytes / MIB, 1),
        }
        for model in loaded
    ]


def _found(source: ModelSource, option: str) -> dict[str, str]:
    try:
        found = find_model(source)
    except ModelError as error:
        raise ConfigurationError("command line", option, error.problem, error.remedy) from None
    return {"folder": str(found.folder), "digest": found.digest}


def _fetched(fetch: str) -> str:
    name, at, revision = fetch.partition("@")
    if not at or len(revision) != 40 or set(revision) - set("0123456789abcdef"):
        problem = f"{fetch!r} is no NAME@COMMIT"
        raise ConfigurationError("command line", "--fetch", problem, "Write all 40 hex digits of the commit after @")
    try:
        fetch_from_hub(name, revision)
    except ModelError as error:
        raise ConfigurationError("command line", "--fetch", error.problem, error.remedy) from None
    found = _found(ModelSource(name, hub=name, revision=revision), "--fetch")
    return f"{{hub: {name}, revision: {revision}, digest: {found['digest']}}}"


def _show(rows: list[dict[str, Any]], *, as_json: bool) -> None:
    if as_json:
        for row in rows:
            click.echo(orjson.dumps(row))
        return
    console = Console(highlight=False, soft_wrap=True)
    if not console.is_terminal:
        console.width = TABLE_WIDTH
    table = Table(box=None, pad_edge=False)
    for heading in ("model", "from", "device", "precision", "parameters", "MiB"):
        table.add_column(heading, justify="right" if heading in ("parameters", "MiB") else "left")
    for row in rows:
        figures = (f"{row['parameters']:,}", f"{row['mib']:,}")
        table.add_row(row["model"], row["from"], row["device"], row["precision"], *figures)
    console.print(table)
    for row in rows:
        console.print(f"{row['model']}: {row['digest']} in {row['folder']}")
