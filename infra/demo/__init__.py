"""`make run`: the whole pipeline on this machine, on the real trace, ending in a summary that must hold.

`python -m infra.demo` runs it; `checks.py` says what must be true, `facts.py` how it is found out.
"""
