"""What the audit job takes from its command line, checked before anything starts."""

import argparse
import os
from dataclasses import dataclass
from pathlib import Path

from jobs.audit_session import DEFAULT_HEAP_MB, DEFAULT_MASTER
from jobs.command_line import refuse_plainly
from jobs.kafka_client import ConfigurationError, KafkaClient, load_kafka_client
from schemas.delta import DeltaTable
from schemas.delta_tables import TOPIC_TABLES
from schemas.model_card import ModelCard, ModelCardError, load_model_card

LEAST_HEAP_MB = 480  # below it Spark itself refuses to start
COMMAND_LINE = "command line"

EXAMPLES = """examples:
  slacktide submit audit
  slacktide submit audit -- --model-card schemas/cards/azure_llm_conversation_2023.json --trigger-seconds 10
  python -m jobs.audit --bootstrap-servers kafka.example:9093 --kafka-config kafka.yaml --warehouse /data/audit --once

More of it, and what each table holds: docs/audit.md
"""


@dataclass(frozen=True)
class AuditSettings:
    """Everything the job needs; `cards` are loaded and valid, `jars` exist."""

    kafka: KafkaClient
    topic_prefix: str
    warehouse: str
    checkpoint: str
    cards: tuple[ModelCard, ...]
    once: bool
    trigger_seconds: float
    max_records_per_batch: int
    status_file: Path | None
    jars: tuple[Path, ...]
    master: str
    heap_mb: int
    ui_port: int | None

    @property
    def tables(self) -> dict[str, DeltaTable]:
        """The table of each topic, by the topic's name on the broker."""
        return {f"{self.topic_prefix}{table.topic}": table for table in TOPIC_TABLES}

    @property
    def source_options(self) -> dict[str, str]:
        """Options of Spark's Kafka source. Only what was committed is read, from the first record there is."""
        return {f"kafka.{name}": value for name, value in self.kafka.for_java().items()} | {
            "subscribe": ",".join(self.tables),
            "startingOffsets": "earliest",
            "kafka.isolation.level": "read_committed",
            "groupIdPrefix": f"{self.topic_prefix}slacktide-audit",
            "maxOffsetsPerTrigger": str(self.max_records_per_batch),
            "failOnDataLoss": "true",
        }


def parser() -> argparse.ArgumentParser:
    """The job's command line."""
    result = argparse.ArgumentParser("audit", epilog=EXAMPLES, formatter_class=argparse.RawDescriptionHelpFormatter)
    refuse_plainly(result)
    add = result.add_argument
    add("--bootstrap-servers", required=True, help="Kafka HOST:PORT[,HOST:PORT...]")
    add("--kafka-config", help="YAML of Kafka client settings (TLS, SASL); ${NAME} is from the environment")
    add("--topic-prefix", default="", help="put before every topic name (default: none)")
    add("--warehouse", required=True, help="folder or URI of the tables")
    add("--checkpoint", help="where the job remembers how far it has read (default: in the warehouse)")
    add("--model-card", nargs="+", default=[], metavar="FILE", help="model cards to put into table model_cards")
    add("--once", action="store_true", help="read what there is, then end")
    add("--trigger-seconds", type=float, default=10.0, help="from the start of a batch to the next (default: 10)")
    add("--max-records-per-batch", type=int, default=10_000, help="bounds memory (default: 10000)")
    add("--status-file", type=Path, help="JSON file kept up to date with batches, totals and lag")
    add(
        "--jars",
        type=Path,
        metavar="FOLDER",
        help="jars of Delta and the Kafka source (default: Spark's own)",
    )
    add("--master", default=DEFAULT_MASTER, help=f"Spark master (default: {DEFAULT_MASTER})")
    add("--heap-mb", type=int, default=DEFAULT_HEAP_MB, help=f"driver heap (default: {DEFAULT_HEAP_MB})")
    add("--ui-port", type=int, help="open Spark's web UI on this port of loopback (default: none)")
    return result


def settings_from(argv: list[str] | None) -> AuditSettings:
    """Parse and check the command line. Raises ConfigurationError naming file, field and remedy."""
    given = parser().parse_args(argv)
    _require(given.trigger_seconds > 0, "--trigger-seconds", f"is {given.trigger_seconds:g}", "Give more than 0")
    _require(given.max_records_per_batch > 0, "--max-records-per-batch", "is not above 0", "Give 1 or more")
    _require(given.heap_mb >= LEAST_HEAP_MB, "--heap-mb", f"is {given.heap_mb}", f"Give {LEAST_HEAP_MB} or more")
    warehouse = _location("--warehouse", given.warehouse)
    return AuditSettings(
        kafka=load_kafka_client(given.bootstrap_servers, given.kafka_config),
        topic_prefix=given.topic_prefix,
        warehouse=warehouse,
        checkpoint=_location("--checkpoint", given.checkpoint or f"{warehouse}/_checkpoints/audit"),
        cards=tuple(_card(path) for path in given.model_card),
        once=given.once,
        trigger_seconds=given.trigger_seconds,
        max_records_per_batch=given.max_records_per_batch,
        status_file=given.status_file,
        jars=_jars(given.jars),
        master=given.master,
        heap_mb=given.heap_mb,
        ui_port=given.ui_port,
    )


def _require(holds: bool, field: str, problem: str, remedy: str) -> None:
    if not holds:
        raise ConfigurationError(COMMAND_LINE, field, problem, remedy)


def _location(field: str, given: str) -> str:
    """A URI as it is, a path made absolute: Spark's working folder is not ours on a cluster."""
    if "://" in given:
        return given.rstrip("/")
    _require("`" not in given, field, "holds a backtick, which no table name can", "Choose another path")
    path = Path(given).absolute()
    _require(not path.exists() or path.is_dir(), field, f"{path} is a file", "Give a folder; it need not exist yet")
    above = next(folder for folder in (path, *path.parents) if folder.exists())
    _require(os.access(above, os.W_OK), field, f"{above} can't be written to", "Choose another folder")
    return str(path)


def _card(path: str) -> ModelCard:
    try:
        return load_model_card(path)
    except ModelCardError as error:
        raise ConfigurationError(error.file, error.field, error.problem, error.remedy) from None


def _jars(folder: Path | None) -> tuple[Path, ...]:
    if folder is None:
        return ()
    found = tuple(sorted(folder.glob("*.jar")))
    for needed in ("delta-spark", "spark-sql-kafka"):
        if not any(jar.name.startswith(needed) for jar in found):
            raise ConfigurationError(
                COMMAND_LINE, "--jars", f"{folder} holds no {needed} jar", "Run `make setup` first"
            )
    return found
