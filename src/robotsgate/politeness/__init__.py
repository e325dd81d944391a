"""Decides when the next request to a host may start.

Its modules touch only the checker and the ledger that they were given, except that
`redis_ledger.py` touches a server, and must not import `sync` or what is above it.
"""
