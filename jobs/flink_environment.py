"""One place that opens a Flink environment with what every job of ours needs."""

from collections.abc import Callable

from pyflink.common import Configuration, Row, Types
from pyflink.datastream import DataStream, KeyedStream, StreamExecutionEnvironment
from pyflink.table import StreamTableEnvironment

from jobs.settings import JobSettings

_FIXED = {
    "table.local-time-zone": "UTC",
    "pipeline.object-reuse": "true",
    # One source and one decode for all sinks: equal sub-plans are found by digest.
    "table.optimizer.reuse-optimize-block-with-digest-enabled": "true",
    # A Python worker waits at most this long to fill a batch; Flink's default of 1 s would be felt in latency.
    "python.fn-execution.bundle.time": "100",
}


def job_name(settings: JobSettings, job: str) -> str:
    """The name under which the cluster shows the job."""
    return f"slacktide-{job}{settings.name_suffix}"


def open_environment(
    settings: JobSettings, job: str, overrides: dict[str, str] | None = None
) -> tuple[StreamExecutionEnvironment, StreamTableEnvironment]:
    """Return a streaming environment and its table environment, checkpointing exactly once at the job's interval.

    Checkpointing is set here because without it in the submitted job there is no restart at all. `overrides` are Flink
    options that win over ours.
    """
    options = _FIXED | {
        "pipeline.name": job_name(settings, job),
        "parallelism.default": str(settings.parallelism),
        "execution.checkpointing.interval": f"{int(settings.checkpoint_interval_seconds * 1000)} ms",
        "execution.checkpointing.mode": "EXACTLY_ONCE",
    }
    configuration = Configuration()
    for name, value in (options | (overrides or {})).items():
        configuration.set_string(name, value)
    environment = StreamExecutionEnvironment.get_execution_environment(configuration)
    return environment, StreamTableEnvironment.create(environment)


def keyed_stream(stream: DataStream, key: Callable[[Row], str], uid: str) -> KeyedStream:
    """Return `stream` keyed by a text, the operator that computes the key under a uid of its own.

    PyFlink makes that operator and hands out no way to name it; without a uid its place in a savepoint would change
    with the rest of the job.
    """
    keyed = stream.key_by(key, key_type=Types.STRING())
    keyed._j_data_stream.getTransformation().getInputs().get(0).setUid(uid)
    return keyed
