"""Experiments: is traffic split as planned, and does each user stay in one arm (spec E1)? Pure, without an engine."""
