"""`slacktide score`: one request scored by hand, with the scorers of a file."""

from dataclasses import replace
from pathlib import Path
from typing import Any

import click
import orjson
from rich.console import Console
from rich.table import Table

from gpu_scorers.scorer import Request, Score, Scorer
from jobs.kafka_client import ConfigurationError
from jobs.scorers import build_scorers, load_scorers
from jobs.yaml_fields import not_one_of

DEFAULT_SCORERS = Path(__file__).resolve().parents[1] / "conf" / "scorers.yaml"
TABLE_WIDTH = 120  # where there is no terminal to ask
FILE = click.Path(exists=True, dir_okay=False, path_type=Path)
EXAMPLES = """
\b
Examples:
  slacktide score --prompt "What is the capital of France?" --response "Paris."
  slacktide score --text "I'm sorry, but I can't help with that." --only refusal
  slacktide score --prompt-file prompt.txt --response-file answer.txt --golden "Paris." --json
"""


@click.command(name="score", epilog=EXAMPLES, context_settings={"show_default": True})
@click.option("--prompt", help="The prompt.")
@click.option("--response", "--text", "response", help="The response.")
@click.option("--golden", help="The text that a good response should equal (BLEU).")
@click.option("--prompt-file", type=FILE, help="File with the prompt, UTF-8.")
@click.option("--response-file", type=FILE, help="File with the response, UTF-8.")
@click.option("--scorers", type=FILE, default=DEFAULT_SCORERS, show_default="ours", help="YAML of scorers.")
@click.option("--only", multiple=True, help="Name of a scorer of the file. Repeatable. [default: all]")
@click.option("--json", "as_json", is_flag=True, help="A JSON object a score instead of a table.")
def command(
    *,
    prompt: str | None,
    response: str | None,
    golden: str | None,
    prompt_file: Path | None,
    response_file: Path | None,
    scorers: Path,
    only: tuple[str, ...],
    as_json: bool,
) -> None:
    """Score one request by hand and print every score, with its status, its label and what was left out."""
    request = Request(
        trace_id="0" * 32,
        prompt=_text(prompt, prompt_file, "--prompt"),
        response=_text(response, response_file, "--response"),
        golden=golden,
    )
    if request.prompt is None and request.response is None:
        raise click.UsageError("Give --prompt, --response, or both.")
    found = [(scorer, score) for scorer in chosen_scorers(scorers, only) for score in scorer.score([request])[0]]
    if as_json:
        for scorer, score in found:
            click.echo(orjson.dumps(_record(scorer, score)))
    else:
        _show(found)


def _text(text: str | None, file: Path | None, option: str) -> str | None:
    if text is not None and file is not None:
        raise click.UsageError(f"Give {option} or {option}-file, not both.")
    return text if file is None else file.read_text(encoding="utf-8", errors="replace")


def chosen_scorers(file: Path, only: tuple[str, ...]) -> list[Scorer]:
    """Build the scorers of a file that are called `only`, or all; models of others aren't loaded."""
    whole = load_scorers(str(file))
    names = [spec.name for spec in whole.scorers]
    for name in only:
        if name not in names:
            raise ConfigurationError(str(file), "--only", *not_one_of(name, names))
    kept = tuple(spec for spec in whole.scorers if not only or spec.name in only)
    return build_scorers(replace(whole, scorers=kept))


def _record(scorer: Scorer, score: Score) -> dict[str, Any]:
    return {
        "scorer": scorer.name,
        "scorer_version": scorer.version,
        "model_digest": scorer.model_digest,
        "score": score.name,
        "value": score.value,
        "status": score.status,
        "label": score.label,
        "truncated": score.truncated,
        "judge": scorer.judge and scorer.judge.to_dict(),
        "evidence": dict(score.evidence),
    }


def _show(found: list[tuple[Scorer, Score]]) -> None:
    console = Console(highlight=False)
    if not console.is_terminal:
        console.width = TABLE_WIDTH
    table = Table(box=None, pad_edge=False)
    for heading in ("score", "value", "status", "label", "truncated", "evidence"):
        table.add_column(heading, justify="right" if heading == "value" else "left")
    for _, score in found:
        table.add_row(
            score.name,
            "" if score.value is None else f"{score.value:.4f}",
            str(score.status),
            score.label or "",
            "yes" if score.truncated else "",
            ", ".join(f"{name}: {_short(value)}" for name, value in score.evidence.items()),
        )
    console.print(table)


def _short(value: object) -> str:
    return f"{value:.4f}" if isinstance(value, float) else str(value)
