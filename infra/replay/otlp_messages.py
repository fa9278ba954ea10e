"""OTLP messages made of request columns, in either of the encodings that the Collector's Kafka exporter writes."""

from collections.abc import Mapping, Sequence
from typing import Protocol

import numpy as np
from numpy.typing import NDArray

from infra.replay.otlp_json import JsonEncoder
from infra.replay.otlp_proto import ProtoEncoder
from infra.replay.request_block import RequestBlock
from infra.replay.span_attributes import ATTRIBUTE_KEYS, LABEL_KEYS, OPERATION, OPERATION_KEY, TEXT_KEYS
from infra.replay.spans import SpanColumns
from schemas.semconv import LIST_KEYS


class SpanEncoder(Protocol):
    """What an encoding must offer: attributes a column at a time, then spans, then messages."""

    encoding: str

    def doubles(self, key: str, values: NDArray[np.float64]) -> list[bytes]: ...
    def integers(self, key: str, values: NDArray[np.int64]) -> list[bytes]: ...
    def booleans(self, key: str, values: NDArray[np.bool_]) -> list[bytes]: ...
    def texts(self, key: str, values: NDArray[np.str_]) -> list[bytes]: ...
    def text_lists(self, key: str, values: NDArray[np.str_]) -> list[bytes]: ...
    def spans(self, columns: SpanColumns, attributes: Sequence[Sequence[bytes]]) -> list[bytes]: ...
    def message(self, spans: Sequence[bytes]) -> bytes: ...


ENCODERS = {encoder.encoding: encoder for encoder in (ProtoEncoder, JsonEncoder)}


def span_encoder(encoding: str, resource: Mapping[str, str]) -> SpanEncoder:
    """Return the encoder of `otlp_proto` or `otlp_json`, with the resource attributes of every message.

    >>> span_encoder("otlp_json", {"service.name": "vllm"}).message([])[:30]
    b'{"resourceSpans":[{"resource":'
    """
    encoder: SpanEncoder = ENCODERS[encoding](resource)
    return encoder


def encode_requests(encoder: SpanEncoder, columns: SpanColumns, block: RequestBlock) -> list[bytes]:
    """Return each request's span, with every field of `block` under the attribute that carries it."""
    attributes = [encoder.texts(OPERATION_KEY, np.full(len(block), OPERATION))]
    for field, values in block.fields.items():
        key = ATTRIBUTE_KEYS.get(field) or LABEL_KEYS.get(field) or TEXT_KEYS[field]
        kind = values.dtype.kind
        if kind == "f":
            attributes.append(encoder.doubles(key, values))
        elif kind == "i":
            attributes.append(encoder.integers(key, values))
        elif kind == "b":
            attributes.append(encoder.booleans(key, values))
        else:
            attributes.append((encoder.text_lists if key in LIST_KEYS else encoder.texts)(key, values))
    return encoder.spans(columns, attributes)
