"""Many planted values searched for at once, in one pass over any bytes."""

from collections.abc import Iterable

import re2


class Planted:
    """The values, as they stand and as JSON may escape them. Searching is linear in the bytes."""

    def __init__(self, values: Iterable[str]) -> None:
        self.values = sorted(set(values))
        options = re2.Options()
        options.max_mem = 1 << 30
        options.encoding = re2.Options.Encoding.LATIN1
        forms = {form for value in self.values for form in (value.encode(), value.replace("/", "\\/").encode())}
        self._any = re2.compile(b"|".join(re2.escape(form) for form in sorted(forms)), options)

    def __len__(self) -> int:
        return len(self.values)

    def within(self, data: bytes) -> list[str]:
        """Return the values found in `data`, those that overlap an earlier one left out."""
        return sorted({match.group().decode() for match in self._any.finditer(data)})
