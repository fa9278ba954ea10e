"""The join of a trace's spans in Flink: list state, timers, and `waiting_bucket.release_due`, which holds the logic.

The key is a bucket of traces, not a trace. PyFlink asks the JVM for the state of each key that its cache lacks, and
waits for the answer; the few buckets stay in the cache (`python.state.cache-size`).
"""

from collections.abc import Iterator

import orjson
from pyflink.common import Row, Types
from pyflink.datastream import KeyedProcessFunction, RuntimeContext, TimeDomain
from pyflink.datastream.state import ListState, ListStateDescriptor, ValueState, ValueStateDescriptor

from schemas.books import IngestKind
from schemas.request_headers import request_headers
from udfs.telemetry.trace_join import Entry, encode_entry
from udfs.telemetry.waiting_bucket import BucketReleased, bucket_of, release_due
from udfs.telemetry.wall_clock import Cutoff, Look, cutoff, next_look

_BYTES = Types.PRIMITIVE_ARRAY(Types.BYTE())
JOINED_TYPE = Types.ROW_NAMED(
    ["kind", "trace_id", "request", "n", "headers"],
    [Types.STRING(), Types.STRING(), Types.STRING(), Types.LONG(), Types.MAP(Types.STRING(), _BYTES)],
)
# Part of the savepoint: never change them. The buckets with both states fit into PyFlink's cache of 1,000 by default.
SPANS_STATE, LOOKS_STATE = "waiting_spans_of_bucket", "looks_at_the_watermark"
BUCKETS = 128

STEPS_A_WAIT = 10  # a bucket is read at most so often while one wait lasts


def bucket_of_row(row: Row) -> str:
    """The key of a row of view `waiting` (jobs/sql/ingest.sql): the bucket of its trace id."""
    return str(bucket_of(row[0], BUCKETS))


class JoinTraces(KeyedProcessFunction):
    """Rows (trace id, Kafka timestamp in ms, waiting line), keyed by `bucket_of_row`, to rows of `JOINED_TYPE`.

    A span waits `wait_ms` of event time, the clock being the watermark of Kafka's timestamps. Where that stands still,
    because every source idles, the wall clock ends the wait (wall_clock.py). Of each span put in one comes out, as a
    request or as part of a `child` count. One append a span; a bucket's timers fall on steps of `wait_ms` / 10, each
    bucket's at another moment, so that they don't all fire at once, and each step reads the whole bucket and writes
    what waits on.
    """

    def __init__(self, wait_ms: int) -> None:
        self._wait_ms = wait_ms
        self._step_ms = max(wait_ms // STEPS_A_WAIT, 1)
        self._spans: ListState
        self._looks: ValueState

    def open(self, runtime_context: RuntimeContext) -> None:
        """Take hold of the state. What this process knows besides only spares calls, and begins empty."""
        self._spans = runtime_context.get_list_state(ListStateDescriptor(SPANS_STATE, Types.STRING()))
        looks = ValueStateDescriptor(LOOKS_STATE, Types.TUPLE([Types.LONG(), Types.LONG(), Types.LONG()]))
        self._looks = runtime_context.get_state(looks)
        self._steps: set[tuple[str, int]] = set()
        self._next_looks: dict[str, int] = {}
        self._looks_made: dict[str, int] = {}

    def process_element(self, row: Row, ctx: KeyedProcessFunction.Context) -> None:
        """One span begins to wait."""
        bucket, arrival_ms, line = ctx.get_current_key(), row[1], row[2]
        looks = self._looks_made.get(bucket)
        if looks is None:
            stored = self._looks.value()
            looks = self._looks_made[bucket] = 0 if stored is None else Look(*stored).number
        self._spans.add(encode_entry(Entry(arrival_ms, line, looks)))
        step = bucket, self._timer_at(arrival_ms + self._wait_ms, bucket)
        if step not in self._steps:
            self._steps.add(step)
            ctx.timer_service().register_event_time_timer(step[1])
        self._look_later(ctx)

    def on_timer(self, timestamp: int, ctx: KeyedProcessFunction.OnTimerContext) -> Iterator[Row]:
        """Some spans of the bucket have waited long enough, by one clock or the other."""
        bucket = ctx.get_current_key()
        if ctx.time_domain() == TimeDomain.EVENT_TIME:
            self._steps.discard((bucket, timestamp))
            yield from self._put(release_due(list(self._spans.get() or ()), Cutoff(timestamp - self._wait_ms)), bucket)
        else:
            if self._next_looks.get(bucket, timestamp) <= timestamp:
                self._next_looks.pop(bucket, None)
            yield from self._look(ctx)

    def _timer_at(self, time_ms: int, bucket: str) -> int:
        offset = self._step_ms * int(bucket) // BUCKETS
        return -(-(time_ms - offset) // self._step_ms) * self._step_ms + offset

    def _look_later(self, ctx: KeyedProcessFunction.Context) -> None:
        bucket = ctx.get_current_key()
        if bucket not in self._next_looks:
            timers = ctx.timer_service()
            at_ms = self._timer_at(timers.current_processing_time() + self._wait_ms, bucket)
            self._next_looks[bucket] = at_ms
            timers.register_processing_time_timer(at_ms)

    def _look(self, ctx: KeyedProcessFunction.OnTimerContext) -> Iterator[Row]:
        """Look at the watermark, and let go what has waited long enough by the wall clock if it stands still."""
        texts = list(self._spans.get() or ())
        if not texts:
            self._forget_looks(ctx.get_current_key())
            return
        self._look_later(ctx)
        stored, timers = self._looks.value(), ctx.timer_service()
        before = None if stored is None else Look(*stored)
        look = next_look(before, timers.current_processing_time(), timers.current_watermark(), self._wait_ms)
        if look is None:
            return
        self._looks.update(tuple(look))
        self._looks_made[ctx.get_current_key()] = look.number
        yield from self._put(release_due(texts, cutoff(before, look, self._wait_ms)), ctx.get_current_key())

    def _forget_looks(self, bucket: str) -> None:
        self._looks.clear()
        self._looks_made[bucket] = 0

    def _put(self, released: BucketReleased, bucket: str) -> Iterator[Row]:
        """Keep what waits on and yield what goes out."""
        if released.waiting is None:
            return
        self._spans.update(list(released.waiting))
        if not released.waiting:
            self._forget_looks(bucket)
        for request in released.requests:
            headers = dict(request_headers(orjson.loads(request.json)))
            yield Row(str(IngestKind.REQUESTS), request.trace_id, request.json.decode(), 1, headers)
        if released.children:
            yield Row(str(IngestKind.CHILD), None, None, released.children, None)
