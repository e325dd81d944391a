"""Reads the files that a caller gives in place of the robots.txt of origins."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING

from robotsgate.robotstxt._robots_txt import RobotsTxt
from robotsgate.urls._origin import Origin

if TYPE_CHECKING:
    from robotsgate.robotstxt._dialect import Dialect


def files_by_origin(
    overrides: object, *, dialect: Dialect, max_bytes: int
) -> dict[str, RobotsTxt]:
    """The files of `overrides`, parsed, by the key of the origin.

    Args:
        overrides: files by a URL of the origin; `None` for none.
        dialect: how the checker reads files.
        max_bytes: how many bytes of a file count, unless it is parsed already.

    Raises:
        TypeError: `overrides` is not a mapping, or a file is neither RobotsTxt, bytes
            nor str.
        ValueError: a key names no origin, or the same one as another key, or a
            RobotsTxt is of another dialect.
    """
    if not isinstance(overrides, Mapping | None):
        raise TypeError(f"expected overrides as a mapping, got {overrides!r}")
    files: dict[str, RobotsTxt] = {}
    for url, file in (overrides or {}).items():
        origin = str(Origin.from_url(url))
        if origin in files:
            raise ValueError(f"expected one override for {origin!r}, got two")
        if isinstance(file, bytes | str):
            files[origin] = RobotsTxt.parse(file, dialect=dialect, max_bytes=max_bytes)
        elif not isinstance(file, RobotsTxt):
            raise TypeError(
                f"expected the override for {origin!r} as RobotsTxt, bytes or str,"
                f" got {file!r}"
            )
        elif file.dialect is not dialect:
            raise ValueError(
                f"expected the override for {origin!r} in {dialect}, got {file.dialect}"
            )
        else:
            files[origin] = file
    return files
