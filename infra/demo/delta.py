"""The audit tables by name, in a Spark session of our own."""

from pyspark.sql import SparkSession

from infra.spark import open_query_session
from infra.stack import Stack
from jobs.audit_tables import register


def open_tables(stack: Stack) -> SparkSession:
    """Open a session with every table and view of the stack registered. Stop it when done."""
    spark = open_query_session(stack.state, stack.run / "spark" / "demo.log")
    register(spark, str(stack.warehouse))
    return spark
