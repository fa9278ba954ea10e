"""`slacktide judge`: how well a scorer that judges agrees with people, as the report that its scores carry."""

from collections.abc import Sequence
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import click
import orjson

from gpu_scorers.scorer import Request, Scorer
from infra.commands.score import DEFAULT_SCORERS, FILE, chosen_scorers
from jobs.kafka_client import ConfigurationError
from jobs.scorer_kinds import KINDS
from jobs.scorers import load_scorers
from schemas.ids import content_digest
from schemas.judge_report import QUALIFYING_F1, JudgeReport
from schemas.strict_json import loads_strictly

GROUP_EXAMPLES = """
\b
Examples:
  slacktide judge validate --help
"""
VALIDATE_EXAMPLES = """
\b
Example:
  slacktide judge validate examples.jsonl --scorer factuality --find inconsistent --out judges/nli.json

\b
examples.jsonl has a JSON object a line; `label` is what people said:
  {"prompt": "Paris is in France. Where is Paris?", "response": "In Spain.", "label": "inconsistent"}
"""


@click.group(name="judge", epilog=GROUP_EXAMPLES)
def command() -> None:
    """Validate the scorers that judge against what people said."""


@command.command(name="validate", epilog=VALIDATE_EXAMPLES, context_settings={"show_default": True})
@click.argument("examples", type=FILE)
@click.option("--scorers", type=FILE, default=DEFAULT_SCORERS, show_default="ours", help="YAML of scorers.")
@click.option("--scorer", "name", required=True, help="Name of the scorer in it.")
@click.option("--find", "positive", required=True, help="The label that it is there to find, whose F1 counts.")
@click.option("--out", type=click.Path(dir_okay=False, path_type=Path), required=True, help="File of the report.")
def validate(examples: Path, *, scorers: Path, name: str, positive: str, out: Path) -> None:
    """Score EXAMPLES that people labelled, and write F1, n, date and digests to a file.

    An example that the scorer can't score counts as one where it found nothing.
    """
    kinds = {spec.name: spec.kind for spec in load_scorers(str(scorers)).scorers}
    if name in kinds and not KINDS[kinds[name]].judges:
        problem, remedy = f"{name} is of kind {kinds[name]}, which measures", "Name a scorer that judges"
        raise ConfigurationError(str(scorers), "--scorer", problem, remedy)
    rows = _rows(examples)
    (scorer,) = chosen_scorers(scorers, (name,))
    found = answers(scorer, rows)
    truth = [row["label"] for row in rows]
    if positive not in truth:
        problem = f"no example has the label {positive!r}; there are {', '.join(sorted(set(truth)))}"
        raise ConfigurationError(str(examples), "label", problem, "Add examples of what the judge is there to find")
    report = report_of(rows, found, positive, scorer.model_digest, datetime.now(UTC).date().isoformat())
    out.parent.mkdir(parents=True, exist_ok=True)
    out.write_bytes(orjson.dumps(report.to_dict(), option=orjson.OPT_INDENT_2 | orjson.OPT_APPEND_NEWLINE))
    verdict = "qualifies" if report.qualifies else f"does not qualify: an SLI needs {QUALIFYING_F1:g}"
    n_positive, n_none = truth.count(positive), found.count(None)
    click.echo(
        f"F1 {report.f1:.4f} over {report.n} examples, {n_positive} of them {positive}, {n_none} without a score"
    )
    click.echo(f"{out}: {verdict}")


def answers(scorer: Scorer, rows: Sequence[dict[str, str]]) -> list[str | None]:
    """The label that the scorer's first score of each example has; None where it has no value."""
    requests = [Request("", prompt=row.get("prompt"), response=row["response"]) for row in rows]
    firsts = (scores[0] for scores in scorer.score(requests))
    return [None if score.value is None else score.label for score in firsts]


def report_of(
    rows: Sequence[dict[str, str]], found: Sequence[str | None], positive: str, model_digest: str | None, date: str
) -> JudgeReport:
    """Return the report: F1 = 2 TP / (2 TP + FP + FN) of the label `positive`."""
    pairs = [(row["label"] == positive, answer == positive) for row, answer in zip(rows, found, strict=True)]
    true_positives = pairs.count((True, True))
    wrong = pairs.count((True, False)) + pairs.count((False, True))
    f1 = 2 * true_positives / (2 * true_positives + wrong)
    content = [
        [row.get("prompt"), row["response"], row["label"], answer] for row, answer in zip(rows, found, strict=True)
    ]
    return JudgeReport(f1, len(rows), date, content_digest(orjson.dumps(content)), model_digest)


def _rows(file: Path) -> list[dict[str, str]]:
    rows = []
    for number, line in enumerate(file.read_bytes().splitlines(), start=1):
        if line.strip():
            rows.append(_row(str(file), number, line))
    if not rows:
        raise ConfigurationError(str(file), "(file)", "has no example", "Write a JSON object a line")
    return rows


def _row(file: str, number: int, line: bytes) -> dict[str, str]:
    remedy = 'Write {"prompt": ..., "response": ..., "label": ...}, all texts'
    try:
        row: Any = loads_strictly(line)
    except ValueError as error:
        raise ConfigurationError(file, f"line {number}", f"is not JSON: {error}", remedy) from None
    if not isinstance(row, dict) or not all(isinstance(row.get(name), str) for name in ("response", "label")):
        raise ConfigurationError(file, f"line {number}", "lacks response or label", remedy)
    if not isinstance(row.get("prompt", ""), str):
        raise ConfigurationError(file, f"line {number}", "has a prompt that is no text", remedy)
    return row
