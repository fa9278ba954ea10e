"""The file of declared dependencies: YAML that says which service calls which, read before anything is submitted.

    services:
      chat: [retriever, vllm]
      retriever: [vector-index]

docs/root-cause.md says what it is for.
"""

from pathlib import Path
from typing import Any

from jobs.yaml_fields import REQUIRED, Place, WrongValueError, fields_of, list_of_texts, parsed_yaml, text
from udfs.alerts.dependencies import Dependencies


def _calls(value: Any) -> dict[str, tuple[str, ...]]:
    if not isinstance(value, dict):
        raise WrongValueError(f"{value!r} is no mapping", "Write `service: [service it calls, ...]`, one a line")
    needs: dict[str, tuple[str, ...]] = {}
    for service, called in value.items():
        try:
            name, names = text(service), list_of_texts(called or [])
        except WrongValueError as wrong:
            raise WrongValueError(f"of {service!r}: {wrong.problem}", wrong.remedy) from None
        if name in names:
            raise WrongValueError(f"{name} calls itself", "Leave it out of its own list")
        needs[name] = tuple(sorted(set(names)))
    return needs


def load_dependencies(path: str | Path) -> Dependencies:
    """Read and check the file. Raises ConfigurationError naming file, field, problem and remedy."""
    root = Place(str(path))
    return Dependencies(fields_of(root, parsed_yaml(root), {"services": (_calls, REQUIRED)})["services"])
