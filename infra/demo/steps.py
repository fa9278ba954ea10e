"""The steps of `make run`: an empty stack, five jobs, the replay, and waiting until all of it came through."""

import time
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

import orjson

from infra import submit
from infra.books import read_books
from infra.demo.facts import (
    Facts,
    expected_budget_ends,
    expected_window_ends,
    judged_window_ends,
    read_facts,
    told_budget_ends,
)
from infra.errors import StackError
from infra.flink_run import Submission
from infra.replay import Drift, FaultShares, Position, ReplayPlan, ReplayReport
from infra.stack import Stack
from infra.stack_settings import StackSettings
from jobs.kafka_client import KafkaClient
from jobs.monitors import Monitors
from jobs.slos import Slos

Say = Callable[[str], None]
MARKER = "made-by-make-run"
ONE_PERCENT = 0.01
DRIFT_FEATURE = "time_per_output_token_seconds"
# As the monitors' (infra/conf/monitors.yaml): 40 times as fast, a partition may be read 3 s later than the other.
SLO_WATERMARK_BOUND_MS = 120_000
# Past the watermark bound of the monitors, so that the last windows close; within a window, so that none is empty.
FLUSH_SECONDS = 180.0
# Longer than a checkpoint of the alert job (1 s), what it holds a transition for, and a batch of the audit job: what it
# makes of the last verdicts is committed by then.
SETTLE_SECONDS = 9.0
JOB_START_SECONDS = 180.0


@dataclass(frozen=True)
class Demo:
    """The stack of one run, and where its files are; without a file of SLOs there is no job for them."""

    stack: Stack
    monitors_file: Path
    cards: tuple[Path, ...]
    say: Say
    slos_file: Path | None = None

    @property
    def kafka(self) -> KafkaClient:
        """How to reach the broker."""
        return KafkaClient(self.stack.broker.bootstrap_servers)


def empty_stack(state: Path, settings: StackSettings, say: Say) -> Stack:
    """Start a stack without data. What an earlier `make run` left is deleted; what anything else left is not.

    Raises StackError when the state folder holds a stack that `make run` did not make.
    """
    before = Stack.of(state)
    if before is not None:
        if not (before.run / MARKER).exists():
            remedy = "Keep it and give `make run` another folder (SLACKTIDE_STATE), or `slacktide down --purge` it"
            raise StackError(f"{before.run} holds a stack that was not made by `make run`", remedy)
        say("deleting what the last `make run` left")
        before.down(purge=True)
    stack = Stack(state, settings)
    stack.up(say)
    (stack.run / MARKER).touch()
    return stack


def submit_jobs(demo: Demo) -> None:
    """Start the audit driver, and submit ingest, drift, slo and alert with `flink run`."""
    stack, say = demo.stack, demo.say
    servers, jobmanager = stack.broker.bootstrap_servers, stack.flink.rest_address
    arguments: dict[str, list[str]] = {"ingest": [], "drift": ["--monitors", str(demo.monitors_file)], "alert": []}
    if demo.slos_file is not None:
        bound_seconds = str(SLO_WATERMARK_BOUND_MS / 1000)
        arguments["slo"] = ["--slos", str(demo.slos_file), "--watermark-bound-seconds", bound_seconds]
    audit = ["--trigger-seconds", "2", "--model-card", *map(str, demo.cards)]
    driver = submit.with_audit_defaults(submit.JobRequest("audit", servers, jobmanager, args=audit), stack)
    submit.validate(driver)
    say("starting audit (Spark)")
    submit.start_driver(submit.audit_service(driver, stack, stack.run))
    for job, args in arguments.items():
        request = submit.JobRequest(job, servers, jobmanager, args=args)
        submit.validate(request)
        say(f"flink run {job}")
        submission = Submission(job=request.module, args=request.argv)
        job_id = submit.submit_to_flink(request, stack.flink.home, submission)
        stack.flink.wait_processing(job_id, timeout_seconds=JOB_START_SECONDS)


def replay_plan(speed_up: float) -> ReplayPlan:
    """The whole trace, a drift half way, 1 % malformed, duplicated and late requests."""
    return ReplayPlan(
        speed_up=speed_up,
        drifts=(Drift(DRIFT_FEATURE, Position(share=0.5)),),
        shares=FaultShares(duplicates=ONE_PERCENT, malformed=ONE_PERCENT, late=ONE_PERCENT),
        flush_seconds=FLUSH_SECONDS,
    )


def wait_until_through(
    demo: Demo, report: ReplayReport, monitors: Monitors, slos: Slos, timeout_seconds: float
) -> Facts:
    """Wait until ingest, drift, slo, alert and audit have taken in all that was sent, then read the topics.

    Gives up waiting after the timeout and returns what there is: the checks then say what is missing.
    """
    kafka, say = demo.kafka, demo.say
    deadline = time.monotonic() + timeout_seconds
    say("waiting for ingest")
    expected = {str(kind): count for kind, count in report.expected_books().items() if count}
    while time.monotonic() < deadline and _ingest_counts(kafka) != expected:
        time.sleep(1.0)
    say("waiting for drift and slo")
    facts = read_facts(kafka)
    while time.monotonic() < deadline and not (_all_judged(facts, monitors) and _all_told(facts, slos)):
        time.sleep(1.0)
        facts = read_facts(kafka)
    say("waiting for alert and audit")
    settled = time.monotonic()
    while time.monotonic() < deadline:
        now = read_facts(kafka)
        if now.ids != facts.ids or not _audited(now, demo.stack.audit_status_file):
            settled = time.monotonic()
        facts = now
        if time.monotonic() - settled > SETTLE_SECONDS:
            break
        time.sleep(1.0)
    return facts


def _ingest_counts(kafka: KafkaClient) -> dict[str, int]:
    return {kind: count for kind, count in read_books(kafka).get("ingest", {}).items() if count}


def _all_judged(facts: Facts, monitors: Monitors) -> bool:
    ends = expected_window_ends(facts, monitors)
    judged = {name: judged_window_ends(facts, name) for name in ends}
    return all(judged[name] and all(ends[name] <= set(found) for found in judged[name].values()) for name in ends)


def _all_told(facts: Facts, slos: Slos) -> bool:
    expected = expected_budget_ends(facts, SLO_WATERMARK_BOUND_MS, slos.slice_ms)
    told = told_budget_ends(facts)
    return all(any(slo == name for slo, _ in told) for name in slos.by_name) and all(
        expected <= set(found) for found in told.values()
    )


def _audited(facts: Facts, status: Path) -> bool:
    """Whether the audit job says that each record of the topics has found its place."""
    try:
        topics = orjson.loads(status.read_bytes())["topics"]
    except FileNotFoundError:
        return False
    return all(topics[topic]["read"] == sum(ids.values()) for topic, ids in facts.ids.items())
