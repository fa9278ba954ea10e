"""The ingest bench's peer: a Flink job that reads the bytes of topic `otlp_spans` to its end of now, and no more."""

import argparse
import sys

from jobs.flink_environment import open_environment
from jobs.settings import add_job_arguments, settings_from, source_options

JOB = "read-bytes"
COLUMNS = ("`partition` INT NOT NULL", "`offset` BIGINT NOT NULL", "`timestamp` TIMESTAMP_LTZ(3) NOT NULL")
READING = {"format": "raw", "scan.bounded.mode": "latest-offset"}


def main(argv: list[str]) -> None:
    """Read the topic, with the columns that the ingest job takes."""
    parser = argparse.ArgumentParser(JOB)
    add_job_arguments(parser)
    settings = settings_from(parser.parse_args(argv))
    environment, table_env = open_environment(settings, JOB)
    read = ", ".join(["message BYTES", *(f"{column} METADATA VIRTUAL" for column in COLUMNS)])
    options = source_options(settings, JOB, "otlp_spans", READING)
    table_env.execute_sql(f"CREATE TEMPORARY TABLE otlp_spans ({read}) WITH ({options})")
    written = ", ".join(["message BYTES", *COLUMNS])
    table_env.execute_sql(f"CREATE TEMPORARY TABLE nothing ({written}) WITH ('connector' = 'blackhole')")
    statement_set = table_env.create_statement_set()
    statement_set.add_insert_sql("INSERT INTO nothing SELECT * FROM otlp_spans")
    statement_set.attach_as_datastream()
    environment.execute(JOB)


if __name__ == "__main__":
    main(sys.argv[1:])
