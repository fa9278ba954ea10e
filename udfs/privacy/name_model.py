"""Names of people, where a model that can tell them is given: the form such a model must have.

Nothing but a model tells a name from a word, so without one no name is masked. A model is any callable of a package on
the workers' path; `package.module:factory` names what makes it, once a process.
"""

import importlib
from collections.abc import Iterable
from typing import Protocol


class NameModel(Protocol):
    """Finds names of people: spans [start, end) of characters of `text`, which may hold masks, in any order."""

    def __call__(self, text: str) -> Iterable[tuple[int, int]]: ...


def load_name_model(place: str) -> NameModel:
    """Return what `package.module:factory` makes. Raises ValueError saying what is wrong with the place.

    >>> load_name_model("nowhere")
    Traceback (most recent call last):
    ValueError: 'nowhere' names no factory; write package.module:factory
    """
    module_name, _, factory_name = place.partition(":")
    if not module_name or not factory_name:
        raise ValueError(f"{place!r} names no factory; write package.module:factory")
    try:
        factory = getattr(importlib.import_module(module_name), factory_name)
    except (ImportError, AttributeError) as error:
        raise ValueError(f"{place!r} can't be loaded: {error}") from error
    model: NameModel = factory()
    if not callable(model):
        raise ValueError(f"{place!r} makes nothing that can be called with a text")
    return model
