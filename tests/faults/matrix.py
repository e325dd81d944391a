"""All faults, group by group."""

from __future__ import annotations

from tests.faults.addresses import ADDRESSES
from tests.faults.codings import CODINGS
from tests.faults.connections import CONNECTIONS, HANDSHAKES, TIMES
from tests.faults.fault import Group
from tests.faults.framing import BODIES, HEADS
from tests.faults.ftp import FTP
from tests.faults.redirects import REDIRECTS
from tests.faults.statuses import STATUSES
from tests.faults.stores import STORES

GROUPS = (
    Group("connections", CONNECTIONS),
    Group("times", TIMES),
    Group("handshakes", HANDSHAKES),
    Group("heads", HEADS),
    Group("bodies", BODIES),
    Group("statuses", STATUSES),
    Group("redirects", REDIRECTS),
    Group("addresses", ADDRESSES),
    Group("codings", CODINGS),
    Group("stores", STORES),
    Group("ftp", FTP),
)
"""In page order."""
