"""Key-value stores for bytes. A store must never read a clock; callers pass `now`.

These modules may access their file or server, but must not import `fetching`,
`checking` or any package above `checking`.
"""

from robotsgate.stores._base import (
    HOST_PREFIX,
    Change,
    FetchLease,
    ListableStore,
    Store,
    TimedChange,
    TimedStore,
)
from robotsgate.stores.memory import MemoryStore

__all__ = [
    "HOST_PREFIX",
    "Change",
    "FetchLease",
    "ListableStore",
    "MemoryStore",
    "Store",
    "TimedChange",
    "TimedStore",
]
