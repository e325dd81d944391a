"""All faults, group by group."""

from __future__ import annotations

from tests.faults.addresses import ADDRESSES
from tests.faults.codings import CODINGS
from tests.faults.connections import CONNECTIONS, HANDSHAKES, TIMES
from tests.faults.framing import BODIES, HEADS
from tests.faults.ftp import FTP
from tests.faults.redirects import REDIRECTS
from tests.faults.statuses import STATUSES
from tests.faults.stores import STORES

GROUPS = (
    CONNECTIONS,
    TIMES,
    HANDSHAKES,
    HEADS,
    BODIES,
    STATUSES,
    REDIRECTS,
    ADDRESSES,
    CODINGS,
    STORES,
    FTP,
)
"""In page order."""
