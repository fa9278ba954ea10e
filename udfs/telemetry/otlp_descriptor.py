"""The part of OTLP's trace messages that we read, as protobuf descriptors for ptars.

Numbers and types are OTLP's (opentelemetry-proto 1.x, trace/v1/trace.proto, common/v1/common.proto); what we don't read
is left out, and protobuf readers step over unknown fields. Against the full descriptor this is faster, and nothing
recurses: a list stays the bytes of an ArrayValue, so no nesting on the wire can exhaust a stack.
"""

from functools import cache

import ptars
from google.protobuf import descriptor_pb2, descriptor_pool

_Field = descriptor_pb2.FieldDescriptorProto

_SPAN = "Span"
_MESSAGES: dict[str, dict[str, tuple[int, int | str, bool]]] = {
    # message: {field: (number, type, repeated)}
    "AnyValue": {
        "string_value": (1, _Field.TYPE_STRING, False),
        "bool_value": (2, _Field.TYPE_BOOL, False),
        "int_value": (3, _Field.TYPE_INT64, False),
        "double_value": (4, _Field.TYPE_DOUBLE, False),
        "array_value": (5, _Field.TYPE_BYTES, False),
        "kvlist_value": (6, _Field.TYPE_BYTES, False),
        "bytes_value": (7, _Field.TYPE_BYTES, False),
    },
    "KeyValue": {"key": (1, _Field.TYPE_STRING, False), "value": (2, "AnyValue", False)},
    "Event": {"name": (2, _Field.TYPE_STRING, False), "attributes": (3, "KeyValue", True)},
    "Status": {"code": (3, _Field.TYPE_INT32, False)},
    "Resource": {"attributes": (1, "KeyValue", True)},
    _SPAN: {
        "trace_id": (1, _Field.TYPE_BYTES, False),
        "span_id": (2, _Field.TYPE_BYTES, False),
        "parent_span_id": (4, _Field.TYPE_BYTES, False),
        "name": (5, _Field.TYPE_STRING, False),
        "kind": (6, _Field.TYPE_INT32, False),
        "start_time_unix_nano": (7, _Field.TYPE_FIXED64, False),
        "end_time_unix_nano": (8, _Field.TYPE_FIXED64, False),
        "attributes": (9, "KeyValue", True),
        "status": (15, "Status", False),
    },
    "ScopeSpans": {"spans": (2, _SPAN, True)},
    "ResourceSpans": {"resource": (1, "Resource", False), "scope_spans": (2, "ScopeSpans", True)},
    "ExportTraceServiceRequest": {"resource_spans": (1, "ResourceSpans", True)},
}
_EVENTS: dict[str, tuple[int, int | str, bool]] = {"events": (11, "Event", True)}
_ONEOF_MESSAGES = {"AnyValue"}


@cache
def span_reader() -> "ptars.MessageHandler":
    """Return the ptars handler that reads messages into columns; `list_to_record_batch` raises ValueError."""
    return _handler("slacktide.otlp", spans_as_bytes=False)


@cache
def span_text_reader() -> "ptars.MessageHandler":
    """Return the ptars handler that reads the events of spans as well: where a prompt may stand."""
    return _handler("slacktide.otlp_text", spans_as_bytes=False, events=True)


@cache
def span_bytes_reader() -> "ptars.MessageHandler":
    """Return the ptars handler that leaves each span as its own bytes: for what goes to `dead_letters`."""
    return _handler("slacktide.otlp_bytes", spans_as_bytes=True)


def _handler(package: str, *, spans_as_bytes: bool, events: bool = False) -> "ptars.MessageHandler":
    file = descriptor_pb2.FileDescriptorProto(name=f"{package}.proto", package=package, syntax="proto3")
    for message_name, fields in _MESSAGES.items():
        message = file.message_type.add(name=message_name)
        if message_name in _ONEOF_MESSAGES:
            message.oneof_decl.add(name="value")
        extra = _EVENTS if events and message_name == _SPAN else {}
        for name, (number, kind, repeated) in (fields | extra).items():
            field = message.field.add(name=name, number=number)
            field.label = _Field.LABEL_REPEATED if repeated else _Field.LABEL_OPTIONAL
            if kind == _SPAN and spans_as_bytes:
                field.type = _Field.TYPE_BYTES
            elif isinstance(kind, str):
                field.type, field.type_name = _Field.TYPE_MESSAGE, f".{package}.{kind}"
            else:
                field.type = kind
            if message_name in _ONEOF_MESSAGES:
                field.oneof_index = 0
    pool = descriptor_pool.DescriptorPool()
    pool.Add(file)
    descriptor = pool.FindMessageTypeByName(f"{package}.ExportTraceServiceRequest")
    return ptars.HandlerPool([descriptor.file]).get_for_message(descriptor)
