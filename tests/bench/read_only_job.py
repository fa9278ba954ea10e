"""The drift bench's peer: a Flink job that reads and parses topic `requests` and does nothing with it.

Takes the drift job's own command line, and declares the columns that the drift job declares.
"""

import sys

from jobs.drift import validate
from jobs.flink_environment import open_environment
from jobs.settings import source_options
from schemas.requests import flink_columns

JOB = "read-only"
READING = {"format": "json", "json.ignore-parse-errors": "true", "scan.bounded.mode": "latest-offset"}
METADATA = ("`partition` INT NOT NULL", "`offset` BIGINT NOT NULL", "`timestamp` TIMESTAMP_LTZ(3) NOT NULL")


def main(argv: list[str]) -> None:
    """Read the topic to its end of now."""
    _, settings, monitors = validate(argv)
    environment, table_env = open_environment(settings, JOB)
    columns = flink_columns(["event_time_ms", *monitors.columns])
    read = ", ".join([columns, *(f"{column} METADATA VIRTUAL" for column in METADATA)])
    options = source_options(settings, JOB, "requests", READING)
    table_env.execute_sql(f"CREATE TEMPORARY TABLE requests ({read}) WITH ({options})")
    table_env.execute_sql(
        f"CREATE TEMPORARY TABLE nothing ({', '.join([columns, *METADATA])}) WITH ('connector' = 'blackhole')"
    )
    statement_set = table_env.create_statement_set()
    statement_set.add_insert_sql("INSERT INTO nothing SELECT * FROM requests")
    statement_set.attach_as_datastream()
    environment.execute(JOB)


if __name__ == "__main__":
    main(sys.argv[1:])
