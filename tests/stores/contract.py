"""The contract of stores, as users have it."""

from robotsgate.testing.stores import NOW, LeaseContract, StoreContract, entry_of

__all__ = ["NOW", "LeaseContract", "StoreContract", "entry_of"]
