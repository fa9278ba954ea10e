"""Reads OpenSLO v1: documents, then what each of their kinds means to Slacktide. docs/slos.md has the whole dialect."""
