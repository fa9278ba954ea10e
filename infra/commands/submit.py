"""`slacktide submit`: check a job's configuration and start it on a cluster."""

import os
from pathlib import Path
from typing import Any

import click
from rich.console import Console

from infra import submit
from infra.addresses import embedded_bootstrap_servers, embedded_jobmanager
from infra.commands.state_option import state_option
from infra.errors import StackError
from infra.flink_rest import FlinkRest
from infra.flink_run import Submission
from infra.stack import Stack, required_stack

EXAMPLES = """
\b
Examples:
  slacktide submit ingest
  slacktide submit ingest-metrics
  slacktide submit drift --monitors monitors.yaml
  slacktide submit drift --monitors monitors.yaml --resume
  slacktide submit experiment --experiments experiments.yaml
  slacktide submit score --scorers scorers.yaml
  slacktide submit slo --slos slos.yaml
  slacktide submit alert --parallelism 2
  slacktide submit audit --model-card cards/chat.json
  slacktide submit drift --monitors monitors.yaml --jobmanager flink.example:8081 \\
      --bootstrap-servers kafka.example:9093 --kafka-config kafka.yaml --python /opt/slacktide/bin/python
  slacktide submit drift -- --help

`slacktide submit JOB -- --help` lists the job's own options, which `submit` passes on.
"""


@click.command(name="submit", epilog=EXAMPLES, context_settings={"ignore_unknown_options": True})
@click.argument("job", type=click.Choice(submit.JOBS))
@click.argument("job_arguments", nargs=-1, type=click.UNPROCESSED)
@state_option
@click.option("--jobmanager", metavar="HOST:PORT", help="REST address of the cluster. [default: the embedded one]")
@click.option(
    "--bootstrap-servers",
    envvar="SLACKTIDE_BOOTSTRAP_SERVERS",
    show_envvar=True,
    help="Kafka HOST:PORT[,HOST:PORT...]. [default: the embedded broker]",
)
@click.option(
    "--kafka-config",
    type=click.Path(dir_okay=False, path_type=Path),
    help="YAML of Kafka client settings (TLS, SASL); ${NAME} is from the environment.",
)
@click.option("--from-savepoint", metavar="PATH", help="Start from this savepoint or retained checkpoint.")
@click.option("--resume", is_flag=True, help="Start from the newest checkpoint or savepoint kept of this job.")
@click.option("--allow-non-restored-state", is_flag=True, help="Leave out state of operators that are gone.")
@click.option("--python", help="Python of the cluster's workers, with Slacktide's dependencies. [default: this one]")
@click.option("--jarfile", type=click.Path(dir_okay=False), help="Kafka connector, where the cluster's lib/ has none.")
@click.option("--dry-run", is_flag=True, help="Check the configuration and print the `flink run` line; submit nothing.")
def command(job: str, job_arguments: tuple[str, ...], state: Path, dry_run: bool, **options: Any) -> None:
    """Check the configuration of JOB (ingest, ingest-metrics, score, drift, experiment, slo, alert or audit) and
    start it.

    Flink jobs go to the embedded cluster or to --jobmanager; audit is a local Spark driver that the stack's supervisor
    looks after. A configuration that is wrong is refused before anything starts, with file, field and remedy.
    """
    request = submit.JobRequest(
        job=job,
        bootstrap_servers=options["bootstrap_servers"] or embedded_bootstrap_servers(state),
        jobmanager=options["jobmanager"] or embedded_jobmanager(state),
        kafka_config=options["kafka_config"],
        args=job_arguments,
    )
    if job in submit.SPARK_JOBS:
        _start_driver(request, state, dry_run)
    else:
        submit.validate(request)
        _submit(request, state, dry_run, options)


def _start_driver(request: submit.JobRequest, state: Path, dry_run: bool) -> None:
    console = Console(highlight=False, soft_wrap=True)
    stack = required_stack(state)
    request = submit.with_audit_defaults(request, stack)
    submit.validate(request)
    service = submit.audit_service(request, stack, Path.cwd())
    if dry_run:
        console.print(" ".join(service.argv))
        return
    with console.status(f"starting {service.name}"):
        pid = submit.start_driver(service)
    console.print(f"{service.name} runs as process {pid}; its log is {service.log}")


def _submit(request: submit.JobRequest, state: Path, dry_run: bool, options: dict[str, Any]) -> None:
    console = Console(highlight=False, soft_wrap=True)
    home = submit.client_home(state, Stack.of(state), request.jobmanager)
    rest = FlinkRest(request.jobmanager)
    savepoint = options["from_savepoint"]
    if options["resume"] and savepoint:
        raise StackError("--resume and --from-savepoint are both given", "Give one of them")
    if options["resume"]:
        savepoint = submit.newest_checkpoint(home, request.name)
    note = submit.check_state(request, home, savepoint) if savepoint else ""
    submission = Submission(
        job=request.module,
        args=request.argv,
        savepoint=savepoint,
        allow_non_restored_state=options["allow_non_restored_state"],
        python=options["python"] or Submission.python,
        jarfile=os.path.abspath(options["jarfile"]) if options["jarfile"] else None,
    )
    if dry_run:
        console.print(" ".join(submission.command(home, request.jobmanager)))
        return
    submit.check_not_running(request, home)
    if note := note or ("" if savepoint else submit.note_on_fresh_start(request, home)):
        Console(stderr=True, highlight=False, soft_wrap=True).print(f"note: {note}")
    with console.status(f"submitting {request.name}"):
        job_id = submit.submit_to_flink(request, home, submission)
    origin = f" from {savepoint}" if savepoint else ""
    console.print(f"{request.name} runs as job {job_id}{origin}: {rest.url}/#/job/running/{job_id}/overview")
