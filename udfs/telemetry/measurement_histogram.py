"""Histograms in and out of a measurement's flat fields."""

from typing import Any

from schemas.measurements import Measurement, MeasurementKind
from udfs.sketches.explicit_histogram import ExplicitHistogram
from udfs.sketches.exponential_histogram import ExponentialHistogram

Histogram = ExplicitHistogram | ExponentialHistogram


def histogram_of(measurement: Measurement) -> Histogram:
    """Return the histogram of a measurement of kind histogram_delta, ready to merge with others of its sort.

    Raises ValueError for another kind, and where the fields are no histogram. O(buckets).

    >>> point = Measurement("s", "queue_seconds", "q", "histogram_delta", "api", {}, 2, 1, count=3, sum=0.5,
    ...     bounds=(0.1,), bucket_counts=(2, 1))
    >>> histogram_of(point).good_ratio(0.1).low
    0.6666666666666666
    """
    if measurement.kind != MeasurementKind.HISTOGRAM_DELTA:
        raise ValueError(f"a measurement of kind {measurement.kind} has no histogram")
    if measurement.scale is None:
        counts = measurement.bucket_counts or (measurement.count or 0,)
        return ExplicitHistogram.of(measurement.bounds or (), counts, measurement.sum)
    return ExponentialHistogram.of(
        measurement.scale,
        measurement.zero_count or 0,
        (measurement.positive_offset or 0, measurement.positive_counts or ()),
        (measurement.negative_offset or 0, measurement.negative_counts or ()),
        zero_threshold=measurement.zero_threshold or 0.0,
        total=measurement.sum,
    )


def histogram_fields(histogram: Histogram) -> dict[str, Any]:
    """Return the fields of a measurement that hold a histogram."""
    common: dict[str, Any] = {"count": histogram.count, "sum": histogram.sum}
    if isinstance(histogram, ExplicitHistogram):
        return common | {"bounds": histogram.bounds, "bucket_counts": histogram.counts}
    (positive_offset, positive_counts), (negative_offset, negative_counts) = histogram.wire()
    return common | {
        "scale": histogram.scale,
        "zero_count": histogram.zero_count,
        "zero_threshold": histogram.zero_threshold,
        "positive_offset": positive_offset,
        "positive_counts": positive_counts,
        "negative_offset": negative_offset,
        "negative_counts": negative_counts,
    }
