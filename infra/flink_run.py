"""Submission of a Python job with the `flink run` that ships inside pyflink, to the embedded or any other cluster."""

import os
import re
import subprocess
import sys
from collections.abc import Sequence
from dataclasses import dataclass

from infra.dist import jobs_zip
from infra.errors import StackError
from infra.flink_home import FlinkHome

_JOB_ID = re.compile(r"Job has been submitted with JobID ([0-9a-f]{32})")


@dataclass(frozen=True)
class Submission:
    """One job to submit. `job` is a file, or the name of a module that our packages hold (`jobs.drift`).

    `python` runs the workers on the cluster; `jarfile` brings the Kafka connector to a cluster whose `lib/` lacks it.
    """

    job: str
    args: Sequence[str] = ()
    savepoint: str | None = None
    allow_non_restored_state: bool = False
    python: str = sys.executable
    jarfile: str | None = None

    def command(self, home: FlinkHome, jobmanager: str) -> list[str]:
        """Return the exact `flink run` line for the cluster at `jobmanager` (HOST:PORT)."""
        line = [str(home.flink), "run", "-d", "-m", jobmanager]
        line += ["-s", self.savepoint] if self.savepoint else []
        line += ["-n"] if self.allow_non_restored_state else []
        line += ["--jarfile", self.jarfile] if self.jarfile else []
        line += ["-py" if self.job.endswith(".py") else "-pym", self.job]
        line += ["-pyfs", str(jobs_zip(home.folder / "dist"))]
        return [*line, "-pyexec", self.python, "-pyclientexec", sys.executable, *self.args]


def flink_run(submission: Submission, home: FlinkHome, jobmanager: str) -> str:
    """Submit and return the job's id. Raises StackError with the client's own reason when it fails."""
    done = subprocess.run(
        submission.command(home, jobmanager),
        env={**os.environ, **home.environment},
        capture_output=True,
        text=True,
        check=False,
    )
    found = _JOB_ID.search(done.stdout)
    if done.returncode or not found:
        (home.log / "submit.out").write_text(done.stdout + done.stderr)
        problem = f"`flink run` of {submission.job} failed: {_reason(done.stdout + done.stderr)}"
        raise StackError(problem, f"All that it said is in {home.log / 'submit.out'}")
    return found[1]


def _reason(output: str) -> str:
    """Return what matters of the client's output: a state that doesn't fit, the Python traceback's end, or the last
    cause of Java's."""
    lines = [line for line in output.splitlines() if line.strip() and not line.startswith("WARNING")]
    python_errors = [line for line in lines if re.match(r"[\w.]*(Error|Exception|Exit)\b.*:", line)]
    causes = [line for line in lines if line.startswith("Caused by:")]
    other_state = [line for line in causes if "Failed to rollback to checkpoint/savepoint" in line]
    chosen = other_state[-1:] or python_errors[-1:] or causes[-1:] or lines[-3:]
    return " ".join(chosen)[:1000]
