"""Answers kept between runs: one small JSON file a question, in a folder that the caller names."""

import os
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Any, Protocol

import orjson

from schemas.ids import content_digest
from udfs.budget.onset_levels import OnsetLevels
from udfs.budget.simulation import DEFAULT_POLICY, SimulationPolicy

DIGEST_HEX_IN_NAME = 20


class Question(Protocol):
    """What is asked for: `simulation.Question` of KS, `binned.BinnedQuestion` of tests over bins."""

    def key(self, policy: SimulationPolicy) -> Mapping[str, Any]:
        """All that the answer depends on, as JSON."""
        ...

    def digest(self, policy: SimulationPolicy) -> str:
        """Names `key`."""
        ...

    def simulated(self, policy: SimulationPolicy) -> OnsetLevels:
        """The answer."""
        ...


class AnswerCache:
    """Simulates a question once and remembers the answer in `folder`; None remembers nothing.

    A file is named by the digest of all that its answer depends on, and written whole or not at all, so several
    processes may share a folder. One that can't be read or was changed is simulated again, and `notes` says so; a
    folder that can't be written only costs time, and `notes` says that.
    """

    def __init__(self, folder: Path | str | None, policy: SimulationPolicy = DEFAULT_POLICY) -> None:
        self.folder = None if folder is None else Path(folder)
        self.policy = policy
        self.notes: list[str] = []

    def path_of(self, question: Question) -> Path | None:
        """Where the answer to a question is kept."""
        if self.folder is None:
            return None
        digest = question.digest(self.policy).removeprefix("sha256:")[:DIGEST_HEX_IN_NAME]
        return self.folder / f"threshold-{digest}.json"

    def answer(self, question: Question) -> tuple[OnsetLevels, str]:
        """Return the answer, and whether it was `cached` or `simulated`. A simulation takes 13 to 92 s."""
        path = self.path_of(question)
        found = None if path is None else self._read(path)
        if found is not None:
            return found, "cached"
        levels = OnsetLevels.from_json(question.simulated(self.policy).to_json())  # rounded alike, cached or not
        if path is not None:
            self._write(path, question, levels)
        return levels, "simulated"

    def answers(self, questions: Iterable[Question]) -> tuple[tuple[OnsetLevels, ...], str]:
        """Return the answers, and `simulated` where any was, else `cached`."""
        answered = [self.answer(question) for question in questions]
        origin = "simulated" if any(how == "simulated" for _, how in answered) else "cached"
        return tuple(levels for levels, _ in answered), origin

    def _read(self, path: Path) -> OnsetLevels | None:
        try:
            body = orjson.loads(path.read_bytes())
            if content_digest(_canonical(body["levels"])) != body["digest"]:
                raise ValueError("its digest is wrong")
            return OnsetLevels.from_json(body["levels"])
        except FileNotFoundError:
            return None
        except (OSError, ValueError, KeyError, TypeError) as error:
            self.notes.append(f"{path}: not a kept threshold ({error}); it is simulated again")
            return None

    def _write(self, path: Path, question: Question, levels: OnsetLevels) -> None:
        body = levels.to_json()
        whole = {"question": question.key(self.policy), "digest": content_digest(_canonical(body)), "levels": body}
        unfinished = path.with_suffix(f".{os.getpid()}.unfinished")
        try:
            path.parent.mkdir(parents=True, exist_ok=True)
            unfinished.write_bytes(orjson.dumps(whole, option=orjson.OPT_INDENT_2 | orjson.OPT_APPEND_NEWLINE))
            unfinished.replace(path)
        except OSError as error:
            self.notes.append(f"{path}: it can't be written ({error.strerror}); the threshold will be simulated again")


def _canonical(body: object) -> bytes:
    return orjson.dumps(body, option=orjson.OPT_SORT_KEYS)
