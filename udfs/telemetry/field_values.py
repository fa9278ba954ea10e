"""Attributes in long form to request fields, by the alias table: one numpy selection a spelling, none a span.

The rules: of several spellings the first in precedence with a usable value wins; of one key given twice, the last.
A value of the wrong type leaves the field null and is counted; zero is a value, an empty text is none.
"""

import hashlib
from collections import Counter
from collections.abc import Iterable, Sequence
from functools import lru_cache

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

from schemas.field_types import MAX_ATTRIBUTES, FieldType
from schemas.personal_attributes import is_personal_key
from schemas.requests import REQUEST_FIELDS
from schemas.semconv import FIELD_ALIASES, HASHED_FIELDS, LIST_KEYS, OPERATION_KEYS, Alias
from schemas.text_attributes import is_text_key
from udfs.telemetry.any_value import EXACT_FLOAT, integer, real
from udfs.telemetry.arrow_numpy import numbers, valid
from udfs.telemetry.span_batch import Attributes, Bools, Ints

FIELD_TYPES = {field.name: field.type for field in REQUEST_FIELDS}
MAX_KEYS_KEPT = 65_536
BOOL_TEXTS = {"true": True, "false": False}
_FIELDS_OF_KEY: dict[str, list[str]] = {}
for _name, _aliases in FIELD_ALIASES.items():
    for _alias in _aliases:
        _FIELDS_OF_KEY.setdefault(_alias.key, []).append(_name)
_CLAIMED_KEYS = _FIELDS_OF_KEY.keys() | set(OPERATION_KEYS)


class FieldReader:
    """Reads columns of `owners` values, one an owner, out of one set of attributes.

    `nulled` counts, by field, the values read so far that were of a wrong type; under `attributes`, the numeric
    attributes left out beyond MAX_ATTRIBUTES. Time O(attributes log attributes) once, then O(rows of its keys) a field.
    """

    def __init__(self, attributes: Attributes, owners: int) -> None:
        self.attributes, self.owners = attributes, owners
        self.nulled: Counter[str] = Counter()
        self._has_text, self._has_flag = valid(attributes.text), valid(attributes.flag)
        self._has_integer, self._has_real = valid(attributes.integer), valid(attributes.real)
        self._integers, self._reals = numbers(attributes.integer), numbers(attributes.real)
        self._rows = _rows_by_key(attributes)

    def fields(self) -> dict[str, pa.Array]:
        """Return the column of each request field for which any owner has a value."""
        named = {name for key in self._rows for name in _FIELDS_OF_KEY.get(key, ())}
        columns = {name: self._column(FIELD_ALIASES[name], FIELD_TYPES[name], name) for name in sorted(named)}
        read = {name: column for name, column in columns.items() if column is not None}
        return read | {name: _hashed(read[name]) for name in HASHED_FIELDS & read.keys()}

    def first_text(self, keys: Sequence[str]) -> pa.Array | None:
        """Return each owner's text under the first of `keys` that it has, null without; None if no owner has any."""
        return self._column([Alias(key) for key in keys], FieldType.STRING, "")

    def free_attributes(self) -> pa.MapArray:
        """Return each owner's numeric attributes that no field claims, as map<string, float64>, null without any.

        What is personal by its name, or belongs to a prompt or response, is left out and counted.
        The first MAX_ATTRIBUTES of an owner are kept, the others counted. A key given twice has its last value.
        """
        attributes = self.attributes
        claimed = np.fromiter((key in _CLAIMED_KEYS for key in attributes.keys), np.bool_, len(attributes.keys))
        barred = np.fromiter(map(_is_barred, attributes.keys), np.bool_, len(attributes.keys)) & ~claimed
        is_number = self._has_integer | self._has_real
        if barred.any():
            self.nulled["personal_attributes"] += int((is_number & barred[attributes.key_code]).sum())
        rows = np.flatnonzero(is_number & ~(claimed | barred)[attributes.key_code])
        rows = rows[_last_of_each(attributes.owner[rows], attributes.key_code[rows], len(attributes.keys))]
        owner = attributes.owner[rows]
        counts = np.bincount(owner, minlength=self.owners)
        place = np.arange(len(rows)) - (np.cumsum(counts) - counts)[owner]
        kept = rows[place < MAX_ATTRIBUTES]
        if len(kept) < len(rows):
            self.nulled["attributes"] += len(rows) - len(kept)
        counts = np.minimum(counts, MAX_ATTRIBUTES)
        offsets = np.concatenate([[0], np.cumsum(counts)])
        keys = pa.array(attributes.keys, pa.string()).take(pa.array(attributes.key_code[kept]))
        return pa.MapArray.from_arrays(
            pa.array(offsets, pa.int32(), mask=np.append(counts == 0, False)),  # a null in the offsets is a null map
            keys,
            pa.array(np.where(self._has_integer[kept], self._integers[kept], self._reals[kept]), pa.float64()),
        )

    def _column(self, aliases: Iterable[Alias], kind: FieldType, name: str) -> pa.Array | None:
        """Return the column that `aliases`, in order of precedence, give; wrong types are counted under `name`."""
        known = [alias for alias in aliases if alias.key in self._rows]
        pieces = [piece for alias in reversed(known) if (piece := self._piece(alias, kind, name)) is not None]
        if not pieces:
            return None
        if len(pieces) == 1 and np.array_equal(pieces[0][0], np.arange(self.owners)):
            return pieces[0][1]
        place = np.full(self.owners, -1, dtype=np.int64)
        start = 0
        for owner, values in pieces:  # what comes later wins: better spellings, and the later of equal keys
            place[owner] = np.arange(start, start + len(values))
            start += len(values)
        values = pa.concat_arrays([values for _, values in pieces]) if len(pieces) > 1 else pieces[0][1]
        return values.take(pa.array(place, mask=place < 0))

    def _piece(self, alias: Alias, kind: FieldType, name: str) -> tuple[Ints, pa.Array] | None:
        """Return the owners and usable values of one spelling; no value is null."""
        rows = self._rows[alias.key]
        if alias.in_json:
            usable, values = self._from_json(rows, alias.in_json, kind)
        elif kind is FieldType.STRING:
            usable, values = self._texts(rows, alias.key in LIST_KEYS)
        elif kind is FieldType.DOUBLE_ARRAY:
            vectors = self._of_lists(rows, self.attributes.vector_rows, self.attributes.vectors)
            usable, values = valid(vectors), vectors.drop_null()
        elif kind is FieldType.BOOL:
            usable, values = self._flags(rows)
        else:
            usable, values = self._figures(rows, kind, alias.per_unit)
        if len(values) < len(rows):
            if not alias.in_json and (wrong := self._wrong(rows[~usable], kind)):
                self.nulled[name] += wrong
            rows = rows[usable]
        return (self.attributes.owner[rows], values) if len(values) else None

    def _wrong(self, rows: Ints, kind: FieldType) -> int:
        """Return how many of these rows, none of them usable, hold a value at all; an empty text is none."""
        held = self._has_flag[rows] | self._has_integer[rows] | self._has_real[rows] | self.attributes.is_other[rows]
        if kind is not FieldType.STRING:
            held |= self._has_text[rows]
        return int(held.sum())

    def _texts(self, rows: Ints, may_be_list: bool) -> tuple[Bools, pa.Array]:
        """Texts that are not empty, integers in decimal, and the first text of a list where a list is allowed."""
        at = pa.array(rows)
        values = self.attributes.text.take(at)
        if values.null_count and self._has_integer[rows].any():
            values = pc.coalesce(values, self.attributes.integer.take(at).cast(pa.string()))
        if values.null_count and may_be_list:
            attributes = self.attributes
            values = pc.coalesce(values, self._of_lists(rows, attributes.list_rows, attributes.list_texts))
        is_empty = pc.equal(values, "")
        if pc.any(is_empty).as_py():
            values = pc.if_else(is_empty, None, values)
        return valid(values), values.drop_null() if values.null_count else values

    @staticmethod
    def _of_lists(rows: Ints, list_rows: Ints, contents: pa.Array) -> pa.Array:
        """Return what the list in each row was read for (`contents` of `list_rows`), null where there is none."""
        place = np.searchsorted(list_rows, rows)
        found = np.append(list_rows, -1)[place] == rows
        return contents.take(pa.array(place, mask=~found))

    def _flags(self, rows: Ints) -> tuple[Bools, pa.Array]:
        """Booleans, and the texts true and false."""
        at = pa.array(rows)
        values = self.attributes.flag.take(at)
        if values.null_count and self._has_text[rows].any():
            encoded = self.attributes.text.take(at).dictionary_encode()
            read = [BOOL_TEXTS.get(text.lower()) for text in encoded.dictionary.to_pylist()]
            values = pc.coalesce(values, pa.array(read, pa.bool_()).take(encoded.indices))
        return valid(values), values.drop_null()

    def _figures(self, rows: Ints, kind: FieldType, per_unit: float) -> tuple[Bools, pa.Array]:
        """Integers and doubles, and texts that are numbers; for an INT64 field, doubles that are whole and exact."""
        is_integer, is_real = self._has_integer[rows], self._has_real[rows]
        figures = self._integers[rows] if kind is FieldType.INT64 else self._reals[rows]
        if kind is FieldType.INT64 and is_real.any():
            reals = self._reals[rows].astype(np.float64)
            with np.errstate(invalid="ignore"):
                is_real &= (np.abs(reals) <= EXACT_FLOAT) & (reals == np.trunc(reals))
            figures = np.where(is_real, np.where(is_real, reals, 0.0).astype(np.int64), figures)
        elif kind is FieldType.FLOAT64 and is_integer.any():
            figures = np.where(is_integer, self._integers[rows].astype(np.float64), figures)
        usable = is_integer | is_real
        if self._has_text[rows].any():
            figures, usable = self._numbers_in_text(rows, kind, figures, usable)
        if not usable.all():
            figures = figures[usable]
        if per_unit != 1:
            figures = figures.astype(np.float64) / per_unit
        return usable, pa.array(figures, kind.value.arrow)

    def _numbers_in_text(
        self, rows: Ints, kind: FieldType, figures: npt.NDArray[np.generic], usable: Bools
    ) -> tuple[npt.NDArray[np.generic], Bools]:
        values = _parsed(self.attributes.text.take(pa.array(rows)), kind)
        from_text = valid(values)
        return np.where(from_text, numbers(values), figures), usable | from_text

    def _from_json(self, rows: Ints, member: str, kind: FieldType) -> tuple[Bools, pa.Array]:
        """The number under `member` of a flat JSON object; an object without it is not wrong."""
        pattern = rf'"{member}"\s*:\s*(?P<number>-?[0-9]+(?:\.[0-9]+)?)\s*[,}}]'
        found = pc.extract_regex(self.attributes.text.take(pa.array(rows)), pattern)
        values = _parsed(pc.struct_field(found, "number"), kind)
        return valid(values), values.drop_null()


@lru_cache(maxsize=MAX_KEYS_KEPT)
def _is_barred(key: str) -> bool:
    return is_personal_key(key) or is_text_key(key)


def _hashed(texts: pa.StringArray) -> pa.StringArray:
    """Return the SHA-256 of each text in hex, null of null. Equal texts are hashed once."""
    encoded = texts.dictionary_encode()
    hashes = [hashlib.sha256(text.encode()).hexdigest() for text in encoded.dictionary.to_pylist()]
    return pa.array(hashes, pa.string()).take(encoded.indices)


def _parsed(texts: pa.StringArray, kind: FieldType) -> pa.Array:
    """Return the numbers that the texts write, null where one writes none. Equal texts are read once."""
    encoded = texts.dictionary_encode()
    read = integer if kind is FieldType.INT64 else real
    return pa.array([read(text) for text in encoded.dictionary.to_pylist()], kind.value.arrow).take(encoded.indices)


def _rows_by_key(attributes: Attributes) -> dict[str, Ints]:
    """Return the rows, ascending, of each key that a field or the operation claims."""
    keys = attributes.keys
    codes = (
        attributes.key_code.astype(np.uint16) if len(keys) <= 2**16 else attributes.key_code
    )  # 16 bits sort by radix
    order = np.argsort(codes, kind="stable")
    ends = np.cumsum(np.bincount(codes, minlength=len(keys)))
    return {
        key: order[ends[code - 1] if code else 0 : ends[code]] for code, key in enumerate(keys) if key in _CLAIMED_KEYS
    }


def _last_of_each(owner: Ints, code: Ints, codes: int) -> Ints:
    """Return the places, ascending, of the last occurrence of each (owner, code)."""
    if len(owner) == 0:
        return owner
    pair = owner * codes + code
    if (owner[-1] + 1) * codes <= 16 * len(pair) and np.bincount(pair).max() == 1:
        return np.arange(len(pair))  # as nearly always: none twice, seen without sorting
    _, from_end = np.unique(pair[::-1], return_index=True)
    return np.sort(len(pair) - 1 - from_end)
