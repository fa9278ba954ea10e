"""Fields of a YAML file, checked one by one, with the remedy in the message.

A check takes the value as YAML gives it and returns it as the program wants it, or raises `WrongValueError`.
"""

import difflib
import math
import re
from collections.abc import Callable, Collection, Hashable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any, NoReturn

import yaml

from jobs.kafka_client import ConfigurationError

Check = Callable[[Any], Any]
REQUIRED: Any = object()


class WrongValueError(ValueError):
    """What is wrong with a value, and the remedy."""

    def __init__(self, problem: str, remedy: str) -> None:
        super().__init__(problem)
        self.problem, self.remedy = problem, remedy


@dataclass(frozen=True, slots=True)
class Place:
    """A place in a file: `monitors[0].alpha` of monitors.yaml."""

    file: str
    path: str = ""

    def field(self, name: str) -> "Place":
        """Return the place of a field under this one."""
        return Place(self.file, f"{self.path}.{name}" if self.path else name)

    def refuse(self, problem: str, remedy: str) -> NoReturn:
        """Raise the ConfigurationError for this place."""
        raise ConfigurationError(self.file, self.path or "(file)", problem, remedy)

    def relative(self, path: str) -> Path:
        """Return `path` as the file means it: relative to the file."""
        return Path(self.file).parent / path


def parsed_yaml(place: Place) -> Any:
    """Read the whole file. Raises ConfigurationError: no such file, not YAML (with the line), a key twice."""
    return _parsed(place, lambda content: yaml.load(content, _UniqueKeys))  # a SafeLoader


def parsed_documents(place: Place) -> list[Any]:
    """Read every document of the file, empty ones left out. Raises ConfigurationError as `parsed_yaml` does."""
    documents = _parsed(place, lambda content: list(yaml.load_all(content, _UniqueKeys)))
    return [document for document in documents if document is not None]


def _parsed(place: Place, load: Callable[[str], Any]) -> Any:
    try:
        return load(Path(place.file).read_text(encoding="utf-8"))
    except OSError as error:
        place.refuse(f"can't be read ({error.strerror})", "Give the path of a YAML file that exists")
    except UnicodeDecodeError:
        place.refuse("is not UTF-8", "Save it as UTF-8")
    except yaml.composer.ComposerError as error:
        mark = error.problem_mark
        line = f"line {mark.line + 1}" if mark and error.problem else ""
        if error.problem != "but found another document":
            place.field(line).refuse(f"is not YAML: {error.problem}", "Mend that line")
        remedy = "Give a file of one document; one of service levels is checked by `slacktide slo check`"
        place.field(line).refuse("begins a second YAML document", remedy)
    except yaml.MarkedYAMLError as error:
        mark = error.problem_mark or error.context_mark
        line = f"line {mark.line + 1}" if mark else ""
        place.field(line).refuse(f"is not YAML: {error.problem}", "Mend that line")
    except (yaml.YAMLError, ValueError) as error:
        place.refuse(f"is not YAML: {error}", "Write plain YAML")


class _UniqueKeys(yaml.SafeLoader):
    """YAML lets the second of two equal keys win without a word; here it is an error."""

    def construct_mapping(self, node: yaml.MappingNode, deep: bool = False) -> dict[Hashable, Any]:
        seen = set()
        for key, _ in node.value:
            if key.value in seen:
                raise yaml.constructor.ConstructorError(
                    None, None, f"the key {key.value!r} stands twice", key.start_mark
                )
            seen.add(key.value)
        return super().construct_mapping(node, deep)


def fields_of(place: Place, body: object, fields: Mapping[str, tuple[Check, Any]]) -> dict[str, Any]:
    """Return the checked value of each of `fields` (name -> check, default), defaults filled in.

    Raises ConfigurationError when `body` is no mapping, has another key, lacks a required one or has a wrong value.
    """
    if body is None:
        place.refuse("is empty", f"Write {', '.join(name for name, (_, d) in fields.items() if d is REQUIRED)}")
    if not isinstance(body, dict):
        place.refuse("is not a mapping", "Write `name: value`, one a line")
    for key in body:
        if key not in fields:
            place.field(str(key)).refuse("is not a known field", nearest(str(key), fields))
    values = {}
    for name, (check, default) in fields.items():
        value = body.get(name)
        if value is None and default is REQUIRED:
            place.field(name).refuse("is missing", "Add it: there is no default")
        try:
            values[name] = check(default if value is None else value)
        except WrongValueError as wrong:
            place.field(name).refuse(wrong.problem, wrong.remedy)
    return values


def nearest(name: str, known: Collection[str], more: str = "") -> str:
    """Return the remedy for an unknown name.

    >>> nearest("alpah", ["alpha", "name"])
    'Did you mean alpha? Known are alpha, name'
    """
    close = difflib.get_close_matches(name, list(known), n=1, cutoff=0.6)
    return f"{f'Did you mean {close[0]}? ' if close else ''}Known are {', '.join(known)}{more}"


def not_one_of(value: Any, choices: Collection[str]) -> tuple[str, str]:
    """Return the problem and the remedy of a word that is not among a few.

    >>> not_one_of("exakt", ["asymptotic", "exact"])
    ('`exakt` is not one of: asymptotic, exact', 'Did you mean exact?')
    """
    by_lower_case = {choice.lower(): choice for choice in choices}
    close = difflib.get_close_matches(str(value).lower(), list(by_lower_case), n=1, cutoff=0.6)
    remedy = f"Did you mean {by_lower_case[close[0]]}?" if close else "Write one of these"
    return f"`{value}` is not one of: {', '.join(choices)}", remedy


def text(value: Any) -> str:
    """A text that is not empty."""
    if not isinstance(value, str) or not value.strip():
        raise WrongValueError(f"{value!r} is no text", "Write a name, in quotes where it looks like a number")
    return value


def some_list(value: Any) -> list[Any]:
    """A list of anything."""
    if not isinstance(value, list):
        raise WrongValueError("is no list", "Write one `- ...` a line below it")
    return value


def list_of_texts(value: Any) -> list[str]:
    """A list of texts."""
    return [text(entry) for entry in some_list(value)]


def milliseconds(value: Any) -> int:
    """Seconds above 0, a whole number of milliseconds; returned as milliseconds.

    >>> milliseconds(1.5)
    1500
    """
    seconds = _number(value)
    if seconds <= 0:
        raise WrongValueError(f"{value} is not above 0", "Give a number of seconds above 0")
    if seconds * 1000 != round(seconds * 1000) or seconds > 10**9:
        raise WrongValueError(f"{value} is no whole number of milliseconds", "Give seconds with at most three decimals")
    return round(seconds * 1000)


def strictly_between_0_and_1(value: Any) -> float:
    """A number above 0 and below 1."""
    number = _number(value)
    if not 0 < number < 1:
        raise WrongValueError(f"{value} is not between 0 and 1", "Give a number above 0 and below 1, such as 0.01")
    return number


def zero_up_to_1(value: Any) -> float:
    """A number from 0, below 1."""
    number = _number(value)
    if not 0 <= number < 1:
        raise WrongValueError(f"{value} is not between 0 and 1", "Give 0 or a number below 1, such as 0.05")
    return number


def at_least_one(value: Any) -> int:
    """A whole number from 1."""
    if not isinstance(value, int) or isinstance(value, bool) or value < 1:
        raise WrongValueError(f"{value!r} is no whole number above 0", "Give a whole number from 1")
    if value >= 2**53:  # what float64 counts exactly; ids are made of JSON, which holds no more than 64 bits
        raise WrongValueError(f"{value!r} is more than anything counts to", "Give a whole number below 2^53")
    return value


def finite_number(value: Any) -> float:
    """Any number but NaN and the infinities."""
    return _number(value)


def optional(check: Check) -> Check:
    """Nothing, or what `check` takes."""

    def checked(value: Any) -> Any:
        return None if value is None else check(value)

    return checked


def one_of(choices: Collection[str]) -> Check:
    """One of a few words."""

    def check(value: Any) -> str:
        if value not in choices:
            raise WrongValueError(*not_one_of(value, choices))
        return str(value)

    return check


def _number(value: Any) -> float:
    if isinstance(value, bool) or not isinstance(value, int | float) or not math.isfinite(value):
        remedy = "Give a number, without quotes"
        if re.fullmatch(r"[-+]?[0-9]+[eE][-+]?[0-9]+", str(value)):
            remedy += "; YAML takes an exponent only behind a point: 1.0e-6"
        raise WrongValueError(f"{value!r} is no number", remedy)
    return float(value)
