"""What holds for every set of labels."""

import re
from random import Random

from hypothesis import given
from hypothesis import strategies as st

from tests.alert_verdicts import RULE
from udfs.alerts.fingerprint import fingerprint
from udfs.alerts.labels import alert_labels, label_names

Labels = dict[str, str]

TEXT = st.text(st.characters(exclude_categories=["Cs"]), max_size=6)
NAMES = TEXT | st.sampled_from(["severity", "exported_severity", "a.b", "a-b", "a_b", "a_b_2", "__a", "1"])
LABELS = st.dictionaries(NAMES, TEXT, max_size=6)


def without_empty(labels: dict[str, str]) -> dict[str, str]:
    return {name: value for name, value in labels.items() if value}


@given(LABELS, st.randoms())
def test_order_and_empty_labels_do_not_matter(labels: Labels, random: Random) -> None:
    names = list(labels)
    random.shuffle(names)
    shuffled = {name: labels[name] for name in names}
    assert fingerprint(labels) == fingerprint(shuffled) == fingerprint(without_empty(labels))


@given(LABELS, LABELS)
def test_fingerprints_are_equal_only_for_equal_labels(a: Labels, b: Labels) -> None:
    assert (fingerprint(a) == fingerprint(b)) is (without_empty(a) == without_empty(b))


@given(LABELS)
def test_label_names_are_valid_and_distinct(labels: Labels) -> None:
    names = label_names(labels, reserved={"severity": 0})
    assert set(names) == set(labels)
    assert len(set(names.values())) == len(names)
    assert "severity" not in names.values()
    assert all(re.fullmatch(r"(?!__)[a-zA-Z_][a-zA-Z0-9_]*", name) for name in names.values())


@given(st.sets(NAMES, max_size=5), st.data())
def test_series_of_one_monitor_have_one_fingerprint_each(names: set[str], data: st.DataObject) -> None:
    values = st.fixed_dictionaries(dict.fromkeys(sorted(names), TEXT))
    a, b = data.draw(values), data.draw(values)
    same = fingerprint(alert_labels(RULE, "m", "f", a)) == fingerprint(alert_labels(RULE, "m", "f", b))
    assert same is (a == b)
