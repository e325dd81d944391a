"""The table of fuzzing targets; add a line for each new target."""

from __future__ import annotations

from typing import TYPE_CHECKING

from tests.fuzzing import (
    body,
    entry,
    headers,
    location,
    page,
    preferences,
    robotstxt,
    url,
)

if TYPE_CHECKING:
    from tests.fuzzing.target import Target

TARGETS: dict[str, Target] = {
    "robotstxt": robotstxt.TARGET,
    "headers": headers.TARGET,
    "body": body.TARGET,
    "location": location.TARGET,
    "url": url.TARGET,
    "entry": entry.TARGET,
    "html": page.HTML,
    "robots-tag": page.ROBOTS_TAG,
    "preferences": preferences.TARGET,
}
