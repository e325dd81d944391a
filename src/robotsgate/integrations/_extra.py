"""Says which extra brings a framework that is not installed."""

from __future__ import annotations


def missing_extra(name: str) -> ImportError:
    """The error for an integration whose extra, of the same name, is missing."""
    return ImportError(
        f"robotsgate.integrations.{name} needs the extra {name}:"
        f" pip install 'robotsgate[{name}]'"
    )
