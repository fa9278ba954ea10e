"""The dead man (spec A8): an alert that arrives when the monitor itself is blind. `dead_man` puts it together."""
