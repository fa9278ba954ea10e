"""Which service calls which, as declared: how many steps lie between an alert and a change."""

from collections import deque
from collections.abc import Mapping
from dataclasses import dataclass, field


@dataclass(frozen=True, slots=True)
class Dependencies:
    """`needs` names the services that a service calls directly. Cycles are allowed; one not named calls none."""

    needs: Mapping[str, tuple[str, ...]] = field(default_factory=dict)

    def distance(self, service: str, other: str) -> int | None:
        """Return the fewest calls from `service` to `other`; 0 for itself, None where none lead there.

        A change travels against the calls, so what calls `service` explains nothing of it. O(services + calls).

        >>> declared = Dependencies({"chat": ("retriever", "vllm"), "retriever": ("index",)})
        >>> declared.distance("chat", "index"), declared.distance("index", "chat")
        (2, None)
        """
        steps = {service: 0}
        waiting = deque([service])
        while waiting:
            at = waiting.popleft()
            if at == other:
                return steps[at]
            for needed in self.needs.get(at, ()):
                if needed not in steps:
                    steps[needed] = steps[at] + 1
                    waiting.append(needed)
        return None
