"""Writes one record to a topic and waits until it is there."""

from confluent_kafka import KafkaException, Producer

from infra.errors import StackError
from jobs.kafka_client import KafkaClient


def send_record(kafka: KafkaClient, topic: str, key: str, value: bytes, timeout_seconds: float = 10.0) -> None:
    """Write the record, once. Raises StackError where the broker has not taken it within the timeout."""
    failures: list[str] = []
    settings = {
        "enable.idempotence": "true",
        "log_level": "0",
        "message.timeout.ms": str(round(timeout_seconds * 1000)),
    }
    try:
        producer = Producer({**kafka.for_librdkafka(), **settings})
        producer.produce(
            topic, value, key=key, on_delivery=lambda error, _: failures.append(error.str()) if error else None
        )
        unsent = producer.flush(timeout_seconds + 1)
    except KafkaException as error:
        unsent, failures = 1, [error.args[0].str()]
    if unsent or failures:
        reason = failures[0] if failures else "no answer"
        remedy = f"Is the broker up, and does topic {topic} exist?"
        raise StackError(f"nothing was written to {kafka.bootstrap_servers} ({reason})", remedy)
