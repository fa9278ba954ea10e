"""What masking did to a batch of texts, and how long each took: one line of JSON, mergeable."""

import base64
from collections import Counter
from collections.abc import Iterable
from dataclasses import dataclass, field
from typing import Any

import orjson

from udfs.privacy.kinds import Kind
from udfs.sketches.log import LogSketch

RELATIVE_ACCURACY = 0.01


@dataclass(slots=True)
class Ledger:
    """Counts of texts: all, those cut at the limit, those withheld because a name model failed; findings by kind.

    `latencies_ms` has the time each text took in detection and masking, ms; `sketch` those of lines read back.
    """

    texts: int = 0
    cut: int = 0
    withheld: int = 0
    found: Counter[str] = field(default_factory=Counter)
    latencies_ms: list[float] = field(default_factory=list)
    sketch: LogSketch = field(default_factory=lambda: LogSketch.empty(RELATIVE_ACCURACY))

    def note(self, found: dict[Kind, int], latency_ms: float, *, is_cut: bool) -> None:
        """Enter one masked text."""
        self.texts += 1
        self.cut += is_cut
        self.latencies_ms.append(latency_ms)
        self.found.update({str(kind): count for kind, count in found.items()})

    def note_withheld(self, latency_ms: float) -> None:
        """Enter one text that could not be masked and so is not carried."""
        self.texts += 1
        self.withheld += 1
        self.latencies_ms.append(latency_ms)

    def latency(self) -> LogSketch:
        """Return the latencies of all texts, ms, each within 1 %."""
        return self.sketch.merge(LogSketch.from_values(self.latencies_ms, RELATIVE_ACCURACY))

    def to_json(self) -> str:
        """Return the ledger as JSON without a line break.

        >>> ledger = Ledger(); ledger.note({Kind.EMAIL: 2}, 0.5, is_cut=True)
        >>> Ledger.merged([ledger.to_json(), ledger.to_json()]).found
        Counter({'EMAIL': 4})
        """
        body: dict[str, Any] = {"texts": self.texts, "cut": self.cut, "withheld": self.withheld, "found": self.found}
        body["latency"] = base64.b64encode(self.latency().to_bytes()).decode()
        return orjson.dumps(body, option=orjson.OPT_SORT_KEYS).decode()

    @classmethod
    def merged(cls, lines: Iterable[str]) -> "Ledger":
        """Read lines of `to_json` back as one ledger. Raises ValueError on what is no such line."""
        total = cls()
        for line in lines:
            body = orjson.loads(line)
            total.texts += body["texts"]
            total.cut += body["cut"]
            total.withheld += body["withheld"]
            total.found.update(body["found"])
            total.sketch = total.sketch.merge(LogSketch.from_bytes(base64.b64decode(body["latency"])))
        return total
