"""The identity of an alert: Alertmanager's fingerprint of its labels.

FNV-1a (64 bit) over the labels sorted by name, each name and each value followed by byte 0xff, which no UTF-8 text
holds, so that no choice of delimiters in a value makes two label sets alike. Alertmanager drops labels with an empty
value first: a label that is empty and one that is missing are the same.

Sources: prometheus/common model/signature.go (`LabelSet.Fingerprint`), prometheus/alertmanager api/v2/api.go
(`removeEmptyLabels`).
"""

from collections.abc import Collection, Mapping

_OFFSET_BASIS = 0xCBF29CE484222325
_PRIME = 0x100000001B3
_MASK = 0xFFFFFFFFFFFFFFFF
_SEPARATOR = b"\xff"


def fingerprint(labels: Mapping[str, str]) -> str:
    """Return the 16 hex digits Alertmanager gives an alert with these labels.

    Labels with an empty value are left out. Two label sets collide with probability 2^-64 a pair. Raises
    UnicodeEncodeError where a text is not valid Unicode (a lone surrogate). O(total length).

    >>> fingerprint({"a": "1", "b": ""}) == fingerprint({"a": "1"})
    True
    >>> fingerprint({"a": "1"})
    'd3b971819376d835'
    """
    return label_set_fingerprint({name: value for name, value in labels.items() if value})


def label_set_fingerprint(labels: Mapping[str, str]) -> str:
    """Return `LabelSet.Fingerprint` of exactly these labels, empty values included.

    >>> label_set_fingerprint({})
    'cbf29ce484222325'
    """
    encoded = sorted((name.encode(), value.encode()) for name, value in labels.items())
    digest = _OFFSET_BASIS
    for byte in b"".join(name + _SEPARATOR + value + _SEPARATOR for name, value in encoded):
        digest = ((digest ^ byte) * _PRIME) & _MASK
    return f"{digest:016x}"


def scope_fingerprint(labels: Mapping[str, str], ignoring: Collection[str]) -> str:
    """Return the fingerprint of what an alert is about: its labels without those named in `ignoring`.

    Alerts that differ only in ignored labels (a pod's name changes with each restart) share it.

    >>> a, b = {"alertname": "Drift", "pod": "app-1"}, {"alertname": "Drift", "pod": "app-2"}
    >>> scope_fingerprint(a, ignoring=["pod"]) == scope_fingerprint(b, ignoring=["pod"])
    True
    """
    return fingerprint({name: value for name, value in labels.items() if name not in ignoring})
