"""The access results: what a fetch of a robots.txt means (RFC 9309 §2.3.1)."""

from __future__ import annotations

import enum


class AccessResult(enum.Enum):
    """The access results of RFC 9309 §2.3.1, and two of our own.

    Redirects (§2.3.1.2) are followed and so end in one of these.
    """

    SUCCESSFUL = "successful"
    """The file was fetched; its rules decide (§2.3.1.1)."""

    UNAVAILABLE = "unavailable"
    """There is no file; everything is allowed (§2.3.1.3)."""

    UNREACHABLE = "unreachable"
    """The server or the network failed; everything is disallowed (§2.3.1.4)."""

    RESTRICTED = "restricted"
    """The policy takes the answer for "keep out"; everything is disallowed.

    RFC 9309 does not have it. `Policy.strict()` counts 401 and 403 so, which the
    standard counts as unavailable; no other preset uses it.
    """

    REFUSED = "refused"
    """The address guard refused all addresses; everything is disallowed.

    RFC 9309 does not have it. /robots.txt itself is disallowed as well.
    """
