"""Scorers: a batch of requests in, named scores out (docs/scorers.md). `torch` is imported in this package only."""
