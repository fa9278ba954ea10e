"""What one alarm is: the onset of an episode, not each drifted window of it.

An episode begins with a drifted window and ends when `quiet_windows` successive windows were judged and had not
drifted. A window that was not judged, or is missing, is neither: it begins nothing, and the quiet windows before it no
longer count. The alert lifecycle (`udfs.alerts.lifecycle`) does exactly this with `firing_after_windows: 1` and
`resolved_after_windows` the number of quiet windows (tested).

The number of quiet windows is the overlap, window / slide: after so many, the newest window shares no record with the
last drifted one, so the next onset rests on new evidence. This is runs declustering with a run length of one window
(Smith & Weissman, "Estimating the extremal index", J. R. Stat. Soc. B 56, 1994).
"""

from collections.abc import Iterable


def quiet_windows(overlap: int) -> int:
    """Return how many quiet windows end an episode of windows that each share records with `overlap` - 1 others.

    >>> quiet_windows(10)
    10
    """
    return overlap


def onsets(drifted: Iterable[bool | None], quiet: int) -> list[int]:
    """Return the positions of the windows that begin an episode, in the order of time; None is a window not judged.

    O(windows) time.

    >>> onsets([True, True, False, True, False, False, True], quiet=2)
    [0, 6]
    """
    found: list[int] = []
    is_open, quiet_so_far = False, 0
    for position, has_drifted in enumerate(drifted):
        if has_drifted and not is_open:
            found.append(position)
            is_open = True
        quiet_so_far = quiet_so_far + 1 if has_drifted is False else 0
        if quiet_so_far >= quiet:
            is_open = False
    return found
