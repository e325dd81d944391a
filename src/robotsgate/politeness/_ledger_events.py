"""The events that a ledger of a fleet gives to its `on_event` callback."""

from __future__ import annotations

from dataclasses import dataclass

from robotsgate.checking._listener import Event


@dataclass(frozen=True, slots=True, kw_only=True)
class LedgerFailed(Event):
    """A ledger does not reach its server; from now on this process goes on alone.

    `LedgerReturned` follows when the server answers again.

    Attributes:
        error: what went wrong.
    """

    error: Exception


@dataclass(frozen=True, slots=True, kw_only=True)
class LedgerReturned(Event):
    """A ledger reaches its server again, after `LedgerFailed`.

    Attributes:
        elapsed_seconds: for how long this process was alone, ≥ 0.
    """

    elapsed_seconds: float


LedgerEvent = LedgerFailed | LedgerReturned
