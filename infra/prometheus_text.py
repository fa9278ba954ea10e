"""Prometheus' text format, version 0.0.4: what a process says of itself, for `infra.metrics_gateway` to serve.

Source: prometheus.io, "Exposition formats", text-based format.
"""

import math
from collections.abc import Iterable, Mapping
from dataclasses import dataclass

Sample = tuple[Mapping[str, str], float | None]


@dataclass(frozen=True, slots=True)
class Family:
    """One metric: its samples by labels. A value of None is left out, as what is not known."""

    name: str
    kind: str
    help: str
    samples: tuple[Sample, ...]


def exposition(families: Iterable[Family]) -> bytes:
    r"""Return the page. Raises ValueError for a value that is NaN or infinite.

    >>> exposition([Family("up", "gauge", "Whether it answers", (({"job": 'a"b'}, 1.0),))]).decode().splitlines()[-1]
    'up{job="a\\"b"} 1'
    """
    return "".join(line for family in families for line in _lines(family)).encode(errors="replace")


def _lines(family: Family) -> Iterable[str]:
    known = [(labels, value) for labels, value in family.samples if value is not None]
    if not known:
        return
    yield f"# HELP {family.name} {family.help}\n# TYPE {family.name} {family.kind}\n"
    for labels, value in known:
        if not math.isfinite(value):
            raise ValueError(f"{family.name} is {value}")
        shown = ",".join(f'{name}="{_escaped(text)}"' for name, text in labels.items())
        yield f"{family.name}{f'{{{shown}}}' if shown else ''} {_number(value)}\n"


def _escaped(text: str) -> str:
    return text.replace("\\", "\\\\").replace('"', '\\"').replace("\n", "\\n")


def _number(value: float) -> str:
    return str(int(value)) if float(value).is_integer() and abs(value) < 2**53 else repr(float(value))
