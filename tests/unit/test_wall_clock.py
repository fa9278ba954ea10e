"""When the wall clock ends a wait."""

from udfs.telemetry.wall_clock import MAX_LOOKS, NOTHING_YET, Cutoff, Look, cutoff, next_look

WAIT_MS = 1000
RESTORED = -(2**63)  # Flink's watermark before the first


def looks(watermarks: list[int], every_ms: int = WAIT_MS) -> list[Cutoff]:
    """What goes out at each of a row of looks; looks that count for nothing are left out."""
    before: Look | None = None
    out = []
    for number, watermark in enumerate(watermarks):
        look = next_look(before, number * every_ms, watermark, WAIT_MS)
        if look is not None:
            out.append(cutoff(before, look, WAIT_MS))
            before = look
    return out


def arrivals(watermarks: list[int], every_ms: int = WAIT_MS) -> list[int]:
    return [each.arrived_by_ms for each in looks(watermarks, every_ms)]


def test_a_watermark_that_moves_ends_no_wait_until_it_has_crept_too_long() -> None:
    creeping = looks(list(range(MAX_LOOKS + 2)))
    assert {each.arrived_by_ms for each in creeping} == {NOTHING_YET}
    # What was there before the first look is overdue at the eleventh, what came after it one later.
    assert [each.overdue_look for each in creeping[-3:]] == [-1, 0, 1]


def test_a_watermark_that_stands_still_lets_go_what_came_a_wait_ago() -> None:
    assert arrivals([5, 5, 5]) == [NOTHING_YET, 0, WAIT_MS]


def test_a_span_is_let_go_at_its_third_look_and_not_before() -> None:
    assert [each.settled_look for each in looks([5, 5, 5, 5])] == [-2, -1, 0, 1]


def test_two_looks_within_one_wait_are_one() -> None:
    assert arrivals([5, 5, 5, 5], every_ms=WAIT_MS // 2) == [NOTHING_YET, 0]


def test_after_a_restart_the_watermark_first_has_to_come_back() -> None:
    assert arrivals([7, RESTORED, 9]) == [NOTHING_YET] * 3
