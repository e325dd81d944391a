"""Turns entries into the octets that a store keeps, and back."""

from __future__ import annotations

import logging
from typing import TYPE_CHECKING

from robotsgate.caching._codec import (
    CodecError,
    UnknownVersionError,
    decoded,
    encoded,
)
from robotsgate.errors import StoreError

if TYPE_CHECKING:
    from robotsgate.caching._entry import Entry

_LOGGER = logging.getLogger("robotsgate.stores")


def octets_of(entry: Entry) -> bytes:
    """`entry` as octets.

    Raises:
        StoreError: a number of it is out of range.
    """
    try:
        return encoded(entry)
    except CodecError as error:
        raise StoreError(str(error)) from error


class EntryReader:
    """Reads what one store holds."""

    def __init__(self, place: str) -> None:
        """Read what is in `place`, a name for errors and the log."""
        self._place = place
        self._has_told_version = False

    def entry(self, octets: bytes | None, origin: str) -> Entry | None:
        """The entry that `octets` are; `None` where there is none of this version.

        Of another version it is told once.

        Raises:
            StoreError: the octets are damaged, or of another origin.
        """
        if octets is None:
            return None
        try:
            return decoded(octets, origin=origin)
        except UnknownVersionError as error:
            if not self._has_told_version:
                self._has_told_version = True
                _LOGGER.warning(
                    "%s: %s; such entries are fetched anew", self._place, error
                )
            return None
        except CodecError as error:
            raise StoreError(f"{self._place}: {error}") from error
