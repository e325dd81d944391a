"""TLS contexts with valid certificates and with all kinds of invalid ones."""

from __future__ import annotations

import ssl
from datetime import UTC, datetime
from functools import cache

import trustme

_PAST_START = datetime(2001, 1, 1, tzinfo=UTC)
_PAST_END = datetime(2002, 1, 1, tzinfo=UTC)
_FUTURE_START = datetime(2090, 1, 1, tzinfo=UTC)
_FUTURE_END = datetime(2091, 1, 1, tzinfo=UTC)
_HOSTS = ("127.0.0.1", "127.0.0.2", "localhost")


@cache
def trusting() -> ssl.SSLContext:
    """For a client that trusts only our test authority."""
    context = ssl.create_default_context()
    _authority().configure_trust(context)
    return context


@cache
def valid() -> ssl.SSLContext:
    """For a server with a valid certificate."""
    return _server_context(_authority().issue_cert(*_HOSTS))


@cache
def expired() -> ssl.SSLContext:
    """For a server whose certificate has expired."""
    return _server_context(
        _authority().issue_cert(*_HOSTS, not_before=_PAST_START, not_after=_PAST_END)
    )


@cache
def not_valid_yet() -> ssl.SSLContext:
    """For a server whose certificate is not valid yet."""
    return _server_context(
        _authority().issue_cert(
            *_HOSTS, not_before=_FUTURE_START, not_after=_FUTURE_END
        )
    )


@cache
def for_another_host() -> ssl.SSLContext:
    """For a server with a certificate for a different host."""
    return _server_context(_authority().issue_cert("www.example.com"))


@cache
def from_another_authority() -> ssl.SSLContext:
    """For a server with a certificate from an unknown authority."""
    return _server_context(trustme.CA().issue_cert(*_HOSTS))


@cache
def self_signed() -> ssl.SSLContext:
    """For a server with a self-signed certificate."""
    authority = trustme.CA()
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    with (
        authority.cert_pem.tempfile() as certificate,
        authority.private_key_pem.tempfile() as key,
    ):
        context.load_cert_chain(certificate, key)
    return context


@cache
def requiring_client_certificate() -> ssl.SSLContext:
    """For a server that requires a client certificate."""
    context = _server_context(_authority().issue_cert(*_HOSTS))
    context.verify_mode = ssl.CERT_REQUIRED
    return context


@cache
def with_many_tickets() -> ssl.SSLContext:
    """For a server that sends a thousand session tickets."""
    context = _server_context(_authority().issue_cert(*_HOSTS))
    context.num_tickets = 1_000
    return context


@cache
def _authority() -> trustme.CA:
    return trustme.CA()


def _server_context(certificate: trustme.LeafCert) -> ssl.SSLContext:
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    certificate.configure_cert(context)
    return context
