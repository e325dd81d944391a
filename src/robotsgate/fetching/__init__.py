"""Fetches a robots.txt; failures are outcomes, not exceptions.

These modules may use the network, but must not import `stores`, `checking` or any
package above `checking`. The public names are for authors of fetchers and wrappers.
"""

from robotsgate.caching._hops import CodingError
from robotsgate.fetching._body import Body, read_into
from robotsgate.fetching._fetcher import (
    NEVER_SENT,
    as_pairs,
    counts_as_public,
    failure_kind,
    has_left_origin,
    passes_unasked,
    sent_url,
)

__all__ = [
    "NEVER_SENT",
    "Body",
    "CodingError",
    "as_pairs",
    "counts_as_public",
    "failure_kind",
    "has_left_origin",
    "passes_unasked",
    "read_into",
    "sent_url",
]
