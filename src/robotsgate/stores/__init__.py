"""Where entries live. No clock in here: whoever needs the time is handed it."""

from robotsgate.stores._base import Store
from robotsgate.stores.memory import MemoryStore

__all__ = ["MemoryStore", "Store"]
