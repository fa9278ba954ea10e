"""The examples in the replay's docstrings run."""

import doctest
import importlib
import pkgutil

import pytest

import infra.reference_sources
import infra.replay

MODULES = [
    f"{package.__name__}.{module.name}"
    for package in (infra.replay, infra.reference_sources)
    for module in pkgutil.iter_modules(package.__path__)
]


@pytest.mark.parametrize("name", MODULES)
def test_examples(name: str) -> None:
    assert doctest.testmod(importlib.import_module(name)).failed == 0


def test_there_are_examples() -> None:
    assert sum(doctest.testmod(importlib.import_module(name)).attempted for name in MODULES) > 15
