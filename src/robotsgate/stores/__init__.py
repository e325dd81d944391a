"""Keeps bytes under keys. Must never ask a clock: `now` is an argument.

Its modules may touch their file or server, but must not import `fetching`, `checking`
or what is above `checking`.
"""

from robotsgate.stores._base import Change, FetchLease, ListableStore, Store
from robotsgate.stores.memory import MemoryStore

__all__ = ["Change", "FetchLease", "ListableStore", "MemoryStore", "Store"]
