"""Submission of our jobs: checked first, then `flink run` to any cluster, or Spark's driver as a process of the stack.

Every job module has `validate(argv)`, which raises ConfigurationError for what must not start.
"""

import contextlib
import importlib
import subprocess
import sys
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

from infra.errors import StackError
from infra.flink_home import CLIENT_CONFIG, FlinkHome
from infra.flink_rest import FlinkRest
from infra.flink_run import Submission, flink_run
from infra.kept_state import (
    advice_on_running,
    cost_of_fresh_start,
    note_plan,
    noted_plan,
    plan_of_savepoint,
    refuse_other_state,
)
from infra.paths import jars
from infra.process import last_words
from infra.service import Service, load_services
from infra.stack import Stack

FLINK_JOBS = ("ingest", "ingest-metrics", "score", "drift", "experiment", "slo", "alert")
SPARK_JOBS = ("audit",)
JOBS = FLINK_JOBS + SPARK_JOBS
Advice = Callable[[str], str]
# A driver that lives this long has read its configuration and opened its tables.
DRIVER_PROOF_SECONDS = 5.0


@dataclass(frozen=True)
class JobRequest:
    """What the user asked for: which job, where Kafka and the cluster are, and the job's own arguments."""

    job: str
    bootstrap_servers: str
    jobmanager: str
    kafka_config: Path | None = None
    args: Sequence[str] = field(default_factory=tuple)

    @property
    def module(self) -> str:
        """The module that holds the job."""
        return f"jobs.{self.job.replace('-', '_')}"

    @property
    def argv(self) -> list[str]:
        """The job's command line. Secrets are not on it: the Kafka file names environment variables."""
        addresses = ["--bootstrap-servers", self.bootstrap_servers]
        if self.kafka_config:
            addresses += ["--kafka-config", str(self.kafka_config.resolve())]
        return [*addresses, *self.args]

    @property
    def name(self) -> str:
        """The name under which the cluster shows it, the consumer group's too."""
        return f"slacktide-{self.job}{_value_of('--name-suffix', self.args)}"


def _value_of(option: str, args: Sequence[str]) -> str:
    """Return the value of `option` in `args`, written with a space or with `=`; empty when absent.

    >>> _value_of("--name-suffix", ["--name-suffix=-b"]), _value_of("--name-suffix", ["--name-suffix", "-c"])
    ('-b', '-c')
    """
    found = ""
    for place, word in enumerate(args):
        if word.startswith(option + "="):
            found = word.partition("=")[2]
        elif word == option and place + 1 < len(args):
            found = args[place + 1]
    return found


def validate(request: JobRequest) -> None:
    """Check a job's configuration in this process. Raises ConfigurationError; SystemExit for unknown options."""
    try:
        module = importlib.import_module(request.module)
    except ModuleNotFoundError as error:
        if error.name == request.module:
            raise StackError(f"job {request.job} is not part of this version", f"Jobs: {', '.join(JOBS)}") from None
        raise
    module.validate(request.argv)


def state_plan(request: JobRequest) -> dict[str, Any] | None:
    """Return what the job's state will be made of; None of jobs that don't tell. Raises as `validate` does."""
    tell = getattr(importlib.import_module(request.module), "state_plan", None)
    return tell(request.argv) if tell else None


def check_state(request: JobRequest, home: FlinkHome, savepoint: str) -> str:
    """Raise ConfigurationError where the job can't take over the state in `savepoint`.

    Return a note where that can't be told, else an empty text.
    """
    after = state_plan(request)
    if after is None:
        return ""
    before = plan_of_savepoint(home, savepoint)
    if before is None:
        return (
            f"nothing is noted here of the job that wrote {savepoint}: it isn't checked whether {request.name} can "
            "take its state over (docs/operations.md)"
        )
    refuse_other_state(before, after, _value_of("--monitors", request.args), savepoint)
    return ""


def note_on_fresh_start(request: JobRequest, home: FlinkHome) -> str:
    """Say what a start without a savepoint leaves behind, where this job ran before and a state of it is kept."""
    notes = _job_notes(home, request.name)
    ran = notes.read_text().split() if notes.exists() else []
    before = noted_plan(home, ran[-1]) if ran else None
    if before is None:
        return ""
    with contextlib.suppress(StackError):
        kept = newest_checkpoint(home, request.name)
        return f"this starts fresh, and leaves the state in {kept} (see --resume). {cost_of_fresh_start(before)}"
    return ""


def refuse_running(
    jobs: Sequence[Mapping[str, Any]], name: str, jobmanager: str, advice: Advice = lambda _: ""
) -> None:
    """Raise StackError when `jobs` (as `FlinkRest.running_jobs` has them) hold one called `name`.

    `advice` says, of that job's id, how to go on once it is stopped.
    """
    for job in jobs:
        if job["name"] == name:
            then = advice(job["jid"])
            remedy = (
                f"Stop it first with `slacktide down {name.removeprefix('slacktide-')}`{then and ', '}{then}; or run a "
                "second copy beside it with `--name-suffix=-2`"
            )
            raise StackError(f"{name} already runs on {jobmanager} as job {job['jid']}", remedy)


def check_not_running(request: JobRequest, home: FlinkHome) -> None:
    """Raise StackError where a job of that name runs on the cluster, with the way on."""

    def advice(job_id: str) -> str:
        plan = state_plan(request)
        return "" if plan is None else advice_on_running(noted_plan(home, job_id), plan, request.job)

    refuse_running(FlinkRest(request.jobmanager).running_jobs(), request.name, request.jobmanager, advice)


def submit_to_flink(request: JobRequest, home: FlinkHome, submission: Submission) -> str:
    """Submit with `flink run` and return the job's id. Raises StackError, also where the job runs already."""
    check_not_running(request, home)
    plan = state_plan(request)
    job_id = flink_run(submission, home, request.jobmanager)
    notes = _job_notes(home, request.name)
    notes.parent.mkdir(parents=True, exist_ok=True)
    with notes.open("a") as file:
        file.write(f"{job_id}\n")
    if plan is not None:
        note_plan(home, job_id, plan)
    return job_id


def _job_notes(home: FlinkHome, name: str) -> Path:
    """The file of the ids under which a job ran: the cluster forgets its jobs when it ends."""
    return home.folder / "jobs" / name


def client_home(state: Path, stack: Stack | None, jobmanager: str) -> FlinkHome:
    """Return the Flink home to submit from: the embedded cluster's own for itself, else one of a bare client."""
    if stack is not None and jobmanager == stack.flink.rest_address:
        return stack.flink.home
    home = FlinkHome(state / "client")
    home.prepare({}, CLIENT_CONFIG)
    return home


def newest_checkpoint(home: FlinkHome, name: str) -> str:
    """Return the newest checkpoint or savepoint kept under `home` of the job that last ran as `name`.

    Raises StackError when there is none.
    """
    notes = _job_notes(home, name)
    for job_id in reversed(notes.read_text().split() if notes.exists() else []):
        checkpoints = (home.folder / "checkpoints" / job_id).glob("chk-*/_metadata")
        savepoints = (home.folder / "savepoints").glob(f"savepoint-{job_id[:6]}-*/_metadata")
        found = sorted([*checkpoints, *savepoints], key=lambda file: file.stat().st_mtime)
        if found:
            return found[-1].parent.as_uri()
    remedy = "Submit without --resume to start fresh, or name a path with --from-savepoint"
    raise StackError(f"no checkpoint of {name} is kept under {home.folder}", remedy)


def with_audit_defaults(request: JobRequest, stack: Stack) -> JobRequest:
    """Return the request with the stack's own tables, jars and status file where the user named none."""
    defaults = {
        "--warehouse": str(stack.warehouse),
        "--jars": str(jars("spark", stack.state)[0].parent),
        "--status-file": str(stack.audit_status_file),
    }
    missing = [word for name, value in defaults.items() if not _value_of(name, request.args) for word in (name, value)]
    return replace(request, args=(*missing, *request.args))


def audit_service(request: JobRequest, stack: Stack, folder: Path) -> Service:
    """The Spark driver as one of the stack's processes, which the supervisor starts again when it dies."""
    name = request.name.removeprefix("slacktide-")
    return Service(
        name=name,
        argv=(sys.executable, "-P", "-m", request.module, *request.argv),
        log=stack.run / "spark" / f"{name}.log",
        run=stack.run,
        folder=folder,
        stop_order=50,
    )


def start_driver(service: Service) -> int:
    """Start a driver, see it live for a while, hand it to the supervisor, and return its process id.

    Raises StackError when one of that name runs already, or when it ends at once.
    """
    if running := service.process():
        problem = f"{service.name} already runs as process {running.pid}"
        raise StackError(problem, f"End it first with `slacktide down {service.name}`")
    started = service.start()
    with contextlib.suppress(subprocess.TimeoutExpired):
        started.wait(DRIVER_PROOF_SECONDS)
        problem = f"{service.name} ended at once:\n{last_words([service.log])}"
        raise StackError(problem, f"The whole log is {service.log}")
    service.save()
    return started.pid


def stop_job(stack: Stack, job: str) -> str:
    """End one job of the embedded stack, named as for `submit` (with its suffix), and return what was done in words.

    A Flink job is stopped with a savepoint. Raises StackError when no such job runs.
    """
    for service in load_services(stack.run):
        if service.name == job and job.startswith(SPARK_JOBS):
            service.forget()
            service.stop(grace_seconds=30.0)
            return f"{job} ended."
    name = f"slacktide-{job}"
    for running in stack.flink.rest.running_jobs():
        if running["name"] == name:
            savepoint = stack.flink.rest.savepoint_and_stop(running["jid"])
            return f"{name} stopped, savepoint {savepoint}"
    raise StackError(f"no job called {name} runs", "`slacktide status` lists those that do")
