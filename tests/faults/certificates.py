"""Certificates for servers that should be trusted, and for those that should not."""

from __future__ import annotations

import ssl
from datetime import UTC, datetime
from functools import cache

import trustme

_LONG_AGO = datetime(2001, 1, 1, tzinfo=UTC)
_LONG_SINCE = datetime(2002, 1, 1, tzinfo=UTC)
_FAR_AHEAD = datetime(2090, 1, 1, tzinfo=UTC)
_FARTHER_AHEAD = datetime(2091, 1, 1, tzinfo=UTC)
_HOSTS = ("127.0.0.1", "127.0.0.2", "localhost")


@cache
def trusting() -> ssl.SSLContext:
    """For a client that trusts our authority and nobody else."""
    context = ssl.create_default_context()
    _authority().configure_trust(context)
    return context


@cache
def valid() -> ssl.SSLContext:
    """For a server that has nothing to hide."""
    return _serving(_authority().issue_cert(*_HOSTS))


@cache
def expired() -> ssl.SSLContext:
    """For a server that nobody looks after."""
    return _serving(
        _authority().issue_cert(*_HOSTS, not_before=_LONG_AGO, not_after=_LONG_SINCE)
    )


@cache
def not_valid_yet() -> ssl.SSLContext:
    """For a server that is ahead of its time."""
    return _serving(
        _authority().issue_cert(
            *_HOSTS, not_before=_FAR_AHEAD, not_after=_FARTHER_AHEAD
        )
    )


@cache
def for_another_host() -> ssl.SSLContext:
    """For a server with somebody else's certificate."""
    return _serving(_authority().issue_cert("www.example.com"))


@cache
def of_another_authority() -> ssl.SSLContext:
    """For a server that is vouched for by nobody known."""
    return _serving(trustme.CA().issue_cert(*_HOSTS))


@cache
def self_signed() -> ssl.SSLContext:
    """For a server that vouches for itself."""
    itself = trustme.CA()
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    with (
        itself.cert_pem.tempfile() as certificate,
        itself.private_key_pem.tempfile() as key,
    ):
        context.load_cert_chain(certificate, key)
    return context


@cache
def asking_for_a_certificate() -> ssl.SSLContext:
    """For a server that wants to know its clients."""
    context = _serving(_authority().issue_cert(*_HOSTS))
    context.verify_mode = ssl.CERT_REQUIRED
    return context


@cache
def with_very_many_tickets() -> ssl.SSLContext:
    """For a server that keeps its clients busy."""
    context = _serving(_authority().issue_cert(*_HOSTS))
    context.num_tickets = 1_000
    return context


@cache
def _authority() -> trustme.CA:
    return trustme.CA()


def _serving(certificate: trustme.LeafCert) -> ssl.SSLContext:
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    certificate.configure_cert(context)
    return context
