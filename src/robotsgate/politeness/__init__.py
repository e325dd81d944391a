"""Politeness: when the next request to a host may start.

These modules use only the checker, the ledger and the store they are given. They must
not import `sync` or any package above it.
"""
