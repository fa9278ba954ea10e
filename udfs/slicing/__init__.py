"""From requests as bytes to the slices of every monitor: one call for a batch, pure, without an engine."""
