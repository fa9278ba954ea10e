"""Runs the demo: `python -m infra.demo`, which `make run` calls. Exits with 1 when a check fails or it can't run."""

import argparse
import sys
import time
from collections import Counter

from rich.console import Console
from rich.progress import BarColumn, Progress, TextColumn, TimeRemainingColumn

from infra.demo.checks import checks
from infra.demo.delta import open_tables
from infra.demo.steps import Demo, empty_stack, replay_plan, submit_jobs, wait_until_through
from infra.demo.summary import Answer, print_checks, print_summary, print_where_next
from infra.errors import StackError
from infra.paths import CHECKOUT, CONF, state_folder
from infra.replay import ReplayPlan, ReplayReport, Snapshot, replay
from infra.stack_settings import load_settings
from jobs.kafka_client import ConfigurationError
from jobs.monitors import load_monitors
from jobs.slos import load_slos
from schemas.times import rfc3339

MONITORS = CONF / "monitors.yaml"
SLOS = CONF / "slos.yaml"
CARDS = sorted((CHECKOUT / "schemas" / "cards").glob("*.json"))
WAIT_SECONDS = 150.0
LINE_SECONDS = 15.0
PAGE_WIDTH = 120  # where there is no terminal to ask
ID_COLUMNS = {"verdicts": "verdict_id", "alerts": "alert_id", "dead_letters": "dead_letter_id"}
QUESTIONS = {
    "how did each feature do?": """
        SELECT feature, count(*) AS windows, sum(CASE WHEN drifted THEN 1 ELSE 0 END) AS drifted,
               round(max(statistic), 3) AS worst_d, round(min(log10_p_value), 1) AS least_log10_p
        FROM verdicts WHERE kind <> 'slo' GROUP BY feature ORDER BY drifted DESC, feature""",
    "where does each service level stand?": """
        SELECT slo, status, period, target, round(sli, 4) AS sli, total, round(budget_remaining, 3) AS budget_left,
               concat_ws(', ', firing) AS firing
        FROM slo_status ORDER BY slo""",
    "what fired, on what evidence, under which model card?": """
        SELECT a.feature, a.state, a.starts_at, c.name AS model_card, c.version
        FROM alerts a LEFT JOIN model_cards c ON a.model_card_digest = c.model_card_digest
        ORDER BY a.starts_at, a.feature, a.state""",
    "what could not be used?": """
        SELECT job, reason, count(*) AS letters, sum(length) AS bytes
        FROM dead_letters GROUP BY job, reason ORDER BY letters DESC, reason""",
}


def main() -> int:
    """Run everything and return the exit status."""
    parser = argparse.ArgumentParser("infra.demo", description=__doc__)
    parser.add_argument("--speed-up", type=float, default=40.0, help="of the trace's own clock (default: 40)")
    parser.add_argument("--state-folder", help="default: SLACKTIDE_STATE, else .slacktide")
    parser.add_argument("--free-ports", action="store_true", help="take ports that are free now")
    parser.add_argument("--down", action="store_true", help="end the stack afterwards")
    arguments = parser.parse_args()
    console = Console(highlight=False, soft_wrap=True)
    if not console.is_terminal:
        console.width = PAGE_WIDTH
    began = time.monotonic()

    def say(what: str) -> None:
        console.print(f"[dim]{time.monotonic() - began:5.0f} s[/]  {what}")

    state = state_folder(arguments.state_folder)
    monitors, slos = load_monitors(MONITORS), load_slos(SLOS)
    settings = load_settings()
    stack = empty_stack(state, settings.with_free_ports() if arguments.free_ports else settings, say)
    demo = Demo(stack, MONITORS, tuple(CARDS), say, SLOS)
    try:
        submit_jobs(demo)
        report = _replayed(console, demo, replay_plan(arguments.speed_up))
        facts = wait_until_through(demo, report, monitors, slos, WAIT_SECONDS)
        say("asking Delta (Spark SQL)")
        answers, delta_ids = _asked(demo)
        found = checks(facts, report, monitors, slos, delta_ids)
        print_summary(console, facts, report, answers)
        print_checks(console, found)
        print_where_next(console, demo)
        failed = [check.name for check in found if not check.holds]
        say("done" if not failed else f"FAILED: {'; '.join(failed)}")
        return 1 if failed else 0
    finally:
        if arguments.down:
            stack.down(say)


def _replayed(console: Console, demo: Demo, plan: ReplayPlan) -> ReplayReport:
    """Replay with a progress bar, or a line every 15 s where there is no terminal."""
    demo.say(f"replaying the trace, {plan.speed_up:g} times as fast as it happened")
    columns = (TextColumn("{task.description}"), BarColumn(), TextColumn("{task.completed:,} of {task.total:,}"))
    last_line = time.monotonic()
    with Progress(*columns, TimeRemainingColumn(), console=console, disable=not console.is_terminal) as bar:
        task = bar.add_task("requests", total=None)

        def show(now: Snapshot) -> None:
            nonlocal last_line
            at = rfc3339(now.event_ms)[11:19]
            bar.update(task, total=now.total, completed=now.requests, description=f"requests, event time {at}")
            if not console.is_terminal and time.monotonic() - last_line > LINE_SECONDS:
                last_line = time.monotonic()
                demo.say(f"{now.requests:,} of {now.total:,} requests, event time {at}")

        return replay(plan, demo.kafka, show)


def _asked(demo: Demo) -> tuple[list[Answer], dict[str, Counter[str]]]:
    """Ask Delta the questions, and count the ids of each table, in one Spark session."""
    spark = open_tables(demo.stack)
    try:
        answers: list[Answer] = []
        for question, query in QUESTIONS.items():
            frame = spark.sql(query)
            answers.append((question, frame.columns, [tuple(row) for row in frame.collect()]))
        ids = {
            table: Counter(row[0] for row in spark.sql(f"SELECT {column} FROM {table}").collect())
            for table, column in ID_COLUMNS.items()
        }
        return answers, ids
    finally:
        spark.stop()


if __name__ == "__main__":
    try:
        sys.exit(main())
    except (StackError, ConfigurationError) as error:
        sys.exit(f"make run: {error}")
    except KeyboardInterrupt:
        sys.exit("make run: interrupted; `slacktide down` ends what was started")
