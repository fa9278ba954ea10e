"""The two encodings in which the OpenTelemetry Collector's Kafka exporter writes OTLP."""

ENCODINGS = ("otlp_proto", "otlp_json")


def unknown_encoding(encoding: str) -> ValueError:
    """Return the error that says of an encoding that it is none of ours.

    >>> unknown_encoding("avro")
    ValueError("unknown encoding 'avro'; the encodings are otlp_proto, otlp_json")
    """
    return ValueError(f"unknown encoding {encoding!r}; the encodings are {', '.join(ENCODINGS)}")
