"""The fault matrix: what a server can do wrong, and how the checker copes.

`observe` runs a `Fault`; the tests check the observation, and the page
docs/explanation/what-can-go-wrong.md has a row for each outcome.
"""
