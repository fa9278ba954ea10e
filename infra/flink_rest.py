"""Flink's REST interface: what runs, how it does, and how to stop it. Works with any cluster of Flink 2."""

import time
import urllib.error
import urllib.request
from typing import Any

import orjson

from infra.errors import StackError

RUNNING_STATES = frozenset({"INITIALIZING", "CREATED", "RUNNING", "FAILING", "RESTARTING", "RECONCILING"})


class FlinkRest:
    """A cluster's REST interface at `address` (HOST:PORT). Every call raises StackError when it can't be reached."""

    def __init__(self, address: str, timeout_seconds: float = 10.0) -> None:
        self.address, self.timeout_seconds = address, timeout_seconds

    @property
    def url(self) -> str:
        """Where the web UI is."""
        return f"http://{self.address}"

    def get(self, path: str) -> Any:
        """Return the JSON answer of a GET."""
        return self._call("GET", path, None)

    def _call(self, method: str, path: str, body: object | None) -> Any:
        request = urllib.request.Request(
            self.url + path,
            data=None if body is None else orjson.dumps(body),
            method=method,
            headers={"Content-Type": "application/json"},
        )
        try:
            # Never through a proxy: the cluster is ours, mostly on loopback.
            opener = urllib.request.build_opener(urllib.request.ProxyHandler({}))
            with opener.open(request, timeout=self.timeout_seconds) as answer:
                return orjson.loads(answer.read() or b"null")
        except urllib.error.HTTPError as error:
            reason = _first_error(error.read())
            raise StackError(f"Flink at {self.address} refused {path}: {reason}", f"See {self.url}") from None
        except (OSError, ValueError) as error:
            remedy = "Start the stack with `slacktide up`, or give the right --jobmanager"
            raise StackError(f"no Flink cluster answers at {self.address} ({error})", remedy) from None

    def is_ready(self, slots: int = 1) -> bool:
        """Whether it answers and has at least `slots` task slots."""
        try:
            return bool(self.get("/overview")["slots-total"] >= slots)
        except StackError:
            return False

    def jobs(self) -> list[dict[str, Any]]:
        """Return the jobs the cluster knows: `jid`, `name`, `state`, `start-time`, newest first."""
        found: list[dict[str, Any]] = self.get("/jobs/overview")["jobs"]
        return sorted(found, key=lambda job: job["start-time"], reverse=True)

    def running_jobs(self) -> list[dict[str, Any]]:
        """Those of `jobs` that have not come to an end."""
        return [job for job in self.jobs() if job["state"] in RUNNING_STATES]

    def state(self, job_id: str) -> str:
        """Return a job's state: `RUNNING`, `RESTARTING`, `FINISHED`..."""
        return str(self.get(f"/jobs/{job_id}")["state"])

    def is_processing(self, job_id: str) -> bool:
        """Whether the job and each of its tasks run; a job says RUNNING while its tasks still deploy."""
        job = self.get(f"/jobs/{job_id}")
        return job["state"] == "RUNNING" and all(v["status"] in ("RUNNING", "FINISHED") for v in job["vertices"])

    def failure(self, job_id: str) -> str:
        """Return the first lines of the newest failure of a job, or an empty text."""
        entries = self.get(f"/jobs/{job_id}/exceptions").get("exceptionHistory", {}).get("entries", [])
        return "\n".join(entries[0]["stacktrace"].splitlines()[:40]) if entries else ""

    def cancel(self, job_id: str, timeout_seconds: float = 30.0) -> None:
        """Cancel a job and wait until it has come to an end."""
        self._call("PATCH", f"/jobs/{job_id}?mode=cancel", {})
        self.wait_for(job_id, {"CANCELED", "FINISHED", "FAILED"}, timeout_seconds)

    def savepoint_and_stop(self, job_id: str, timeout_seconds: float = 120.0) -> str:
        """Stop a job with a savepoint, wait until it has ended, and return the savepoint's path."""
        trigger = self._call("POST", f"/jobs/{job_id}/stop", {"drain": False})["request-id"]
        deadline = time.monotonic() + timeout_seconds
        while time.monotonic() < deadline:
            answer = self.get(f"/jobs/{job_id}/savepoints/{trigger}")
            if answer["status"]["id"] == "COMPLETED":
                operation = answer["operation"]
                if "location" not in operation:
                    cause = operation.get("failure-cause", {}).get("stack-trace", "").splitlines()[:1]
                    raise StackError(f"the savepoint of job {job_id} failed: {' '.join(cause)}", f"See {self.url}")
                self.wait_for(job_id, {"FINISHED"}, timeout_seconds)
                return str(operation["location"])
            time.sleep(0.1)
        raise StackError(f"no savepoint of job {job_id} in {timeout_seconds:.0f} s", f"See {self.url}")

    def wait_for(self, job_id: str, states: set[str], timeout_seconds: float) -> None:
        """Return once the job is in one of `states`. Raises StackError with its failure when it takes too long."""
        deadline = time.monotonic() + timeout_seconds
        while (state := self.state(job_id)) not in states:
            if time.monotonic() > deadline:
                problem = f"job {job_id} is {state}, not {'/'.join(sorted(states))}, after {timeout_seconds:.0f} s"
                raise StackError(problem, f"See {self.url}\n{self.failure(job_id)}")
            time.sleep(0.1)


def _first_error(body: bytes) -> str:
    """Return the first line of a REST error."""
    try:
        errors = [line for error in orjson.loads(body)["errors"] for line in error.splitlines() if line.strip()]
    except (ValueError, KeyError, TypeError):
        errors = body.decode(errors="replace").splitlines()
    return errors[0][:300] if errors else "no reason given"
