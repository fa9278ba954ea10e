"""Attributes in long form to request fields, by the alias table: one numpy selection a spelling, none a span.

The rules: of several spellings the first in precedence with a usable value wins; of one key given twice, the last.
A value of the wrong type leaves the field null and is counted; zero is a value, an empty text is none.
"""

from collections import Counter
from collections.abc import Iterable, Sequence
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

from schemas.requests import MAX_ATTRIBUTES, REQUEST_FIELDS, FieldType
from schemas.semconv import FIELD_ALIASES, LIST_KEYS, OPERATION_KEYS, Alias
from udfs.telemetry.any_value import EXACT_FLOAT, integer, real
from udfs.telemetry.span_batch import Attributes, Bools, Ints

FIELD_TYPES = {field.name: field.type for field in REQUEST_FIELDS}
BOOL_TEXTS = {"true": True, "false": False}
_CLAIMED_KEYS = frozenset(alias.key for aliases in FIELD_ALIASES.values() for alias in aliases) | set(OPERATION_KEYS)


@dataclass(frozen=True, slots=True)
class FieldValues:
    """`columns` has an Arrow array of one value an owner for each field that any owner has; `nulled` counts, by
    field, the values that were of the wrong type."""

    columns: dict[str, pa.Array]
    nulled: Counter[str]


def field_values(attributes: Attributes, owners: int) -> FieldValues:
    """Return the request fields that the attributes of `owners` owners give. O(attributes) for each known key."""
    reader = _Reader(attributes, owners)
    columns = {field: column for field in FIELD_ALIASES if (column := reader.field(field)) is not None}
    return FieldValues(columns, reader.nulled)


def first_text(attributes: Attributes, owners: int, keys: Sequence[str]) -> pa.Array | None:
    """Return each owner's text under the first of `keys` that it has, null without; None if no owner has any."""
    return _Reader(attributes, owners).column([Alias(key) for key in keys], FieldType.STRING, "")


def free_attributes(attributes: Attributes, owners: int) -> tuple[pa.MapArray, int]:
    """Return each owner's numeric attributes that no field claims, as map<string, float64>, null without any.

    Also returns how many were left out because an owner had more than MAX_ATTRIBUTES (the first are kept). A key given
    twice has its last value.
    """
    has_integer, has_real = _valid(attributes.integer), _valid(attributes.real)
    claimed = np.fromiter((key in _CLAIMED_KEYS for key in attributes.keys), np.bool_, len(attributes.keys))
    rows = np.flatnonzero((has_integer | has_real) & ~claimed[attributes.key_code])
    rows = rows[_last_of_each(attributes.owner[rows], attributes.key_code[rows], len(attributes.keys))]
    owner = attributes.owner[rows]
    counts = np.bincount(owner, minlength=owners)
    place = np.arange(len(rows)) - (np.cumsum(counts) - counts)[owner]
    kept = place < MAX_ATTRIBUTES
    rows, counts = rows[kept], np.minimum(counts, MAX_ATTRIBUTES)
    numbers = np.where(has_integer[rows], _numbers(attributes.integer)[rows], _numbers(attributes.real)[rows])
    offsets = np.concatenate([[0], np.cumsum(counts)]).astype(np.int32)
    # A null in the offsets marks a null map.
    offset_array = pa.array(offsets, pa.int32(), mask=np.append(counts == 0, False))
    keys = pa.array(attributes.keys, pa.string()).take(pa.array(attributes.key_code[rows]))
    return pa.MapArray.from_arrays(offset_array, keys, pa.array(numbers, pa.float64())), int((~kept).sum())


def _last_of_each(owner: Ints, code: Ints, codes: int) -> Ints:
    """Return the places, ascending, of the last occurrence of each (owner, code)."""
    if len(owner) == 0:
        return owner
    pair = owner * codes + code
    if (owner[-1] + 1) * codes <= 16 * len(pair) and np.bincount(pair).max() == 1:
        return np.arange(len(pair))  # as nearly always: none twice, seen without sorting
    _, from_end = np.unique(pair[::-1], return_index=True)
    return np.sort(len(pair) - 1 - from_end)


def _valid(values: pa.Array) -> Bools:
    valid: Bools = pc.is_valid(values).to_numpy(zero_copy_only=False)
    return valid


def _numbers(values: pa.Array) -> npt.NDArray[np.float64]:
    """Return the values as float64; what is null holds anything."""
    numbers: npt.NDArray[np.float64] = _raw(values).astype(np.float64)
    return numbers


def _raw(values: pa.Array) -> npt.NDArray[np.generic]:
    """Return a numeric array's values without looking at nulls."""
    if values.null_count == len(values):
        return np.zeros(len(values), dtype=values.type.to_pandas_dtype())
    return np.frombuffer(values.buffers()[1], dtype=values.type.to_pandas_dtype())[values.offset :][: len(values)]


class _Reader:
    """Picks columns out of one set of attributes."""

    def __init__(self, attributes: Attributes, owners: int) -> None:
        self.attributes, self.owners = attributes, owners
        self.code_of = {key: code for code, key in enumerate(attributes.keys)}
        self.nulled: Counter[str] = Counter()
        self.has_text, self.has_flag = _valid(attributes.text), _valid(attributes.flag)
        self.has_integer, self.has_real = _valid(attributes.integer), _valid(attributes.real)
        self.integers, self.reals = _raw(attributes.integer), _raw(attributes.real)

    def field(self, name: str) -> pa.Array | None:
        """Return the column of a field, or None where no owner has a value for it."""
        return self.column(FIELD_ALIASES[name], FIELD_TYPES[name], name)

    def column(self, aliases: Iterable[Alias], kind: FieldType, name: str) -> pa.Array | None:
        """Return the column that `aliases`, in order of precedence, give; wrong types are counted under `name`."""
        known = [alias for alias in aliases if alias.key in self.code_of]
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
        """Return the owners and usable values of one spelling; values are not null."""
        rows = np.flatnonzero(self.attributes.key_code == self.code_of[alias.key])
        if alias.in_json:
            usable, values = self._from_json(rows, alias.in_json, kind)
        elif kind is FieldType.STRING:
            usable, values = self._texts(rows, alias.key in LIST_KEYS)
        elif kind is FieldType.BOOL:
            usable, values = self._flags(rows)
        else:
            usable, values = self._figures(rows, kind, alias.per_unit)
        if not alias.in_json and not usable.all():
            self.nulled[name] += self._wrong(rows[~usable], kind)
        if len(values) == 0:
            return None
        return self.attributes.owner[rows[usable]], values

    def _wrong(self, rows: Ints, kind: FieldType) -> int:
        """Return how many of these rows, none of them usable, hold a value at all; an empty text is none."""
        held = self.has_flag[rows] | self.has_integer[rows] | self.has_real[rows] | self.attributes.is_other[rows]
        if kind is not FieldType.STRING:
            held |= self.has_text[rows]
        return int(held.sum())

    def _texts(self, rows: Ints, may_be_list: bool) -> tuple[Bools, pa.Array]:
        """Texts that are not empty, integers in decimal, and the first text of a list where a list is allowed."""
        at = pa.array(rows)
        values = self.attributes.text.take(at)
        if values.null_count and self.has_integer[rows].any():
            values = pc.coalesce(values, self.attributes.integer.take(at).cast(pa.string()))
        if values.null_count and may_be_list:
            values = pc.coalesce(values, self.attributes.list_text.take(at))
        is_empty = pc.equal(values, "")
        if pc.any(is_empty).as_py():
            values = pc.if_else(is_empty, None, values)
        if not values.null_count:
            return np.ones(len(rows), dtype=np.bool_), values
        return _valid(values), values.drop_null()

    def _flags(self, rows: Ints) -> tuple[Bools, pa.Array]:
        """Booleans, and the texts true and false."""
        at = pa.array(rows)
        values = self.attributes.flag.take(at)
        if values.null_count and self.has_text[rows].any():
            encoded = self.attributes.text.take(at).dictionary_encode()
            flags = [BOOL_TEXTS.get(text.lower()) for text in encoded.dictionary.to_pylist()]
            values = pc.coalesce(values, pa.array(flags, pa.bool_()).take(encoded.indices))
        return _valid(values), values.drop_null()

    def _figures(self, rows: Ints, kind: FieldType, per_unit: float) -> tuple[Bools, pa.Array]:
        """Integers and doubles, and texts that are numbers; for an INT64 field, doubles that are whole and exact."""
        is_integer, is_real = self.has_integer[rows], self.has_real[rows]
        if kind is FieldType.INT64:
            numbers = self.integers[rows]
            if is_real.any():
                reals = self.reals[rows].astype(np.float64)
                with np.errstate(invalid="ignore"):
                    is_real &= (np.abs(reals) <= EXACT_FLOAT) & (reals == np.trunc(reals))
                numbers = np.where(is_real, np.where(is_real, reals, 0.0).astype(np.int64), numbers)
        elif is_integer.all():
            numbers = self.integers[rows].astype(np.float64)
        else:
            numbers = self.reals[rows]
            if is_integer.any():
                numbers = np.where(is_integer, self.integers[rows].astype(np.float64), numbers)
        usable = is_integer | is_real
        if self.has_text[rows].any():
            numbers, usable = self._numbers_in_text(rows, kind, numbers, usable)
        if not usable.all():
            numbers = numbers[usable]
        if per_unit != 1:
            numbers = numbers.astype(np.float64) / per_unit
        return usable, pa.array(numbers, kind.value.arrow)

    def _numbers_in_text(
        self, rows: Ints, kind: FieldType, numbers: npt.NDArray[np.generic], usable: Bools
    ) -> tuple[npt.NDArray[np.generic], Bools]:
        encoded = self.attributes.text.take(pa.array(rows)).dictionary_encode()
        read = integer if kind is FieldType.INT64 else real
        parsed = pa.array([read(text) for text in encoded.dictionary.to_pylist()], kind.value.arrow)
        values = parsed.take(encoded.indices)
        from_text = _valid(values)
        return np.where(from_text, _raw(values), numbers), usable | from_text

    def _from_json(self, rows: Ints, member: str, kind: FieldType) -> tuple[Bools, pa.Array]:
        """The number under `member` of a flat JSON object; an object without it is not wrong."""
        pattern = rf'"{member}"\s*:\s*(?P<number>-?[0-9]+(?:\.[0-9]+)?)\s*[,}}]'
        found = pc.struct_field(pc.extract_regex(self.attributes.text.take(pa.array(rows)), pattern), "number")
        if found.null_count == len(found):
            return np.zeros(len(rows), dtype=np.bool_), pa.nulls(0, kind.value.arrow)
        read = integer if kind is FieldType.INT64 else real
        encoded = found.dictionary_encode()
        parsed = pa.array([read(text) for text in encoded.dictionary.to_pylist()], kind.value.arrow)
        values = parsed.take(encoded.indices)
        return _valid(values), values.drop_null()
