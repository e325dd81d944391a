"""Answers that are no 200, with bodies that nobody should read."""

from __future__ import annotations

from typing import TYPE_CHECKING

from tests.faults.fault import RULES, Group
from tests.faults.rows import (
    answering,
    head,
    no_rules,
    rules_decide,
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
_SORRY = b"<html><head><title>Something went wrong</title></head></html>"


def _with_endless_body(status: str, *lines: str) -> Answer:
    return Raw(head(status, *lines), endless(b"x" * _PIECE))


STATUSES = Group(
    name="statuses",
    faults=(
        unavailable(
            "answers 404 with a body without an end",
            answering(_with_endless_body("404 Not Found")),
        ),
        unavailable(
            "answers 404 with 10 GB",
            answering(_with_endless_body("404 No", f"Content-Length: {10 * 10**9}")),
        ),
        unavailable(
            "answers 404 with a body that is cut off",
            answering(Raw(head("404 Not Found", "Content-Length: 99") + b"x")),
        ),
        unavailable(
            "answers 403 and says nothing more",
            answering(Raw(head("403 No", "Content-Length: 9"), Connection.hang)),
        ),
        unreachable(
            "answers 206, a part of the file that nobody asked for",
            answering(Reply(status=206, body=RULES)),
        ),
        unreachable("answers 407, as only a proxy may", answering(Reply(status=407))),
        unreachable(
            "answers 429 with a body without an end",
            answering(_with_endless_body("429 Too Many Requests")),
        ),
        unavailable(
            "answers 500 with a page that says “not found”",
            answering(Reply(status=500, body=_NOT_FOUND)),
        ),
        unreachable(
            "answers 500 with a page about pages that are “not found”",
            answering(Reply(status=500, body=_ABOUT_NOT_FOUND)),
        ),
        unreachable(
            "answers 500 with another page",
            answering(Reply(status=500, body=_SORRY)),
        ),
        unreachable(
            "answers 500 with a page without an end",
            answering(_with_endless_body("500 Internal Server Error")),
        ),
        unreachable(
            "answers 503 with a page that comes one byte at a time",
            answering(Raw(head("503 Later") + _SORRY[:9], dripping(b"x"))),
            deadline=1.0,
        ),
        rules_decide(
            "redirects with a body without an end",
            answering(
                Routes(
                    {
                        "/robots.txt": _with_endless_body("302 No", "Location: /a"),
                        "/a": Reply(body=RULES),
                    }
                )
            ),
        ),
        rules_decide(
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
            "answers 200 with an HTML page that says “not found”",
            answering(Reply(body=_NOT_FOUND)),
        ),
    ),
)
