"""The audit tables by name, in a Spark session of our own."""

from pathlib import Path

from pyspark.sql import SparkSession

from jobs.audit_session import open_session
from jobs.audit_tables import register


def open_tables(jars: Path, warehouse: Path) -> SparkSession:
    """Open a session with every table and view of `warehouse` registered. Stop it when done."""
    spark = open_session("slacktide-demo", jars=sorted(jars.glob("*.jar")), log_level="error")
    register(spark, str(warehouse))
    return spark
