"""`slacktide silence` and `slacktide change`: what is refused before anything is written."""

import re

import pytest
from click.testing import CliRunner

from infra.commands import change, silence
from infra.errors import StackError
from infra.send_record import send_record
from jobs.kafka_client import KafkaClient

NOWHERE = "127.0.0.1:1"


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        (["service_name=chat"], "Give the end"),
        (["service_name=chat", "--for", "1h", "--ends-at", "2030-01-01T00:00:00Z"], "Give the end"),
        (["service_name=chat", "--ends-at", "2020-01-01T00:00:00Z"], "end before it starts"),
        (["service_name=chat", "--for", "1h", "--starts-at", "2h"], "end before it starts"),
        (["service_name=chat", "--for", "soon"], "neither a duration"),
        (["service_name", "--for", "1h"], "is no matcher"),
        (["model=a", "service_name=~(", "--for", "1h"], "regular expression for service_name is not one of RE2's"),
        (["service_name!=chat", "--for", "1h"], "every alert would be silenced"),
        (["--for", "1h"], "Missing argument"),
    ],
)
def test_a_wrong_silence_is_refused(arguments: list[str], said: str) -> None:
    result = CliRunner().invoke(silence.command, ["add", *arguments, "--bootstrap-servers", NOWHERE])
    assert result.exit_code == 2
    assert said in result.output


@pytest.mark.parametrize("beginning", ["", " "])
def test_an_empty_id_means_no_silence(beginning: str) -> None:
    result = CliRunner().invoke(silence.command, ["expire", beginning, "--bootstrap-servers", NOWHERE])
    assert result.exit_code == 2
    assert "SILENCE_ID is empty" in result.output


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        (["party", "chat"], "is not one of"),
        (["deploy", " "], "give a name"),
        (["deploy", "chat", "--label", "version"], "is not name=value"),
        (["deploy", "chat", "--at", "2h", "--lasting", "1h"], "before it happened"),
    ],
)
def test_a_wrong_change_is_refused(arguments: list[str], said: str) -> None:
    result = CliRunner().invoke(change.command, ["add", *arguments, "--bootstrap-servers", NOWHERE])
    assert result.exit_code == 2
    assert said in result.output


def test_a_broker_that_does_not_answer_is_told_of() -> None:
    with pytest.raises(StackError, match=r"nothing was written to 127\.0\.0\.1:1"):
        send_record(KafkaClient(NOWHERE), "silences", "k", b"{}", timeout_seconds=0.2)


@pytest.mark.parametrize("command", [silence.command, change.command], ids=["silence", "change"])
def test_every_command_shows_an_example(command: object) -> None:
    for line in ([], *([name] for name in command.commands)):  # type: ignore[attr-defined]
        said = CliRunner().invoke(command, [*line, "--help"]).output  # type: ignore[arg-type]
        assert re.search(r"Examples?:\n +slacktide (silence|change)", said), line
