"""The ingest job as it is, reading its topic to the end of now: for the bench, which has to know when it is done."""

import sys

import jobs.ingest
from jobs.settings import JobSettings, source_options


def _to_end(settings: JobSettings, job: str, topic: str, fmt: dict[str, str]) -> str:
    return source_options(settings, job, topic, {**fmt, "scan.bounded.mode": "latest-offset"})


if __name__ == "__main__":
    jobs.ingest.source_options = _to_end
    jobs.ingest.main(sys.argv[1:])
