"""One place that opens a Flink environment with what every job of ours needs."""

from pyflink.common import Configuration
from pyflink.datastream import StreamExecutionEnvironment
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
