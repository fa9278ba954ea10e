"""Quiet, measured (spec A7): false alarms, missed incidents and delay, static thresholds and ours, on labelled data.

`incidents` says what is injected and when, `replayed` makes days of requests of the real trace with them, `judged` runs
the monitors and the alert lifecycle over these, `static_rule` is the usual fixed thresholds, `nab` reads labelled
series, `score` counts. docs/quiet.md has the figures.
"""
