"""The join of a trace's spans in Flink: list state, timers, and `trace_join.release`, which holds the logic."""

from collections.abc import Iterator

from pyflink.common import Row, Types
from pyflink.datastream import KeyedProcessFunction, RuntimeContext, TimeDomain
from pyflink.datastream.state import ListState, ListStateDescriptor, ValueState, ValueStateDescriptor

from schemas.books import IngestKind
from udfs.telemetry.trace_join import Entry, Released, decode_entry, encode_entry, release

JOINED_TYPE = Types.ROW_NAMED(
    ["kind", "trace_id", "request", "n"], [Types.STRING(), Types.STRING(), Types.STRING(), Types.LONG()]
)
# Part of the savepoint: never rename them.
SPANS_STATE, LOOKS_STATE = "waiting_spans", "looks_at_the_watermark"

TIMERS_A_WAIT = 10  # timers of one trace fall together: it is read at most so often while one wait lasts
MAX_LOOKS = 10


def trace_of(row: Row) -> str:
    """The key of a row of view `waiting` (jobs/sql/ingest.sql): its trace id."""
    trace_id: str = row[0]
    return trace_id


class JoinTraces(KeyedProcessFunction):
    """Rows (trace id, Kafka timestamp in ms, waiting line), keyed by trace, to rows of `JOINED_TYPE`.

    A span waits `wait_ms` of event time, the clock being the watermark of Kafka's timestamps. Where that stands still,
    because every source idles, the wall clock ends the wait: a look every `wait_ms`, and what waits goes out when the
    watermark is where it was at the look before, or after MAX_LOOKS looks. Of each span put in, one comes out, as a
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
        looks = ValueStateDescriptor(LOOKS_STATE, Types.TUPLE([Types.LONG(), Types.INT()]))
        self._looks = runtime_context.get_state(looks)

    def process_element(self, row: Row, ctx: KeyedProcessFunction.Context) -> None:
        """One span begins to wait."""
        arrival_ms, line = row[1], row[2]
        self._spans.add(encode_entry(Entry(arrival_ms, line)))
        timers = ctx.timer_service()
        timers.register_event_time_timer(self._timer_at(arrival_ms + self._wait_ms))
        timers.register_processing_time_timer(self._timer_at(timers.current_processing_time() + self._wait_ms))

    def on_timer(self, timestamp: int, ctx: KeyedProcessFunction.OnTimerContext) -> Iterator[Row]:
        """Some spans have waited long enough, by one clock or the other."""
        entries = [decode_entry(text) for text in self._spans.get() or ()]
        if not entries:
            self._looks.clear()
        elif ctx.time_domain() == TimeDomain.EVENT_TIME:
            yield from self._put(entries, release(entries, timestamp - self._wait_ms), ctx.get_current_key())
        elif self._stands_still(ctx):
            yield from self._put(entries, release(entries, None), ctx.get_current_key())

    def _timer_at(self, time_ms: int) -> int:
        return -(-time_ms // self._step_ms) * self._step_ms

    def _stands_still(self, ctx: KeyedProcessFunction.OnTimerContext) -> bool:
        """Look at the watermark; if it has moved since the last look, look again later."""
        timers = ctx.timer_service()
        watermark = timers.current_watermark()
        before, looks = self._looks.value() or (None, 0)
        if before == watermark or looks >= MAX_LOOKS:
            return True
        self._looks.update((watermark, looks + 1))
        timers.register_processing_time_timer(self._timer_at(timers.current_processing_time() + self._wait_ms))
        return False

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
