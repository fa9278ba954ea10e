"""Incidents in Flink: a scope's transitions are held for a moment, then `udfs.alerts.incident.tick`.

Timers are of processing time, and only stand in for event time while nothing comes (`udfs.alerts.incident_clock`).
"""

import time
from collections.abc import Iterator
from dataclasses import replace

import orjson
from pyflink.common import Row, Time, Types
from pyflink.datastream import KeyedBroadcastProcessFunction, OutputTag, RuntimeContext
from pyflink.datastream.state import (
    MapState,
    MapStateDescriptor,
    StateTtlConfig,
    ValueState,
    ValueStateDescriptor,
)

from schemas.alerts import Alert, AlertState
from udfs.alerts.cause_signals import Observation
from udfs.alerts.context_store import Stored, replaces, surplus
from udfs.alerts.flink_lifecycle import BYTES, OBSERVATION
from udfs.alerts.incident import Context, Ticked, tick
from udfs.alerts.incident_clock import Clock, decode_clock, encode_clock
from udfs.alerts.incident_policy import IncidentPolicy
from udfs.alerts.incident_state import (
    Entry,
    ScopeState,
    decode_entry,
    decode_scope,
    encode_entry,
    encode_scope,
)
from udfs.process_start import process_started_ms

INCIDENT_TYPE = Types.ROW_NAMED(["incident_id", "payload"], [Types.STRING(), BYTES])
INCIDENTS = OutputTag("incidents", INCIDENT_TYPE)
# Parts of the savepoint: never rename them.
CONTEXT = MapStateDescriptor("incident_context", Types.STRING(), BYTES)
_SCOPE, _CLOCK, _ENTRIES, _HELD, _OBSERVATIONS = (
    "incident_scope",
    "incident_clock",
    "incident_entries",
    "incident_held",
    "incident_observations",
)
_VERSION_KEY = "version"
# How soon a silence takes hold of what fires already, where nothing else happens in its scope.
_RECHECK_MS = 5_000
# After a start: silences and changes are read from their topics' beginnings beside the verdicts. Counted from the
# worker's start, not from `open`, which waits for the first record: a quiet job's first page would wait for it too.
_START_HOLD_MS = 8_000
# In a storm a tick reads ten thousand alerts: wait so many times as long as the last one took before the next.
_TICK_SHARE = 2.0


class Incidents(KeyedBroadcastProcessFunction):
    """Rows of `STAGED_TYPE` keyed by scope, and broadcast rows of `CONTEXT_TYPE`, to rows of `ALERT_TYPE`.

    Notifications go to side output `INCIDENTS`. A transition costs one write; a tick reads the scope's open alerts.
    """

    def __init__(self, policy: IncidentPolicy, forget_after_days: float) -> None:
        self._policy = policy
        self._forget_ms = round(forget_after_days * 86_400_000)
        self._stored: tuple[int, Stored] = (-1, Stored())
        self._started_ms = 0
        self._last_tick_ms = 0.0

    def open(self, runtime_context: RuntimeContext) -> None:
        """Take hold of the states. Each has a time to live from the start: Flink can't add one later."""
        life = StateTtlConfig.new_builder(Time.milliseconds(self._forget_ms)).build()
        lookback_ms = round(self._policy.causes.observation_lookback_seconds * 1000)
        short_life = StateTtlConfig.new_builder(Time.milliseconds(2 * lookback_ms + 3_600_000)).build()

        def value(name: str) -> ValueState:
            descriptor = ValueStateDescriptor(name, BYTES)
            descriptor.enable_time_to_live(life)
            return runtime_context.get_state(descriptor)

        def mapping(name: str, ttl: StateTtlConfig) -> MapState:
            descriptor = MapStateDescriptor(name, Types.STRING(), BYTES)
            descriptor.enable_time_to_live(ttl)
            return runtime_context.get_map_state(descriptor)

        self._scope, self._clock = value(_SCOPE), value(_CLOCK)
        self._entries, self._held = mapping(_ENTRIES, life), mapping(_HELD, life)
        self._observations = mapping(_OBSERVATIONS, short_life)
        self._started_ms = process_started_ms()

    def process_element(self, row: Row, ctx: KeyedBroadcastProcessFunction.ReadOnlyContext) -> None:
        """Hold one transition, or remember one observation."""
        _, what, time_ms, name, payload = row
        place = f"{time_ms:016d}/{name}"
        if what == OBSERVATION:
            self._observations.put(place, bytes(payload))
            return
        self._held.put(place, bytes(payload))
        now_ms = ctx.timer_service().current_processing_time()
        hold_ms = max(self._policy.hold_seconds * 1000, _TICK_SHARE * self._last_tick_ms)
        due_ms = max(now_ms + round(hold_ms), self._started_ms + _START_HOLD_MS)
        before = self._clock_now()
        self._sleep(before, before.seen(time_ms, now_ms).waking(due_ms), ctx)

    def process_broadcast_element(self, row: Row, ctx: KeyedBroadcastProcessFunction.Context) -> None:
        """Keep a silence or a change for every scope."""
        state = ctx.get_broadcast_state(CONTEXT)
        key, payload = row[0], bytes(row[1])
        known = state.get(key)
        if not replaces(payload, None if known is None else bytes(known), key):
            return
        version = _version_of(state.get(_VERSION_KEY)) + 1
        state.put(key, payload)
        state.put(_VERSION_KEY, str(version).encode())
        if version % 1000 == 0:
            for name in surplus({found: bytes(kept) for found, kept in state.items() if found != _VERSION_KEY}):
                state.remove(name)

    def on_timer(self, timestamp: int, ctx: KeyedBroadcastProcessFunction.OnTimerContext) -> Iterator[object]:
        """Work through what is held, what is due, and what silences and changes came."""
        clock = self._clock_now()
        if clock.wake_ms != timestamp:
            return  # an earlier one has done its work
        now_ms = max(timestamp, ctx.timer_service().current_processing_time())
        clock = clock.woken(timestamp, now_ms)
        held = [bytes(payload) for payload in self._held.values()]
        until_ms = clock.event_at(now_ms) - round(self._policy.hold_seconds * 1000)
        version = _version_of(ctx.get_broadcast_state(CONTEXT).get(_VERSION_KEY))
        is_due = clock.due_ms is not None and clock.due_ms <= until_ms
        if held or is_due or (clock.is_open and version != clock.context_version):
            began = time.monotonic()
            ticked, published, is_open = self._tick([Alert.from_json(each) for each in held], until_ms, version, ctx)
            clock = replace(clock, due_ms=ticked.due_ms, is_open=is_open, context_version=version)
            for incident in ticked.incidents:
                yield INCIDENTS, Row(incident.incident_id, incident.to_json())
            for alert, payload in published:
                yield Row(alert.fingerprint, payload)
            self._last_tick_ms = (time.monotonic() - began) * 1000
        self._sleep(None, self._next_wake(clock, now_ms), ctx)

    def _tick(
        self, held: list[Alert], until_ms: int, version: int, ctx: KeyedBroadcastProcessFunction.OnTimerContext
    ) -> tuple[Ticked, list[tuple[Alert, bytes]], bool]:
        """Step the machine, keep what it made, and return that, the alerts as JSON, and whether any is open."""
        stored = self._scope.value()
        entries = {name: decode_entry(bytes(data)) for name, data in self._entries.items()}
        context = self._context(held, list(entries.values()), version, ctx)
        ticked = tick(
            ScopeState() if stored is None else decode_scope(bytes(stored)),
            entries,
            held,
            until_ms=until_ms,
            context=context,
            policy=self._policy,
        )
        published = [(alert, alert.to_json()) for alert in ticked.alerts]
        as_json = {id(alert): payload for alert, payload in published}
        self._scope.update(encode_scope(ticked.state))
        for name, entry in ticked.changed.items():
            if entry is not None:
                self._entries.put(name, encode_entry(entry, as_json.get(id(entry.alert))))
            elif name in entries:
                self._entries.remove(name)
        if held:
            self._held.clear()
        after: dict[str, Entry | None] = {**entries, **ticked.changed}
        return ticked, published, any(entry is not None and entry.is_open for entry in after.values())

    def _context(
        self, held: list[Alert], entries: list[Entry], version: int, ctx: KeyedBroadcastProcessFunction.OnTimerContext
    ) -> Context:
        """Silences and changes that can matter, and observations where an alert may be new."""
        if self._stored[0] != version:
            records = ctx.get_broadcast_state(CONTEXT).items()
            self._stored = version, Stored.of((key, bytes(kept)) for key, kept in records if key != _VERSION_KEY)
        began = [alert.active_at_ms for alert in (*held, *(entry.alert for entry in entries))]
        kept = self._stored[1].since(min(began), self._policy) if began else self._stored[1]
        firing = [alert for alert in held if alert.state is AlertState.FIRING]
        return Context(kept.silences, kept.changes, self._observed(firing))

    def _observed(self, firing: list[Alert]) -> list[Observation]:
        """What is near enough to the newly firing alerts; older ones are forgotten."""
        if not firing:
            return []
        lookback_ms = round(self._policy.causes.observation_lookback_seconds * 1000)
        oldest_ms = min(alert.updated_at_ms for alert in firing) - lookback_ms
        oldest = f"{oldest_ms:016d}"
        found = []
        for place, payload in list(self._observations.items()):
            if place < oldest:
                self._observations.remove(place)
            else:
                found.append(Observation.from_dict(orjson.loads(bytes(payload))))
        return found

    def _next_wake(self, clock: Clock, now_ms: int) -> Clock:
        if clock.is_open:
            clock = clock.waking(now_ms + _RECHECK_MS)
        if clock.due_ms is not None:
            wait_ms = clock.due_ms - clock.event_at(now_ms) + round(self._policy.hold_seconds * 1000)
            clock = clock.waking(now_ms + max(1, wait_ms))
        return clock

    def _clock_now(self) -> Clock:
        stored = self._clock.value()
        return Clock() if stored is None else decode_clock(bytes(stored))

    def _sleep(self, before: Clock | None, after: Clock, ctx: KeyedBroadcastProcessFunction.ReadOnlyContext) -> None:
        """Keep the clock, and register its timer where it has a new one."""
        if before == after:
            return
        self._clock.update(encode_clock(after))
        if after.wake_ms is not None and (before is None or before.wake_ms != after.wake_ms):
            ctx.timer_service().register_processing_time_timer(after.wake_ms)


def _version_of(stored: bytes | None) -> int:
    return 0 if stored is None else int(bytes(stored))
