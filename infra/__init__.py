"""The embedded stack, replay and the `slacktide` command line."""
