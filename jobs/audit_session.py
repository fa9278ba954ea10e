"""The one place that builds a Spark session with Delta and the Kafka source. Small, offline, on loopback.

The JVM is tuned for short jobs over few rows: the serial collector and the first compiler tier alone. With the whole
of HotSpot's defaults the same work starts a fifth slower and holds 150 MB more (measured, 2 cores).
"""

import os
import tempfile
from collections.abc import Iterable, Mapping
from pathlib import Path

from pyspark.logger import PySparkLogger
from pyspark.sql import SparkSession

LOG_CONFIGURATION = Path(__file__).with_name("audit_log4j2.properties")
LOOPBACK = "127.0.0.1"
DEFAULT_MASTER = "local[2]"
DEFAULT_HEAP_MB = 512
# For a stream of small batches, most of whose time is planning: no Java code is made and compiled for each plan (a
# quarter of all CPU time), and plans are not written out as text for a UI that is off (a sixth).
SMALL_BATCHES = {
    "spark.sql.codegen.wholeStage": "false",
    "spark.sql.codegen.factoryMode": "NO_CODEGEN",
    "spark.sql.ui.explainMode": "simple",
    "spark.sql.maxPlanStringLength": "0",
    "spark.sql.debug.maxToStringFields": "1",
}


def open_session(
    name: str,
    *,
    jars: Iterable[str | Path] = (),
    master: str = DEFAULT_MASTER,
    heap_mb: int = DEFAULT_HEAP_MB,
    scratch: str | Path | None = None,
    ui_port: int | None = None,
    settings: Mapping[str, str] | None = None,
    log_level: str = "warn",
) -> SparkSession:
    """Start a session, or return the one of this process.

    `jars` are Delta and the Kafka source; none where spark-submit brings them. `heap_mb` bounds the driver's heap
    (resident: about 250 MB more), `scratch` holds spilled blocks (default: the system's temporary folder), `ui_port`
    opens the web UI, `settings` are laid over ours. Times are UTC. Starting takes 5 to 8 s on 2 cores.
    """
    local = master.startswith("local")
    chosen = _engine_settings() | _jvm_settings(heap_mb, log_level) | dict(settings or {})
    chosen["spark.ui.enabled"] = "false" if ui_port is None else "true"
    if ui_port is not None:
        chosen["spark.ui.port"] = str(ui_port)
    if scratch is not None:
        chosen["spark.local.dir"] = str(scratch)
    if local:
        # Set before the JVM starts: a host without a name of its own must not stop it.
        os.environ["SPARK_LOCAL_IP"] = LOOPBACK
        chosen |= {"spark.driver.host": LOOPBACK, "spark.driver.bindAddress": LOOPBACK}
    files = [str(jar) for jar in jars]
    if files:
        # On one machine the class path will do; `spark.jars` would copy each jar to a temporary folder first.
        chosen |= {"spark.driver.extraClassPath": os.pathsep.join(files)} if local else {"spark.jars": ",".join(files)}
    builder = SparkSession.builder.appName(name).master(master)
    for key, value in chosen.items():
        builder = builder.config(key, value)
    for chatty in ("SQLQueryContextLogger", "DataFrameQueryContextLogger"):
        # PySpark writes each exception to stderr as JSON, beside raising it.
        PySparkLogger.getLogger(chatty).disabled = True
    return builder.getOrCreate()


def _engine_settings() -> dict[str, str]:
    """Few partitions for few rows: each costs a task, and each task some 10 ms."""
    return {
        "spark.sql.extensions": "io.delta.sql.DeltaSparkSessionExtension",
        "spark.sql.catalog.spark_catalog": "org.apache.spark.sql.delta.catalog.DeltaCatalog",
        "spark.sql.catalogImplementation": "in-memory",
        "spark.sql.session.timeZone": "UTC",
        # Where the unused default database would be; Spark makes the folder, and it must not be the working folder.
        "spark.sql.warehouse.dir": tempfile.gettempdir(),
        "spark.sql.shuffle.partitions": "1",
        "spark.sql.adaptive.enabled": "false",
        "spark.sql.ui.retainedExecutions": "10",
        "spark.ui.retainedJobs": "10",
        "spark.ui.retainedStages": "10",
        "spark.ui.showConsoleProgress": "false",
        "spark.databricks.delta.snapshotPartitions": "1",
    }


def _jvm_settings(heap_mb: int, log_level: str) -> dict[str, str]:
    options = [
        "-XX:+UseSerialGC",
        "-XX:TieredStopAtLevel=1",
        "-XX:+ExitOnOutOfMemoryError",
        "-XX:-UsePerfData",
        "-Djava.awt.headless=true",
        f"-Dlog4j2.configurationFile={LOG_CONFIGURATION.as_uri()}",
        f"-Dslacktide.spark.log={log_level}",
    ]
    return {"spark.driver.memory": f"{heap_mb}m", "spark.driver.extraJavaOptions": " ".join(options)}
