"""What every Flink job takes from its command line, and the SQL options made of it."""

import argparse
from dataclasses import dataclass

from jobs.command_line import refuse_plainly
from jobs.kafka_client import KafkaClient, load_kafka_client
from udfs.telemetry.encodings import ENCODINGS

TRANSACTION_TIMEOUT_MS = 600_000


@dataclass(frozen=True)
class JobSettings:
    """Addresses and engine settings of one job; nothing here comes from code.

    `name_suffix` keeps two copies of a job apart (consumer group, transactional ids).
    """

    kafka: KafkaClient
    topic_prefix: str = ""
    parallelism: int = 1
    checkpoint_interval_seconds: float = 5.0
    name_suffix: str = ""

    def topic(self, name: str) -> str:
        """The topic's name on the broker."""
        return self.topic_prefix + name


def add_job_arguments(parser: argparse.ArgumentParser) -> None:
    """Add the arguments that every job shares; whatever is wrong with any is a ConfigurationError from then on."""
    refuse_plainly(parser)
    parser.add_argument("--bootstrap-servers", required=True, help="Kafka HOST:PORT[,HOST:PORT...]")
    parser.add_argument(
        "--kafka-config", help="YAML of Kafka client settings (TLS, SASL); ${NAME} is from the environment"
    )
    parser.add_argument("--topic-prefix", default="", help="put before every topic name (default: none)")
    parser.add_argument("--parallelism", type=int, default=1, help="of every operator (default: 1)")
    parser.add_argument("--checkpoint-interval-seconds", type=float, default=5.0, help="default: %(default)s")
    parser.add_argument("--name-suffix", default="", help="tells two copies of one job apart")


def add_encoding_argument(parser: argparse.ArgumentParser) -> None:
    """Add the choice of the encoding of OTLP messages."""
    help_text = "otlp_proto, otlp_json or auto: by each message's first byte (default: auto)"
    parser.add_argument("--encoding", default="auto", choices=("auto", *ENCODINGS), metavar="ENCODING", help=help_text)


def settings_from(arguments: argparse.Namespace) -> JobSettings:
    """Build the settings from parsed arguments. Raises ConfigurationError on a bad Kafka file."""
    return JobSettings(
        kafka=load_kafka_client(arguments.bootstrap_servers, arguments.kafka_config),
        topic_prefix=arguments.topic_prefix,
        parallelism=arguments.parallelism,
        checkpoint_interval_seconds=arguments.checkpoint_interval_seconds,
        name_suffix=arguments.name_suffix,
    )


def sql_text(value: str) -> str:
    """Return `value` as a SQL string literal.

    >>> sql_text("it's")
    "'it''s'"
    """
    return "'" + value.replace("'", "''") + "'"


def _options(options: dict[str, str]) -> str:
    return ",\n  ".join(f"{sql_text(k)} = {sql_text(v)}" for k, v in options.items())


def source_options(settings: JobSettings, job: str, topic: str, fmt: dict[str, str]) -> str:
    """WITH-options of a Kafka source: committed offsets of this job's group, else earliest; read committed."""
    options = {
        "connector": "kafka",
        "topic": settings.topic(topic),
        "properties.group.id": f"slacktide-{job}{settings.name_suffix}",
        "properties.isolation.level": "read_committed",
        "properties.auto.offset.reset": "earliest",
        "scan.startup.mode": "group-offsets",
        **fmt,
    }
    return _options(options | {f"properties.{k}": v for k, v in settings.kafka.for_flink().items()})


def sink_options(settings: JobSettings, job: str, topic: str, fmt: dict[str, str]) -> str:
    """WITH-options of an exactly-once Kafka sink."""
    options = {
        "connector": "kafka",
        "topic": settings.topic(topic),
        "sink.delivery-guarantee": "exactly-once",
        "sink.transactional-id-prefix": f"slacktide-{job}-{topic}{settings.name_suffix}",
        "properties.transaction.timeout.ms": str(TRANSACTION_TIMEOUT_MS),
        "properties.max.request.size": str(32 * 1024 * 1024),
        "properties.compression.type": "lz4",
        "properties.linger.ms": "5",
        **fmt,
    }
    return _options(options | {f"properties.{k}": v for k, v in settings.kafka.for_flink().items()})


def keyed_by(field: str) -> dict[str, str]:
    """Return the options of a sink whose key is the text `field` and whose value is the other column, as it is."""
    return {"key.format": "raw", "key.fields": field, "value.format": "raw", "value.fields-include": "EXCEPT_KEY"}
