"""The fault matrix: what a server can do wrong, and how the checker copes.

Each table row is a `Fault`. `observe` runs it; the tests check the observation, and
`python -m tests.faults` writes it into docs/explanation/what-can-go-wrong.md.
"""
