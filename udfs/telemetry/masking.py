"""What leaves the decoder masked: texts, free-form labels, names of free-form attributes. Rules: docs/privacy.md.

Prompts and responses come only where they are asked for, masked and cut. Labels that callers write freely (tenant,
error type...) are masked always: an e-mail address for a tenant, a key in an error. What operators set (model, version,
service, accelerator) is left as it is: a version looks like an address.
"""

import time
from dataclasses import dataclass, field

import numpy as np
import pyarrow as pa

from schemas.text_attributes import TEXT_CUT, TEXT_FIELDS
from udfs.privacy.bounded import masked_and_cut
from udfs.privacy.ledger import Ledger
from udfs.privacy.mask import Masker
from udfs.telemetry.span_batch import Bools
from udfs.telemetry.span_texts import TextValue, span_texts

MAX_TEXT_CHARACTERS = 32_768
MAX_LABELS_KEPT = 65_536
WITHHELD = "<withheld>"
FREE_LABELS = (
    *(
        "tenant",
        "error_type",
        "guardrail_reason",
        "finish_reason",
        "prompt_template",
        "experiment",
        "arm",
        "adapter_id",
    ),
)


@dataclass(slots=True)
class TextMasking:
    """How one worker masks. `carries_text`: whether prompts and responses come at all, each at most `max_characters`.

    `ledger` gathers what was done since it was last taken.
    """

    masker: Masker
    carries_text: bool = False
    max_characters: int = MAX_TEXT_CHARACTERS
    ledger: Ledger = field(default_factory=Ledger)
    _labels: dict[str, str] = field(default_factory=dict)

    def take_ledger(self) -> Ledger:
        """Return the ledger so far and begin a new one."""
        taken, self.ledger = self.ledger, Ledger()
        return taken

    def mask_fields(self, fields: dict[str, pa.Array], which: Bools) -> None:
        """Mask in place what `fields` (columns of n values) hold; texts come only to the rows `which` (bool, n)."""
        for name in FREE_LABELS:
            if name in fields:
                fields[name] = self.labels(fields[name])
        if self.carries_text and any(name in fields for name in TEXT_FIELDS):
            cut = np.zeros(len(which), dtype=np.bool_)
            has_text = np.zeros(len(which), dtype=np.bool_)
            for name in TEXT_FIELDS:
                if name in fields:
                    fields[name] = self._texts(fields[name], which, cut, has_text)
            fields[TEXT_CUT] = pa.array(cut, mask=~has_text)

    def labels(self, values: pa.StringArray) -> pa.StringArray:
        """Return labels masked. Each distinct one is masked once."""
        encoded = values.dictionary_encode()
        known = encoded.dictionary.to_pylist()
        masked = [self._label(text) for text in known]
        return values if masked == known else pa.array(masked, pa.string()).take(encoded.indices)

    def map_keys(self, values: pa.MapArray) -> pa.MapArray:
        """Return a map with the names of its entries masked."""
        keys = self.labels(values.keys)
        if keys is values.keys or keys.equals(values.keys):
            return values
        offsets = pa.array(values.offsets.to_numpy(), pa.int32(), mask=np.append(~np.asarray(values.is_valid()), False))
        return pa.MapArray.from_arrays(offsets, keys, values.items)

    def _label(self, text: str) -> str:
        masked = self._labels.get(text)
        if masked is None:
            if len(self._labels) >= MAX_LABELS_KEPT:
                self._labels.clear()
            masked = self._labels[text] = self._masked_label(text)
        return masked

    def _masked_label(self, text: str) -> str:
        try:
            return Masker(self.masker.key).mask(text).text  # a label goes to no name model
        except Exception:  # none is known; a label that can't be masked must neither pass nor stop the job
            return WITHHELD

    def _texts(self, values: pa.StringArray, which: Bools, cut: Bools, has_text: Bools) -> pa.StringArray:
        texts: list[str | None] = [None] * len(values)
        for row in np.flatnonzero(which & np.asarray(values.is_valid())).tolist():
            begin = time.perf_counter_ns()
            try:
                bounded = masked_and_cut(self.masker, values[row].as_py(), self.max_characters)
            except Exception:  # a name model's own: a text that can't be masked is not carried
                self.ledger.note_withheld((time.perf_counter_ns() - begin) / 1e6)
                continue
            self.ledger.note(bounded.found, (time.perf_counter_ns() - begin) / 1e6, is_cut=bounded.is_cut)
            texts[row], has_text[row] = bounded.text, True
            cut[row] |= bounded.is_cut
        return pa.array(texts, pa.string())


def text_columns(values: list[TextValue], spans: int) -> dict[str, pa.Array]:
    """Return the columns of TEXT_FIELDS that any span has, not masked yet."""
    found = span_texts(values)
    columns = {name: [found.get(row, {}).get(name) for row in range(spans)] for name in TEXT_FIELDS}
    return {name: pa.array(texts, pa.string()) for name, texts in columns.items() if any(texts)}
