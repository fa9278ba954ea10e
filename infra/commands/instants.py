"""Times on the command line: an instant, or a duration from now."""

import time
from typing import Any

import click

from infra.replay.position import parse_seconds
from schemas.times import epoch_ms


class Instant(click.ParamType[Any]):
    """An instant as RFC 3339, or as a duration from now on (`2h`); epoch milliseconds."""

    name = "time"

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> Any:
        """Read `2h`, `90s` or `2026-01-31T12:00:00Z`."""
        if not isinstance(value, str):
            return value
        try:
            return epoch_ms(value) if "T" in value else now_ms() + round(parse_seconds(value) * 1000)
        except (ValueError, OverflowError):
            self.fail(f"{value!r} is neither a duration such as 2h nor a time such as 2026-01-31T12:00:00Z", param, ctx)


def now_ms() -> int:
    """The wall clock."""
    return time.time_ns() // 1_000_000


def pairs(values: tuple[str, ...], option: str) -> dict[str, str]:
    """Read `name=value` of a repeatable option. Raises click.BadParameter.

    >>> pairs(("version=1.8",), "--label")
    {'version': '1.8'}
    """
    found = {}
    for text in values:
        name, sign, value = text.partition("=")
        if not sign or not name.strip() or not value:
            raise click.BadParameter(f"{text!r} is not name=value", param_hint=option)
        found[name.strip()] = value
    return found
