"""What is wrong with a job's command line, told as everywhere: place, option, problem, remedy; no usage of argparse."""

import argparse
import re
from typing import NoReturn

from jobs.kafka_client import ConfigurationError
from jobs.yaml_fields import not_one_of

PLACE = "command line"
_MISSING = re.compile(r"the following arguments are required: (?P<option>[^,]+)")
_UNKNOWN = re.compile(r"unrecognized arguments: (?P<option>\S+)")
_WRONG = re.compile(r"argument (?P<option>[^:]+): (?P<problem>.+)", re.DOTALL)
_NUMBER = re.compile(r"invalid (int|float) value: '(.+)'", re.DOTALL)
_CHOICE = re.compile(r"invalid choice: '(.*)' \(choose from (.+)\)", re.DOTALL)
_AMBIGUOUS = re.compile(r"ambiguous option: (?P<option>[^ =]+)\S* could match (?P<options>.+)")


def refuse_plainly(parser: argparse.ArgumentParser) -> None:
    """Make `parser` raise ConfigurationError for what it can't take, the first fault only; help exits as before.

    >>> parser = argparse.ArgumentParser("slo", epilog="slacktide submit slo --slos slos.yaml")
    >>> _ = parser.add_argument("--slos", required=True)
    >>> refuse_plainly(parser)
    >>> try:
    ...     parser.parse_args([])
    ... except ConfigurationError as error:
    ...     error.field, error.problem, error.remedy
    ('--slos', 'is missing', 'Add it, as in `slacktide submit slo --slos slos.yaml`')
    """

    def refuse(message: str) -> NoReturn:
        raise _refusal(parser, message)

    parser.error = refuse  # type: ignore[method-assign]  # argparse has no other way to say it in words of one's own


def _refusal(parser: argparse.ArgumentParser, message: str) -> ConfigurationError:
    listed = f"`slacktide submit {parser.prog} -- --help` lists the options"
    if found := _MISSING.match(message):
        option = found["option"]
        example = next((line.strip() for line in (parser.epilog or "").splitlines() if option in line), None)
        return ConfigurationError(PLACE, option, "is missing", f"Add it, as in `{example}`" if example else listed)
    if found := _UNKNOWN.match(message):
        return ConfigurationError(PLACE, found["option"], f"is no option of the {parser.prog} job", listed)
    if found := _AMBIGUOUS.fullmatch(message):
        return ConfigurationError(PLACE, found["option"], f"may be any of {found['options']}", "Write it out")
    if found := _WRONG.fullmatch(message):
        problem, remedy = _wrong_value(found["problem"])
        return ConfigurationError(PLACE, found["option"].rpartition("/")[2], problem, remedy or listed)
    return ConfigurationError(PLACE, parser.prog, message, listed)


def _wrong_value(problem: str) -> tuple[str, str]:
    """Return argparse's problem with a value in our words, and the remedy; "" where there is no special one."""
    if number := _NUMBER.fullmatch(problem):
        kind = "a whole number" if number[1] == "int" else "a number"
        return f"`{number[2]}` is not {kind}", f"Give {kind}"
    if choice := _CHOICE.fullmatch(problem):
        return not_one_of(choice[1], choice[2].replace("'", "").split(", "))
    if problem.startswith("expected "):
        return "has no value", "Write the value behind it"
    return problem, ""
