"""Torch scorers. Empty until the issue that builds them; `torch` is imported in this package only."""
