"""Submission of a Python job with the `flink run` that ships inside pyflink, to the embedded or any other cluster."""

import os
import re
import subprocess
import sys
from collections.abc import Sequence
from pathlib import Path

from infra.dist import jobs_zip
from infra.errors import StackError
from infra.flink_home import FlinkHome

_JOB_ID = re.compile(r"Job has been submitted with JobID ([0-9a-f]{32})")


class FlinkRun:
    """`flink run` against the cluster at `jobmanager` (HOST:PORT), with the jars and configuration of `home`."""

    def __init__(self, home: FlinkHome, jobmanager: str) -> None:
        self.home, self.jobmanager = home, jobmanager

    def command(
        self, job: str | Path, args: Sequence[str] = (), savepoint: str | None = None, options: Sequence[str] = ()
    ) -> list[str]:
        """Return the exact `flink run` line. `job` is a file or a module name; `options` go before it."""
        is_file = isinstance(job, Path) or job.endswith(".py")
        line = [str(self.home.flink), "run", "-d", "-m", self.jobmanager]
        line += ["-s", savepoint] if savepoint else []
        line += ["-py" if is_file else "-pym", str(job), "-pyfs", str(jobs_zip(self.home.folder / "dist"))]
        line += ["-pyexec", sys.executable, "-pyclientexec", sys.executable, *options]
        return [*line, *args]

    def submit(
        self, job: str | Path, args: Sequence[str] = (), savepoint: str | None = None, options: Sequence[str] = ()
    ) -> str:
        """Submit and return the job id. Raises StackError with the client's own reason when it fails."""
        done = subprocess.run(
            self.command(job, args, savepoint, options),
            env={**os.environ, **self.home.environment},
            capture_output=True,
            text=True,
            check=False,
        )
        found = _JOB_ID.search(done.stdout)
        if done.returncode or not found:
            problem = f"`flink run` of {job} failed: {_reason(done.stdout + done.stderr)}"
            raise StackError(problem, f"The client's log is in {self.home.log}")
        return found[1]


def _reason(output: str) -> str:
    """Return what matters of the client's output: the Python traceback's end, or the last cause of Java's."""
    lines = [line for line in output.splitlines() if line.strip() and not line.startswith("WARNING")]
    python_errors = [line for line in lines if re.match(r"[\w.]*(Error|Exception|Exit)\b.*:", line)]
    causes = [line for line in lines if line.startswith("Caused by:")]
    chosen = python_errors[-1:] or causes[-1:] or lines[-3:]
    return " ".join(chosen)[:1000]
