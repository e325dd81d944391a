"""TLS contexts with valid certificates and with all kinds of invalid ones."""

from __future__ import annotations

import ssl
from datetime import UTC, datetime
from functools import cache
from typing import Any

import trustme

_HOSTS = ("127.0.0.1", "127.0.0.2", "localhost")


@cache
def trusting() -> ssl.SSLContext:
    """For a client that trusts only our test authority."""
    context = ssl.create_default_context()
    _authority().configure_trust(context)
    return context


@cache
def valid() -> ssl.SSLContext:
    return _context_of(_issued())


@cache
def expired() -> ssl.SSLContext:
    return _context_of(_issued(not_before=_year(2001), not_after=_year(2002)))


@cache
def for_another_host() -> ssl.SSLContext:
    return _context_of(_issued("www.example.com"))


def requiring_client_certificate() -> ssl.SSLContext:
    context = _context_of(_issued())
    context.verify_mode = ssl.CERT_REQUIRED
    return context


def with_many_tickets() -> ssl.SSLContext:
    """The server sends a thousand session tickets."""
    context = _context_of(_issued())
    context.num_tickets = 1_000
    return context


@cache
def _authority() -> trustme.CA:
    return trustme.CA()


def _issued(*hosts: str, **dates: Any) -> trustme.LeafCert:  # noqa: ANN401 (of issue_cert)
    return _authority().issue_cert(*(hosts or _HOSTS), **dates)


def _year(year: int) -> datetime:
    return datetime(year, 1, 1, tzinfo=UTC)


def _context_of(certificate: trustme.LeafCert) -> ssl.SSLContext:
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    certificate.configure_cert(context)
    return context
