"""The fault matrix: what a server can do wrong, and how the checker copes.

`observe` runs a `Fault`; the tests check the observation, and `python -m tests.faults`
writes a row per outcome into docs/explanation/what-can-go-wrong.md.
"""
