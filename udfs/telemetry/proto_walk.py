"""What readers of `otlp_proto` share: a message parsed or refused, and the walk through resources and scopes."""

from collections.abc import Iterable, Iterator
from typing import Any

from google.protobuf.message import DecodeError

from schemas.dead_letters import WHOLE_MESSAGE, DeadLetter, Reason
from udfs.telemetry.attribute_texts import texts_from_proto


def parsed(kind: Any, message_index: int, message: bytes) -> Any:
    """Return the message as a `kind` of protobuf's, or the DeadLetter of one that is none. O(bytes)."""
    try:
        return kind.FromString(message)
    except DecodeError:
        detail = f"not a protobuf {kind.DESCRIPTOR.name}"
        return DeadLetter(Reason.MALFORMED_PROTO, detail, message_index, WHOLE_MESSAGE, message)


def walked(entries: Iterable[Any], scopes: str, items: str) -> Iterator[tuple[dict[str, str], str, Any]]:
    """Yield (texts of the resource, name of the scope, item) for every item, in wire order.

    `entries` are resource_logs or the like, `scopes` and `items` the names of what lies below each.

    >>> from opentelemetry.proto.collector.logs.v1.logs_service_pb2 import ExportLogsServiceRequest
    >>> request = ExportLogsServiceRequest()
    >>> scope = request.resource_logs.add().scope_logs.add()
    >>> scope.scope.name, scope.log_records.add().event_name = "lib", "started"
    >>> [(r, name, item.event_name) for r, name, item in walked(request.resource_logs, "scope_logs", "log_records")]
    [({}, 'lib', 'started')]
    """
    for entry in entries:
        resource = texts_from_proto(entry.resource.attributes)
        for scope in getattr(entry, scopes):
            for item in getattr(scope, items):
                yield resource, scope.scope.name, item
