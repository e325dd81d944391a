"""Statuses other than 200, and bodies that should not be read to the end."""

from __future__ import annotations

from typing import TYPE_CHECKING

from tests.faults.fault import RULES
from tests.faults.rows import (
    answering,
    head,
    raw,
    reply,
    rules_apply,
    unavailable,
    unreachable,
)
from tests.servers.answers import Raw, Reply, Routes, dripping, endless
from tests.servers.loopback import Connection

if TYPE_CHECKING:
    from tests.servers.loopback import Answer

_PIECE = 16_384

_NOT_FOUND = b"<html><head><title>404 Page not found</title></head></html>"
_CHALLENGE = b"<html><title>Checking your browser</title></html>"
_ERROR_PAGE = b"<html><head><title>Something went wrong</title></head></html>"


def _with_endless_body(status: str, *lines: str) -> Answer:
    return Raw(head(status, *lines), endless(b"x" * _PIECE))


STATUSES = (
    unavailable("returns 404 with an endless body",
        answering(_with_endless_body("404 Not Found"))),
    unavailable("returns 403 and nothing else",
        raw(head("403 No", "Content-Length: 9"), Connection.hang)),
    unreachable("returns 202 with the challenge of a bot wall",
        reply(status=202, body=_CHALLENGE), error="bot wall"),
    unavailable("returns 500 with a page that says “not found”",
        reply(status=500, body=_NOT_FOUND)),
    unreachable("returns 503 with a page that comes one byte at a time",
        raw(head("503 Later") + _ERROR_PAGE[:9], dripping(b"x")), deadline=4.0),
    unreachable("returns 503 with a `Retry-After` of 5,000 digits",
        raw(head("503 Later", f"Retry-After: {'0' * 4_999}9"))),
    rules_apply(
        "redirects with an endless body",
        answering(
            Routes(
                {
                    "/robots.txt": _with_endless_body("302 No", "Location: /a"),
                    "/a": Reply(body=RULES),
                }
            )
        ),
    ),
)  # fmt: skip
