"""The one status vocabulary. Nothing but `ok` carries figures, and nothing but `ok` is ever shown as a pass."""

from enum import StrEnum


class Status(StrEnum):
    """Why a judged window has, or has not, a figure."""

    OK = "ok"
    NO_DATA = "no_data"
    INSUFFICIENT_DATA = "insufficient_data"
    LOW_TRAFFIC = "low_traffic"
    INVALID = "invalid"
    JUDGE_UNQUALIFIED = "judge_unqualified"
    INCONCLUSIVE = "inconclusive"
