"""Politeness: when the next request to a host may start.

These modules use only the checker and the ledger they are given, except for
`redis_ledger.py`, which contacts a server. They must not import `sync` or any package
above it.
"""
