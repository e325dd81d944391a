"""Where entries live. No clock in here: whoever needs the time is handed it."""

from robotsgate.stores._base import FetchLease, Store
from robotsgate.stores.memory import MemoryStore

__all__ = ["FetchLease", "MemoryStore", "Store"]
