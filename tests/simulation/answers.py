"""The answers of the simulated servers, and what each one means.

Each answer is listed together with its meaning, so that the simulation never parses a
header or a robots.txt itself.
"""

from __future__ import annotations

import enum
import gzip
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

from robotsgate import Reason
from robotsgate.caching._outcome import FailureKind, Outcome

if TYPE_CHECKING:
    from random import Random

    from robotsgate import Policy

    from .network import Attempt

Headers = tuple[tuple[str, str], ...]

HOUR = 3_600.0
DAY = 24 * HOUR


class End(enum.Enum):
    """How the last request of an attempt fails."""

    CONNECT = "ConnectError"
    NAME = "gaierror"
    READ_TIMEOUT = "ReadTimeout"
    PROTOCOL = "RemoteProtocolError"
    POOL = "PoolTimeout"
    BODY_BREAKS = "ReadError in the body"
    LOOP = "a redirect to itself"
    NOWHERE = "a redirect without a Location"
    SCHEME = "a redirect to ftp"
    PRIVATE = "a redirect to a private address"


@dataclass(frozen=True, kw_only=True)
class Rulebook:
    """A robots.txt and its verdicts by path, worked out by hand."""

    body: bytes
    verdicts: dict[str, tuple[bool, Reason]]
    crawl_delay: float | None = None


_NO_GROUP = (True, Reason.NO_GROUP)
_NO_RULE = (True, Reason.NO_MATCHING_RULE)
_ALLOWED = (True, Reason.ALLOWED_BY_RULE)
_DISALLOWED = (False, Reason.DISALLOWED_BY_RULE)

RULEBOOKS = {
    "empty": Rulebook(body=b"", verdicts={"/public": _NO_GROUP, "/private": _NO_GROUP}),
    "page": Rulebook(
        body=b"<!doctype html>\n<title>Welcome</title>\n<p>Disallow everything: no\n",
        verdicts={"/public": _NO_GROUP, "/private": _NO_GROUP},
    ),
    "nothing": Rulebook(
        body=b"User-agent: *\r\nDisallow: /\r\nSitemap: https://one.test/map\r\n",
        verdicts={"/public": _DISALLOWED, "/private": _DISALLOWED},
    ),
    "private": Rulebook(
        body=b"User-agent: *\nCrawl-delay: 7\nDisallow: /private\n",
        verdicts={"/public": _NO_RULE, "/private": _DISALLOWED},
        crawl_delay=7.0,
    ),
    "but public": Rulebook(
        body=b"\xef\xbb\xbfUser-agent: *\nDisallow: /\nAllow: /public\n",
        verdicts={"/public": _ALLOWED, "/private": _DISALLOWED},
    ),
    "by name": Rulebook(
        body=b"user-agent: examplebot\ndisallow: /public\n\n"
        b"user-agent: *\ncrawl-delay: 3\ndisallow: /\n",
        verdicts={"/public": _DISALLOWED, "/private": _NO_RULE},
    ),
}


def _lines(**headers: str) -> Headers:
    return tuple((name.replace("_", "-"), value) for name, value in headers.items())


_LOCATION = _lines(location="/moved")
_ABSURD = "9" * 40
_NOT_FOUND = b"<html><title>Page Not Found</title>"
_END_OF_TIME = "Fri, 31 Dec 9999 23:59:59 GMT"

# "@60" is the HTTP date 60 seconds after the request.
_LIFETIMES: list[Headers] = [
    (),
    _lines(cache_control="max-age=600"),
    _lines(cache_control="max-age=1800", age="7200"),
    _lines(cache_control=f"max-age={_ABSURD}"),
    _lines(cache_control="No-Store"),
    _lines(cache_control="max-age=soon"),
    _lines(expires="@7200", date="@0"),
    _lines(expires="@7200"),
    _lines(expires="@-7200"),
    _lines(expires=_END_OF_TIME),
]
_WAITS: list[Headers] = [
    *((), ()),
    *(_lines(retry_after=value) for value in ("120", "0", "1, 18000", "in a while")),
    *(_lines(retry_after=value) for value in ("@3600", "@-3600", _ABSURD)),
]


@dataclass(frozen=True, kw_only=True, repr=False)
class Answer:
    """How an origin answers until further notice."""

    name: str
    status: int | None = None
    rulebook: str | None = None
    body: bytes = b""
    coding: str | None = None
    headers: Headers = ()
    redirects: int = 0
    is_elsewhere: bool = False
    end: End | None = None

    def __repr__(self) -> str:
        headers = ", ".join(f"{name}: {value}" for name, value in self.headers)
        host = " to another host" if self.is_elsewhere else ""
        hops = f" after {self.redirects} redirects{host}" if self.redirects else ""
        return self.name + hops + (f" [{headers}]" if headers else "")


def _outage(name: str, *, status: int | None = None, end: End | None = None) -> Answer:
    return Answer(name=name, status=status, end=end)


def _rules(name: str) -> Answer:
    return Answer(
        name=f"200 {name}",
        status=200,
        rulebook=name,
        body=RULEBOOKS[name].body,
    )


_PACKED = gzip.compress(RULEBOOKS["private"].body, mtime=0)
_GZIPPED = replace(
    _rules("private"), name="200 private, gzip", body=_PACKED, coding="gzip"
)

PLAIN = {answer.name: answer for answer in map(_rules, RULEBOOKS)}

_GOOD = [
    *PLAIN.values(),
    _GZIPPED,
    replace(_rules("empty"), name="204", status=204),
]
_MISSING = [
    Answer(name="404", status=404),
    Answer(name="410", status=410),
    Answer(name="401", status=401),
    Answer(name="403", status=403),
]
_BROKEN = [
    Answer(name=name, status=302, end=end)
    for name, end in (
        ("redirect loop", End.LOOP),
        ("redirect to nowhere", End.NOWHERE),
        ("redirect to ftp", End.SCHEME),
    )
]
_FAILING = [
    Answer(name="429", status=429),
    _outage("500", status=500),
    _outage("503", status=503),
    _outage("503", status=503),
    _outage("600", status=600),
    _outage("304", status=304),
    replace(_outage("304 with a Location", status=304), headers=_LOCATION),
    _outage("407", status=407),
    replace(_rules("by name"), name="206 by name", status=206, rulebook=None),
    *(
        Answer(name=f"{status} that says not found", status=status, body=_NOT_FOUND)
        for status in (500, 500, 503)
    ),
    Answer(
        name="500 that mentions not found",
        status=500,
        body=b"<html><title>How to fix Page Not Found</title><p>Page Not Found",
    ),
]
_DEAD = [
    _outage("connection refused", end=End.CONNECT),
    _outage("unknown name", end=End.NAME),
    _outage("read timeout", end=End.READ_TIMEOUT), _outage("no HTTP", end=End.PROTOCOL),
    _outage("connection lost in the body", end=End.BODY_BREAKS),
    replace(_outage("broken gzip"), body=b"no gzip at all", coding="gzip"),
    replace(_outage("gzip cut off"), body=_PACKED[:-12], coding="gzip"),
    replace(_outage("coding br"), body=b"User-agent: *\n", coding="br"),
]  # fmt: skip
_OWN_FAULT = Answer(name="pool timeout", end=End.POOL)
_REFUSED = Answer(name="redirect to a private address", end=End.PRIVATE)

ANSWERS = [*_GOOD, *_MISSING, *_BROKEN, *_FAILING, *_DEAD, _OWN_FAULT]
"""Every kind of answer, without random headers and redirects."""

_KINDS = [_GOOD, _MISSING, _BROKEN, _FAILING, _DEAD, [_OWN_FAULT], [_REFUSED]]
_WEIGHTS = [12, 3, 2, 6, 8, 1, 1]

_HOPS = [*[0] * 12, 1, 1, 2, 5, 5, 6]


def random_answer(rng: Random) -> Answer:
    """An answer with headers and redirects: mostly good answers and outages."""
    kind = rng.choices(_KINDS, _WEIGHTS)[0]
    answer = rng.choice(kind)
    hops = rng.choice(_HOPS) if kind in (_GOOD, _MISSING, _DEAD) else 0
    if kind is _FAILING and not answer.headers:
        headers = rng.choice(_WAITS + _LIFETIMES[:3])
    elif kind in (_GOOD, _MISSING):
        headers = rng.choice(_LIFETIMES)
    else:
        headers = answer.headers
    return replace(
        answer,
        headers=headers,
        redirects=hops,
        is_elsewhere=bool(hops) and rng.random() < 0.5,
    )


def random_outage(rng: Random) -> Answer:
    """A random answer that means unreachable."""
    return rng.choice([*_DEAD, *_FAILING])


def outcome_of(attempt: Attempt, policy: Policy) -> Outcome:
    """The outcome that `attempt` must have for the checker."""
    answer = attempt.answer
    if answer.redirects > policy.max_redirects or answer.end is End.LOOP:
        return Outcome(has_too_many_redirects=True, status=302, error=answer.name)
    if answer.end is End.PRIVATE:
        return Outcome(failure=FailureKind.ADDRESS_REFUSED, error=answer.name)
    if answer.end is End.POOL:
        return Outcome(failure=FailureKind.LOCAL, error=answer.name)
    if answer.status is None:
        return Outcome(failure=FailureKind.OTHER, error=answer.name)
    return Outcome(status=answer.status, headers=attempt.headers, body=answer.body)
