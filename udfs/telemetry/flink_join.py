"""The join of a trace's spans in Flink: list state, timers, and `trace_join.release`, which holds the logic."""

from collections.abc import Iterator

from pyflink.common import Row, Types
from pyflink.datastream import KeyedProcessFunction, RuntimeContext, TimeDomain
from pyflink.datastream.state import ListState, ListStateDescriptor, ValueState, ValueStateDescriptor

from schemas.books import IngestKind
from udfs.telemetry.trace_join import Entry, Released, decode_entry, encode_entry, release
from udfs.telemetry.wall_clock import Look, arrived_by, next_look

JOINED_TYPE = Types.ROW_NAMED(
    ["kind", "trace_id", "request", "n"], [Types.STRING(), Types.STRING(), Types.STRING(), Types.LONG()]
)
# Part of the savepoint: never rename them.
SPANS_STATE, LOOKS_STATE = "waiting_spans", "looks_at_the_watermark"

TIMERS_A_WAIT = 10  # timers of one trace fall together: it is read at most so often while one wait lasts


def trace_of(row: Row) -> str:
    """The key of a row of view `waiting` (jobs/sql/ingest.sql): its trace id."""
    trace_id: str = row[0]
    return trace_id


class JoinTraces(KeyedProcessFunction):
    """Rows (trace id, Kafka timestamp in ms, waiting line), keyed by trace, to rows of `JOINED_TYPE`.

    A span waits `wait_ms` of event time, the clock being the watermark of Kafka's timestamps. Where that stands still,
    because every source idles, the wall clock ends the wait (wall_clock.py). Of each span put in one comes out, as a
    request or as part of a `child` count. One append and two timers a span; the trace is read when a timer fires.
    """

    def __init__(self, wait_ms: int) -> None:
        self._wait_ms = wait_ms
        self._step_ms = max(wait_ms // TIMERS_A_WAIT, 1)
        self._spans: ListState
        self._looks: ValueState

    def open(self, runtime_context: RuntimeContext) -> None:
        """Take hold of the state."""
        self._spans = runtime_context.get_list_state(ListStateDescriptor(SPANS_STATE, Types.STRING()))
        looks = ValueStateDescriptor(LOOKS_STATE, Types.TUPLE([Types.LONG(), Types.LONG(), Types.LONG()]))
        self._looks = runtime_context.get_state(looks)

    def process_element(self, row: Row, ctx: KeyedProcessFunction.Context) -> None:
        """One span begins to wait."""
        arrival_ms, line = row[1], row[2]
        self._spans.add(encode_entry(Entry(arrival_ms, line)))
        timers = ctx.timer_service()
        timers.register_event_time_timer(self._timer_at(arrival_ms + self._wait_ms))
        self._look_later(ctx)

    def on_timer(self, timestamp: int, ctx: KeyedProcessFunction.OnTimerContext) -> Iterator[Row]:
        """Some spans have waited long enough, by one clock or the other."""
        entries = [decode_entry(text) for text in self._spans.get() or ()]
        if not entries:
            self._looks.clear()
        elif ctx.time_domain() == TimeDomain.EVENT_TIME:
            yield from self._put(entries, release(entries, timestamp - self._wait_ms), ctx.get_current_key())
        else:
            yield from self._look(entries, ctx)

    def _timer_at(self, time_ms: int) -> int:
        return -(-time_ms // self._step_ms) * self._step_ms

    def _look_later(self, ctx: KeyedProcessFunction.Context) -> None:
        timers = ctx.timer_service()
        timers.register_processing_time_timer(self._timer_at(timers.current_processing_time() + self._wait_ms))

    def _look(self, entries: list[Entry], ctx: KeyedProcessFunction.OnTimerContext) -> Iterator[Row]:
        """Look at the watermark, and let go what has waited long enough by the wall clock if it stands still."""
        stored, timers = self._looks.value(), ctx.timer_service()
        before = None if stored is None else Look(*stored)
        look = next_look(before, timers.current_processing_time(), timers.current_watermark(), self._wait_ms)
        if look is None:
            return
        self._looks.update(tuple(look))
        released = release(entries, arrived_by(before, look, self._wait_ms))
        if released.waiting:
            self._look_later(ctx)
        yield from self._put(entries, released, ctx.get_current_key())

    def _put(self, entries: list[Entry], released: Released, trace_id: str) -> Iterator[Row]:
        """Keep what waits on and yield what goes out."""
        if not released.waiting:
            self._spans.clear()
            self._looks.clear()
        elif len(released.waiting) < len(entries):
            self._spans.update([encode_entry(entry) for entry in released.waiting])
        for request in released.requests:
            yield Row(str(IngestKind.REQUESTS), request.trace_id, request.json.decode(), 1)
        if released.children:
            yield Row(str(IngestKind.CHILD), trace_id, None, released.children)
