"""The link from an alert to what raised it, made of the rule's template."""

from string import Formatter
from urllib.parse import quote

PLACEHOLDERS = frozenset({"monitor", "feature", "verdict_id"})


def generator_url(template: str, *, monitor: str, feature: str, verdict_id: str) -> str:
    """Return `template` with its placeholders replaced by percent-encoded values.

    >>> generator_url("https://grafana.example/d/drift?var-m={monitor}", monitor="a b", feature="f", verdict_id="0")
    'https://grafana.example/d/drift?var-m=a%20b'
    """
    values = {"monitor": monitor, "feature": feature, "verdict_id": verdict_id}
    return template.format_map({name: quote(value, safe="") for name, value in values.items()})


def unknown_placeholders(template: str) -> list[str]:
    """Return what `template` names beside `PLACEHOLDERS`. Raises ValueError when its braces don't match.

    >>> unknown_placeholders("https://x.example/{monitor}/{model}")
    ['model']
    """
    named = (name for _, name, _, _ in Formatter().parse(template) if name is not None)
    return [name for name in named if name not in PLACEHOLDERS]
