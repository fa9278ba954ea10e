"""What every statistical test returns: figures where there are any, and a status where there are none."""

import math
from dataclasses import dataclass
from typing import ClassVar

from schemas.status import Status


@dataclass(frozen=True, slots=True)
class TestResult:
    """The outcome of one test of a window against a reference.

    Where `status` is `ok`, `statistic`, `p_value`, `log10_p_value` and `effect` are finite numbers; otherwise they and
    `degrees_of_freedom` are None. Never NaN, never infinite (ValueError). `degrees_of_freedom` is None for tests that
    have none.

    `log10_p_value` is computed in log space, so it stays finite where `p_value` underflows to 0.0. `n_reference` and
    `n_window` count the values that took part, infinities among them; nulls and NaN are counted apart, and
    `n_infinite` says how many of the window's values were infinite. `method` names how the p-value that is here was
    made, which may be another than was asked for.
    """

    __test__: ClassVar[bool] = False  # the name starts with Test, and pytest would collect it

    statistic: float | None
    p_value: float | None
    log10_p_value: float | None
    effect: float | None
    degrees_of_freedom: int | None
    n_reference: int
    n_window: int
    n_reference_null: int
    n_window_null: int
    n_infinite: int
    method: str
    status: Status

    def __post_init__(self) -> None:
        figures = (self.statistic, self.p_value, self.log10_p_value, self.effect)
        if self.status is Status.OK:
            if None in figures or not all(map(math.isfinite, figures)):  # type: ignore[arg-type]  # none is None
                raise ValueError(f"a result with status ok must have finite figures, not {figures}")
        elif not all(figure is None for figure in (*figures, self.degrees_of_freedom)):
            raise ValueError(f"a result with status {self.status} must have no figures, not {figures}")

    @classmethod
    def without_figures(
        cls,
        status: Status,
        *,
        method: str,
        n_reference: int,
        n_window: int,
        n_reference_null: int = 0,
        n_window_null: int = 0,
        n_infinite: int = 0,
    ) -> "TestResult":
        """Return the result of a test that could not be made, with its counts.

        >>> result = TestResult.without_figures(Status.INSUFFICIENT_DATA, method="exact", n_reference=5, n_window=0)
        >>> result.statistic, result.status.value
        (None, 'insufficient_data')
        """
        return cls(
            statistic=None,
            p_value=None,
            log10_p_value=None,
            effect=None,
            degrees_of_freedom=None,
            n_reference=n_reference,
            n_window=n_window,
            n_reference_null=n_reference_null,
            n_window_null=n_window_null,
            n_infinite=n_infinite,
            method=method,
            status=status,
        )

    @property
    def window_null_rate(self) -> float | None:
        """Nulls among all the window's records; None where it had no record."""
        n = self.n_window_null + self.n_window
        return self.n_window_null / n if n else None
