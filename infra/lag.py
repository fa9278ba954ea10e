"""How far a job is behind its topics: committed offsets of its consumer group against the ends of the partitions."""

from dataclasses import dataclass

from confluent_kafka import ConsumerGroupTopicPartitions, IsolationLevel, KafkaException, TopicPartition
from confluent_kafka.admin import AdminClient, OffsetSpec

from jobs.kafka_client import KafkaClient

GROUP_PREFIX = "slacktide-"


@dataclass(frozen=True, slots=True)
class Lag:
    """Offsets between what the group committed and the committed end of a topic.

    Flink commits with each checkpoint, so a job that keeps up lags by a checkpoint's worth. The markers that end
    transactions take offsets too: one that has read everything may show one a partition.
    """

    group: str
    topic: str
    records: int


def read_lags(kafka: KafkaClient, timeout_seconds: float = 10.0) -> list[Lag]:
    """Return the lag of every `slacktide-...` consumer group on every topic it reads. Raises KafkaException."""
    admin = AdminClient(kafka.for_librdkafka())
    listed = admin.list_consumer_groups(request_timeout=timeout_seconds).result()
    groups = sorted(g.group_id for g in listed.valid if g.group_id.startswith(GROUP_PREFIX))
    committed: dict[tuple[str, str, int], int] = {}
    for group in groups:
        answer = admin.list_consumer_group_offsets(
            [ConsumerGroupTopicPartitions(group)], request_timeout=timeout_seconds
        )
        for place in answer[group].result().topic_partitions:
            committed[group, place.topic, place.partition] = max(place.offset, 0)
    ends = _ends(admin, {(topic, partition) for _, topic, partition in committed}, timeout_seconds)
    totals: dict[tuple[str, str], int] = {}
    for (group, topic, partition), offset in committed.items():
        behind = max(ends.get((topic, partition), offset) - offset, 0)
        totals[group, topic] = totals.get((group, topic), 0) + behind
    return [Lag(group, topic, records) for (group, topic), records in sorted(totals.items())]


def _ends(admin: AdminClient, places: set[tuple[str, int]], timeout_seconds: float) -> dict[tuple[str, int], int]:
    if not places:
        return {}
    latest = {TopicPartition(topic, partition): OffsetSpec.latest() for topic, partition in sorted(places)}
    asked = admin.list_offsets(latest, isolation_level=IsolationLevel.READ_COMMITTED, request_timeout=timeout_seconds)
    found = {}
    for place, future in asked.items():
        try:
            found[place.topic, place.partition] = future.result().offset
        except KafkaException:
            continue  # a topic that was deleted while its group lives on
    return found
