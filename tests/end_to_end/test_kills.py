"""Kill the TaskManager, a Python worker, the broker and the Spark driver, one at a time, under load: nothing is lost.

The expected verdicts are worked out from topic `requests` by tests/oracle.py, which shares no sketch or test with the
job. Each must be in Delta once, with the figures scipy gives.
"""

import time
from collections import Counter
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from pathlib import Path

import orjson
import psutil
import pytest
import yaml

from infra import process as processes
from infra.demo.delta import open_tables
from infra.demo.facts import read_facts
from infra.demo.steps import Demo, submit_jobs
from infra.follow import follow
from infra.paths import CHECKOUT, CONF
from infra.replay import FaultShares, ReplayPlan, ReplayReport, replay
from infra.stack import Stack
from infra.stack_settings import load_settings
from jobs.monitors import Monitors, load_monitors
from schemas.books import ingest_balance
from tests.oracle import Expected, TopicRecord, expected

pytestmark = [pytest.mark.engine, pytest.mark.end_to_end, pytest.mark.timeout(900)]

CARD = CHECKOUT / "schemas" / "cards" / "azure_llm_conversation_2023.json"
RATE_PER_SECOND = 200.0
# Long enough for four deaths and returns on a busy machine.
SENDING_SECONDS = 140.0
BOUND_SECONDS, WINDOW_SECONDS, SLIDE_SECONDS = 20, 40, 10
COMES_BACK_SECONDS = 240.0
COMES_THROUGH_SECONDS = 180.0


@pytest.fixture
def demo(tmp_path: Path) -> Iterator[Demo]:
    """The whole embedded stack on free ports, with all four jobs running."""
    stack = Stack(tmp_path, load_settings().with_free_ports())
    whole = Demo(stack, _monitors_file(tmp_path), (CARD,), print)
    try:
        stack.up()
        submit_jobs(whole)
        yield whole
    finally:
        stack.down()


def test_every_verdict_is_in_delta_once_whatever_dies(demo: Demo) -> None:
    with ThreadPoolExecutor(1) as sender:
        sending = Sending(sender, demo)
        time.sleep(10.0)
        for name, victim in VICTIMS.items():
            print("killing", name)
            _kill_and_wait(demo, name, victim)
            time.sleep(5.0)
        report = sending.stop()
    assert report.delivery_errors == {}

    monitors = load_monitors(demo.monitors_file)
    books = {str(kind): count for kind, count in report.expected_books().items()}
    _wait("ingest", lambda: _books(demo, "ingest") == {kind: count for kind, count in books.items() if count})
    want = _expected(demo, monitors)
    _wait("drift", lambda: set(read_facts(demo.kafka).ids["verdicts"]) >= set(want.verdicts))
    assert len(want.verdicts) > 20
    assert ingest_balance(_books(demo, "ingest")) == 0

    facts = read_facts(demo.kafka)
    assert set(facts.request_ids.values()) == {1}
    assert facts.ids["verdicts"] == Counter(dict.fromkeys(want.verdicts, 1))
    _wait("audit", lambda: _audited(demo) >= len(want.verdicts))
    rows = _delta_verdicts(demo)
    assert Counter(row["verdict_id"] for row in rows) == Counter(dict.fromkeys(want.verdicts, 1))
    print("the drift job's books", _books(demo, "drift"))
    for row in rows:
        verdict = want.verdicts[row["verdict_id"]]
        assert (row["statistic"], row["n_window"]) == (pytest.approx(verdict.statistic, abs=1e-12), verdict.n_window)


class Sending:
    """A replay that goes on in the background until it is asked to end."""

    def __init__(self, executor: ThreadPoolExecutor, demo: Demo) -> None:
        plan = ReplayPlan(
            rate_per_second=RATE_PER_SECOND,
            duration_seconds=SENDING_SECONDS,
            shares=FaultShares(duplicates=0.02, malformed=0.01),
            flush_seconds=BOUND_SECONDS + SLIDE_SECONDS + 1.0,
        )
        self._future = executor.submit(replay, plan, demo.kafka)

    def stop(self) -> ReplayReport:
        """Wait for its end."""
        return self._future.result()


def _taskmanager(demo: Demo) -> psutil.Process | None:
    return demo.stack.processes()["taskmanager"]


def _python_worker(demo: Demo) -> psutil.Process | None:
    family = processes.of_run(demo.stack.run, "taskmanager")
    return next((process for process in family if _is_python_worker(process)), None)


def _is_python_worker(process: psutil.Process) -> bool:
    """A process of the family may end while it is looked at."""
    with suppress(psutil.NoSuchProcess):
        return any("beam_boot" in word or "sdk_worker" in word for word in process.cmdline())
    return False


def _broker(demo: Demo) -> psutil.Process | None:
    return demo.stack.processes()["broker"]


def _spark_driver(demo: Demo) -> psutil.Process | None:
    return demo.stack.processes()["audit"]


VICTIMS: dict[str, Callable[[Demo], psutil.Process | None]] = {
    "the Python worker": _python_worker,
    "the TaskManager": _taskmanager,
    "the broker": _broker,
    "the Spark driver": _spark_driver,
}


def _kill_and_wait(demo: Demo, name: str, victim: Callable[[Demo], psutil.Process | None]) -> None:
    """Kill by id, then wait until another of its kind lives and every job's tasks run."""
    process = victim(demo)
    assert process is not None, f"{name} is not there to be killed"
    process.kill()
    _wait(f"{name} to come back", lambda: _is_back(demo, victim, process.pid), COMES_BACK_SECONDS)


def _is_back(demo: Demo, victim: Callable[[Demo], psutil.Process | None], old: int) -> bool:
    now = victim(demo)
    rest = demo.stack.flink.rest
    return now is not None and now.pid != old and all(rest.is_processing(job["jid"]) for job in rest.running_jobs())


def _wait(what: str, holds: Callable[[], bool], timeout_seconds: float = COMES_THROUGH_SECONDS) -> None:
    deadline = time.monotonic() + timeout_seconds
    while not holds():
        assert time.monotonic() < deadline, f"waited {timeout_seconds:.0f} s for {what}"
        time.sleep(1.0)


def _books(demo: Demo, job: str) -> dict[str, int]:
    return {kind: count for kind, count in read_facts(demo.kafka).books.get(job, {}).items() if count}


def _expected(demo: Demo, monitors: Monitors) -> Expected:
    messages = follow(demo.kafka, "requests", to_end=True)
    records = [TopicRecord(m.partition(), m.offset(), m.timestamp()[1], m.value()) for m in messages]
    records.sort(key=lambda record: (record.partition, record.offset))
    return expected(records, monitors)


def _audited(demo: Demo) -> int:
    topics = orjson.loads(demo.stack.audit_status_file.read_bytes())["topics"]
    return int(topics["verdicts"]["inserted"] or 0)


def _delta_verdicts(demo: Demo) -> list[dict[str, object]]:
    spark = open_tables(demo.stack)
    try:
        return [row.asDict() for row in spark.sql("SELECT verdict_id, statistic, n_window FROM verdicts").collect()]
    finally:
        spark.stop()


def _monitors_file(folder: Path) -> Path:
    reference = next((CONF / "references").glob("*.json"))
    file = folder / "monitors.yaml"
    monitor = {
        "name": "kills",
        "group_by": ["service_name"],
        "features": ["time_per_output_token_seconds", "input_tokens"],
        "window_seconds": WINDOW_SECONDS,
        "slide_seconds": SLIDE_SECONDS,
        "reference": str(reference),
        "model_card": str(CARD),
    }
    # A partition that is silent for longer no longer holds event time back, so that after an outage as long what is
    # read from the slower one would be late (docs/monitors.md). On a busy machine an engine is away for over 30 s.
    whole = {"watermark_bound_seconds": BOUND_SECONDS, "idle_timeout_seconds": 300, "monitors": [monitor]}
    file.write_text(yaml.safe_dump(whole))
    return file
