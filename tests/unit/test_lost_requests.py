"""Which places are looked at for records that were lost, and the dead letters made of what is found there."""

from collections.abc import Mapping

import orjson
import pytest

from udfs.kafka_records import Places, Record
from udfs.lost_requests import LOOK_BACK_RECORDS, NONE_SEEN, LostRequest

GOOD, BAD = Record(b'{"event_time_ms": 1}', 5), Record(b"{", 6)


def letters(lost: LostRequest, records: Mapping[tuple[int, int], Record]) -> list[tuple[int, str, int]]:
    bodies = [orjson.loads(letter) for letter in lost.dead_letters(records, "requests")]
    assert all(body["job"] == "drift" and body["partition"] == lost.partition for body in bodies)
    return [(body["offset"], body["reason"], body["length"]) for body in bodies]


def test_a_late_request_alone_is_fetched_alone() -> None:
    lost = LostRequest(1, 8, 9, "late", "late for chat", 77)
    assert lost.places == [Places(1, 9, 10)]
    (letter,) = (orjson.loads(value) for value in lost.dead_letters({(1, 9): GOOD}, "requests"))
    assert (letter["detail"], letter["event_time_ms"], letter["kafka_timestamp_ms"]) == ("late for chat", 77, 5)
    assert letter["length"] == len(GOOD.payload or b"")


def test_what_the_topic_no_longer_holds_is_said_so() -> None:
    lost = LostRequest(0, 8, 9, "late", "late for chat", 77)
    (letter,) = (orjson.loads(value) for value in lost.dead_letters({}, "requests"))
    assert letter["detail"] == "late for chat; the topic no longer holds its bytes"
    assert (letter["length"], letter["kafka_timestamp_ms"]) == (0, None)


def test_every_record_in_a_gap_was_skipped() -> None:
    lost = LostRequest(0, 4, 9, None, None, None)
    assert lost.places == [Places(0, 5, 9)]
    found = {(0, 5): BAD, (0, 6): Record(None, 3), (0, 8): GOOD}  # 7 is a transaction marker
    assert letters(lost, found) == [(5, "malformed_json", 1), (6, "no_value", 0), (8, "malformed_json", 20)]


def test_a_gap_of_markers_gives_no_letter() -> None:
    assert letters(LostRequest(0, 4, 9, None, None, None), {}) == []


def test_a_request_may_be_late_after_a_gap() -> None:
    lost = LostRequest(0, 4, 6, "late", "x", 1)
    assert lost.places == [Places(0, 5, 7)]
    assert letters(lost, {(0, 5): BAD, (0, 6): GOOD}) == [(5, "malformed_json", 1), (6, "late", 20)]


def test_the_first_request_looks_back_to_the_last_readable_record() -> None:
    lost = LostRequest(0, NONE_SEEN, 5, None, None, None)
    assert lost.places == [Places(0, 0, 5)]
    found = {(0, 0): BAD, (0, 1): GOOD, (0, 2): BAD, (0, 4): Record(b"[]", 1)}
    assert letters(lost, found) == [(2, "malformed_json", 1), (4, "malformed_json", 2)]


def test_the_look_back_is_bounded() -> None:
    lost = LostRequest(0, NONE_SEEN, 10 * LOOK_BACK_RECORDS, None, None, None)
    assert lost.places == [Places(0, 9 * LOOK_BACK_RECORDS, 10 * LOOK_BACK_RECORDS)]


def test_at_the_head_of_a_partition_there_is_nothing_to_look_at() -> None:
    assert LostRequest(0, NONE_SEEN, 0, None, None, None).places == []


@pytest.mark.parametrize(
    ("columns", "lost"),
    [
        ((0, 4, 9, None, None, None), LostRequest(0, 4, 9, None, None, None)),
        ((1, -1, 9, "late", "x", "17"), LostRequest(1, NONE_SEEN, 9, "late", "x", 17)),
        ((1, -1, 9, "bad_time", "x", None), LostRequest(1, NONE_SEEN, 9, "bad_time", "x", None)),
    ],
)
def test_it_is_built_from_a_row(columns: tuple[object, ...], lost: LostRequest) -> None:
    assert LostRequest.from_columns(*columns) == lost  # type: ignore[arg-type]
