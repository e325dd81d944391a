"""Statuses other than 200, and bodies that should not be read to the end."""

from __future__ import annotations

from typing import TYPE_CHECKING

from tests.faults.fault import RULES
from tests.faults.rows import (
    answering,
    head,
    no_rules,
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
_ABOUT_NOT_FOUND = b"<title>How to fix 404 not found errors</title><h1>Down</h1>"
_CHALLENGE = b"<html><title>Checking your browser</title></html>"
_ERROR_PAGE = b"<html><head><title>Something went wrong</title></head></html>"


def _with_endless_body(status: str, *lines: str) -> Answer:
    return Raw(head(status, *lines), endless(b"x" * _PIECE))


STATUSES = (
    unavailable(
        "returns 404 with an endless body",
        answering(_with_endless_body("404 Not Found")),
    ),
    unavailable(
        "returns 404 with 10 GB",
        answering(_with_endless_body("404 No", f"Content-Length: {10 * 10**9}")),
    ),
    unavailable(
        "returns 404 with a body that is cut off",
        raw(head("404 Not Found", "Content-Length: 99") + b"x"),
    ),
    unavailable(
        "returns 403 and nothing else",
        raw(head("403 No", "Content-Length: 9"), Connection.hang),
    ),
    unreachable(
        "returns 202 with the challenge of a bot wall",
        reply(status=202, body=_CHALLENGE),
        error="bot wall",
    ),
    rules_apply("returns 202 with the rules", reply(status=202, body=RULES)),
    unreachable(
        "returns 206, a part of the file, unasked", reply(status=206, body=RULES)
    ),
    unreachable("returns 407, which only a proxy may do", reply(status=407)),
    unreachable(
        "returns 429 with an endless body",
        answering(_with_endless_body("429 Too Many Requests")),
    ),
    unavailable(
        "returns 500 with a page that says “not found”",
        reply(status=500, body=_NOT_FOUND),
    ),
    unreachable(
        "returns 500 with a page that mentions pages “not found”",
        reply(status=500, body=_ABOUT_NOT_FOUND),
    ),
    unreachable("returns 500 with another page", reply(status=500, body=_ERROR_PAGE)),
    unreachable(
        "returns 500 with an endless page",
        answering(_with_endless_body("500 Internal Server Error")),
    ),
    unreachable(
        "returns 503 with a page that comes one byte at a time",
        raw(head("503 Later") + _ERROR_PAGE[:9], dripping(b"x")),
        deadline=4.0,
    ),
    unreachable(
        "returns 503 with a `Retry-After` of 5,000 digits",
        raw(head("503 Later", f"Retry-After: {'0' * 4_999}9")),
    ),
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
    rules_apply(
        "redirects with 10 GB",
        answering(
            Routes(
                {
                    "/robots.txt": _with_endless_body(
                        "302 No", "Location: /a", f"Content-Length: {10 * 10**9}"
                    ),
                    "/a": Reply(body=RULES),
                }
            )
        ),
    ),
    no_rules(
        "returns 200 with an HTML page that says “not found”", reply(body=_NOT_FOUND)
    ),
)
