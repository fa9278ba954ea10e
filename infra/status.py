"""What `slacktide status` tells: processes and memory, jobs, lag, and the balance of the books, as plain data."""

import time
from collections.abc import Callable
from dataclasses import asdict, dataclass, field
from typing import Any, TypeVar

import orjson
from confluent_kafka import KafkaException

from infra.books import Books, read_books
from infra.errors import StackError
from infra.flink_status import JobStatus, job_statuses
from infra.lag import Lag, read_lags
from infra.process import memory_bytes
from infra.service import load_services
from infra.stack import Stack
from infra.supervisor import read_restarts
from jobs.kafka_client import KafkaClient
from schemas.books import ingest_balance, metric_balance

MIB = 1024 * 1024
TASKMANAGER = "taskmanager"
Answer = TypeVar("Answer")


@dataclass(frozen=True, slots=True)
class ProcessStatus:
    """One service with its workers. `pid` is None while it is down.

    `worker_memory_mb` is what the Python workers of jobs take of `memory_mb`.
    """

    name: str
    pid: int | None
    processes: int
    memory_mb: int
    restarts: int
    worker_memory_mb: int = 0


@dataclass(frozen=True)
class StackStatus:
    """One look at the stack. `audit` is what the audit job says of itself; `problems` is what could not be asked."""

    at_ms: int
    processes: list[ProcessStatus]
    memory_limit_mb: int
    jobs: list[JobStatus] = field(default_factory=list)
    lags: list[Lag] = field(default_factory=list)
    books: Books = field(default_factory=dict)
    audit: dict[str, Any] | None = None
    problems: list[str] = field(default_factory=list)

    @property
    def memory_mb(self) -> int:
        """Memory of everything, Python workers and the supervisor too (`infra.process.memory_bytes`)."""
        return sum(process.memory_mb for process in self.processes)

    @property
    def worker_memory_mb(self) -> int:
        """What the Python workers of jobs take of it: it comes and goes with the jobs."""
        return sum(process.worker_memory_mb for process in self.processes)

    @property
    def ingest_balance(self) -> int | None:
        """Spans in less all that came of them: 0 when the books balance; None where ingest has not counted yet."""
        return ingest_balance(self.books["ingest"]) if "ingest" in self.books else None

    @property
    def metric_balance(self) -> int | None:
        """The same of metric points; None where the metrics job has not counted yet."""
        return metric_balance(self.books["ingest-metrics"]) if "ingest-metrics" in self.books else None

    def to_json(self) -> dict[str, Any]:
        """All of it as plain data."""
        balances = {"ingest_balance": self.ingest_balance, "metric_balance": self.metric_balance}
        sums = {"memory_mb": self.memory_mb, "worker_memory_mb": self.worker_memory_mb} | balances
        return asdict(self) | sums


def stack_status(stack: Stack) -> StackStatus:
    """Ask processes, Flink and Kafka. Never raises because one of them is down: that is a problem in the answer."""
    problems: list[str] = []
    kafka = KafkaClient(stack.broker.bootstrap_servers, {"log_level": "0", "socket.timeout.ms": "5000"})
    jobs: list[JobStatus] = _asked(lambda: job_statuses(stack.flink.rest), [], problems)
    lags: list[Lag] = _asked(lambda: read_lags(kafka), [], problems)
    books: Books = _asked(lambda: read_books(kafka, timeout_seconds=10.0), {}, problems)
    return StackStatus(
        at_ms=int(time.time() * 1000),
        processes=_process_statuses(stack),
        memory_limit_mb=stack.settings.memory_limit_mb,
        jobs=jobs,
        lags=lags,
        books=books,
        audit=_audit_status(stack),
        problems=problems,
    )


def _audit_status(stack: Stack) -> dict[str, Any] | None:
    """Return the audit job's own account; None before it has written one."""
    try:
        found: dict[str, Any] = orjson.loads(stack.audit_status_file.read_bytes())
    except (OSError, orjson.JSONDecodeError):
        return None
    return found


def _asked(ask: Callable[[], Answer], otherwise: Answer, problems: list[str]) -> Answer:
    try:
        return ask()
    except StackError as error:
        problems.append(error.problem)
    except KafkaException as error:
        problems.append(f"Kafka does not answer: {error.args[0].str()}")
    return otherwise


def _process_statuses(stack: Stack) -> list[ProcessStatus]:
    restarts = read_restarts(stack.run)
    found = []
    for service in [*load_services(stack.run), stack.supervisor]:
        main = service.process()
        family = service.family()
        workers = [process for process in family if process != main] if service.name == TASKMANAGER else []
        found.append(
            ProcessStatus(
                name=service.name,
                pid=main.pid if main else None,
                processes=len(family),
                memory_mb=round(memory_bytes(family) / MIB),
                restarts=restarts.get(service.name, 0),
                worker_memory_mb=round(memory_bytes(workers) / MIB),
            )
        )
    return found
