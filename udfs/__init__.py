"""Pure mathematics and state machines, and the thin Flink functions (`flink_*.py`) over them."""
