"""The attributes of spans and their events that hold prompts and responses, out of Arrow columns of `otlp_proto`."""

from collections.abc import Callable, Iterator

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from schemas.text_attributes import DETAIL_EVENTS, MESSAGE_EVENT_KEYS, MESSAGE_EVENTS, is_text_key
from udfs.telemetry.any_value import AnyPython
from udfs.telemetry.any_value_proto import array_value, key_value_list
from udfs.telemetry.arrow_numpy import flags
from udfs.telemetry.span_batch import Ints
from udfs.telemetry.span_texts import TextValue


def text_values(spans: pa.StructArray) -> list[TextValue]:
    """Return every attribute of `spans`, and of their events, that holds text. O(attributes + length of the texts)."""
    found = [
        TextValue(owner, "", key, value)
        for owner, key, value in _pairs(spans.field("attributes"), np.arange(len(spans)), is_text_key)
    ]
    events = spans.field("events")
    named = events.flatten()
    if len(named) == 0:
        return found
    lengths = pc.fill_null(pc.list_value_length(events), 0).to_numpy(zero_copy_only=False)
    owner = np.repeat(np.arange(len(spans)), lengths)
    names = named.field("name")
    known = flags(pc.is_in(names, value_set=pa.array(sorted(DETAIL_EVENTS | MESSAGE_EVENTS.keys()))))
    rows = np.flatnonzero(known)
    if len(rows) == 0:
        return found
    kept = named.take(pa.array(rows))
    for place, key, value in _pairs(kept.field("attributes"), np.arange(len(rows)), _event_keys):
        found.append(TextValue(int(owner[rows[place]]), names[int(rows[place])].as_py(), key, value))
    return found


def _event_keys(key: str) -> bool:
    return is_text_key(key) or key in MESSAGE_EVENT_KEYS


def _pairs(lists: pa.ListArray, owners: Ints, wanted: Callable[[str], bool]) -> Iterator[tuple[int, str, AnyPython]]:
    """Yield (owner, key, value as Python) of the wanted keys."""
    pairs = lists.flatten()
    lengths = pc.fill_null(pc.list_value_length(lists), 0).to_numpy(zero_copy_only=False)
    owner = np.repeat(owners, lengths)
    encoded = pairs.field("key").dictionary_encode()
    keys = encoded.dictionary.to_pylist()
    is_wanted = np.fromiter((wanted(key) for key in keys), np.bool_, len(keys))
    codes = encoded.indices.to_numpy()
    rows = np.flatnonzero(is_wanted[codes]) if len(keys) else np.zeros(0, dtype=np.int64)
    if len(rows) == 0:
        return
    values = pairs.field("value").take(pa.array(rows))
    texts, arrays, maps = (values.field(name).to_pylist() for name in ("string_value", "array_value", "kvlist_value"))
    for row, text, of_list, of_map in zip(rows.tolist(), texts, arrays, maps, strict=True):
        value: AnyPython = text
        if of_list is not None:
            value = array_value(of_list)
        elif of_map is not None:
            value = key_value_list(of_map)
        yield int(owner[row]), keys[codes[row]], value
