"""The fault matrix: what a server can do wrong, and what it comes to.

Each row of the tables is a `Fault`; one function observes it; what was observed is
tested, and written into docs/explanation/what-can-go-wrong.md.
"""
