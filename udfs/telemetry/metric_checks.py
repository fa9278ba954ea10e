"""What makes a metric point unusable whatever its encoding. One sentence a fault, none quoting a value."""

import math

from schemas.dead_letters import Reason
from udfs.sketches.explicit_histogram import ExplicitHistogram
from udfs.sketches.exponential_histogram import ExponentialHistogram
from udfs.telemetry.metric_points import CUMULATIVE, DELTA, MetricPoint, MetricType
from udfs.telemetry.span_checks import INT64_MAX, TIME_OVERFLOW, Fault

MAX_BOUNDS = 1024  # far above any layout in use (vLLM's longest has 23): bounds what a series is remembered by

TEMPORALITY: Fault = (Reason.TEMPORALITY_UNSPECIFIED, "aggregation temporality is unspecified: delta or total, unknown")
NON_MONOTONIC_DELTA: Fault = (
    Reason.UNSUPPORTED_METRIC,
    "a non-monotonic sum comes as deltas: its level can't be known without its beginning",
)
TIME_MISSING: Fault = (Reason.BAD_TIME, "time_unix_nano is absent")
TIME_BEFORE_START: Fault = (Reason.BAD_TIME, "time_unix_nano is before start_time_unix_nano")
VALUE_MISSING: Fault = (Reason.BAD_VALUE, "the point has no value, or none that is a number")
VALUE_NOT_FINITE: Fault = (Reason.BAD_VALUE, "the value is not finite")
VALUE_NEGATIVE: Fault = (Reason.BAD_VALUE, "a monotonic sum is negative")
COUNT_MISSING: Fault = (Reason.BAD_VALUE, "the histogram has no count, or none that is a whole number of 63 bits")
TOO_MANY_BOUNDS: Fault = (Reason.INVALID_HISTOGRAM, f"the histogram has more than {MAX_BOUNDS} bounds")
COUNTS_DISAGREE: Fault = (Reason.INVALID_HISTOGRAM, "count is not the sum of the buckets")


def temporality_fault(type_: MetricType, temporality: int, *, is_monotonic: bool) -> Fault | None:
    """Return what is wrong with a metric before any of its points is looked at, or None."""
    if type_ in (MetricType.GAUGE, MetricType.SUMMARY):
        return None
    if temporality not in (DELTA, CUMULATIVE):
        return TEMPORALITY
    if type_ is MetricType.SUM and temporality == DELTA and not is_monotonic:
        return NON_MONOTONIC_DELTA
    return None


def point_fault(point: MetricPoint) -> Fault | None:
    """Return what is wrong with a point, or None. O(buckets)."""
    if fault := _time_fault(point):
        return fault
    if point.has_no_value:
        return None
    if point.type in (MetricType.GAUGE, MetricType.SUM):
        return _value_fault(point)
    return _histogram_fault(point)


def _time_fault(point: MetricPoint) -> Fault | None:
    if not 0 <= point.start_ns <= INT64_MAX or point.time_ns > INT64_MAX:
        return TIME_OVERFLOW
    if point.time_ns <= 0:
        return TIME_MISSING
    return TIME_BEFORE_START if point.time_ns < point.start_ns else None


def _value_fault(point: MetricPoint) -> Fault | None:
    if point.value is None:
        return VALUE_MISSING
    if not math.isfinite(point.value):
        return VALUE_NOT_FINITE
    return VALUE_NEGATIVE if point.is_monotonic and point.value < 0 else None


def _histogram_fault(point: MetricPoint) -> Fault | None:
    if point.count is None or not 0 <= point.count <= INT64_MAX:
        return COUNT_MISSING
    if point.bounds is not None and len(point.bounds) > MAX_BOUNDS:
        return TOO_MANY_BOUNDS
    try:
        counted = histogram_of_point(point).count
    except ValueError as error:
        return Reason.INVALID_HISTOGRAM, f"no histogram: {error}"
    return COUNTS_DISAGREE if counted != point.count else None


def histogram_of_point(point: MetricPoint) -> ExplicitHistogram | ExponentialHistogram:
    """Return the histogram of a point that has a count. Raises ValueError where its buckets are none. O(buckets).

    A histogram may have no buckets: its count then lies in the one that has no bounds.
    """
    if point.type is MetricType.EXPONENTIAL_HISTOGRAM:
        return ExponentialHistogram.of(
            point.scale or 0,
            point.zero_count,
            point.positive,
            point.negative,
            zero_threshold=point.zero_threshold,
            total=point.sum,
        )
    if not point.bucket_counts:
        return ExplicitHistogram.of((), (point.count or 0,), point.sum)
    return ExplicitHistogram.of(point.bounds or (), point.bucket_counts, point.sum)
