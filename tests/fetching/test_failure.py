"""Which kind of failure an exception becomes, and its error text."""

from __future__ import annotations

import errno
import http.client
import os
import socket
import ssl
import urllib.error
from typing import Any

import aiohttp
import anyio
import curl_cffi.requests.exceptions as curl
import httpcore
import httpx
import httpx2
import impit
import pytest
import redis
import requests
import urllib3.exceptions
from OpenSSL import SSL
from scrapy.exceptions import (
    CannotResolveHostError,
    DownloadConnectionRefusedError,
    DownloadFailedError,
    DownloadTimeoutError,
)
from twisted.internet.error import ConnectionDone, ConnectionLost, TCPTimedOutError
from twisted.python.failure import Failure
from twisted.web.client import ResponseFailed

from robotsgate.caching._hops import AddressRefusedError, CodingError
from robotsgate.caching._outcome import FailureKind
from robotsgate.fetching._fetcher import (
    FetchFailedError,
    failure_kind,
    is_network_failure,
    outcome_of,
)
from tests.tables import cases


def caused(error: Exception, *causes: BaseException) -> Exception:
    """`error`, caused by the first of `causes`, which is caused by the next, etc."""
    chain = [error, *causes]
    for effect, cause in zip(chain, causes, strict=False):
        effect.__cause__ = cause
    return error


def in_context(error: Exception, context: BaseException) -> Exception:
    """`error`, raised while `context` was being handled but not caused by it."""
    error.__context__ = context
    return error


def of_addresses(*numbers: int) -> Exception:
    """A connection error after an attempt at each of several addresses."""
    attempts = [OSError(number, os.strerror(number)) for number in numbers]
    return caused(ConnectionError("no"), ExceptionGroup("no address", attempts))


def of_number(number: int) -> OSError:
    return OSError(number, "why")


HOPS = (("https://example.com/a", 301),)

NO_NAME = socket.gaierror(-2, "Name or service not known")
UNTRUSTED = ssl.SSLCertVerificationError(1, "certificate verify failed")
REFUSED = ConnectionRefusedError(111, "Connection refused")


@cases("error kind text", {
    "name lookup": (NO_NAME, FailureKind.NAME_RESOLUTION, "gaierror: [Errno -2] Na"),
    "name lookup behind httpx": (caused(httpx.ConnectError(""), OSError(), NO_NAME),
        FailureKind.NAME_RESOLUTION, "ConnectError: [Errno -2] Name or service not"),
    "name lookup in the context": (in_context(httpx.ConnectError("no"), NO_NAME),
        FailureKind.NAME_RESOLUTION, "ConnectError: [Errno -2] Name or service not"),
    "name that IDNA cannot encode": (UnicodeError("label empty or too long"),
        FailureKind.NAME_RESOLUTION, "UnicodeError: label empty or too long"),
    "TLS": (caused(httpx.ConnectError("certificate verify failed"), UNTRUSTED),
        FailureKind.TLS, "ConnectError: certificate verify failed"),
    "TLS, bare": (ssl.SSLError(1, "alert"), FailureKind.TLS, "SSLError: alert"),
    "TLS that needs more bytes": (
        in_context(httpx.ReadError(""), ssl.SSLWantReadError(2, "did not complete")),
        FailureKind.TRANSFER, "ReadError"),
    "refused": (caused(httpx.ConnectError("All connection attempts failed"), REFUSED),
        FailureKind.CONNECT, "ConnectError: [Errno 111] Connection refused"),
    "refused, without a cause": (httpx.ConnectError("All connection attempts failed"),
        FailureKind.CONNECT, "ConnectError: All connection attempts failed"),
    "refused, bare": (REFUSED, FailureKind.CONNECT, "ConnectionRefusedError: [Errno"),
    "the address guard": (
        caused(httpx.ConnectError(""), AddressRefusedError("refuses 10.0.0.1")),
        FailureKind.ADDRESS_REFUSED, "ConnectError: refuses 10.0.0.1"),
    "reported by a Fetcher": (FetchFailedError("no way", kind=FailureKind.CONNECT),
        FailureKind.CONNECT, "FetchFailedError: no way"),
    "reported by a Fetcher, with a cause": (
        caused(FetchFailedError("", kind=FailureKind.TLS), EOFError("gone")),
        FailureKind.TLS, "EOFError: gone"),
    "timeout, reported by a Fetcher": (
        FetchFailedError("cancelled by scope", kind=FailureKind.TIMEOUT),
        FailureKind.TIMEOUT, "FetchFailedError: cancelled by scope"),
    "too many open files": (of_number(errno.EMFILE), FailureKind.LOCAL, "OSError"),
    "too many open files in the system":
        (of_number(errno.ENFILE), FailureKind.LOCAL, "OSError"),
    "no buffer": (of_number(errno.ENOBUFS), FailureKind.LOCAL, "OSError"),
    "no memory": (of_number(errno.ENOMEM), FailureKind.LOCAL, ""),
    "no free port": (of_number(errno.EADDRNOTAVAIL), FailureKind.LOCAL, "OSError"),
    "no memory for a look-up": (socket.gaierror(socket.EAI_MEMORY, "No memory"),
        FailureKind.LOCAL, "gaierror"),
    "no free port at every address":
        (of_addresses(errno.EADDRNOTAVAIL, errno.EADDRNOTAVAIL), FailureKind.LOCAL, ""),
    "no address of a family, and a refusal":
        (of_addresses(errno.EADDRNOTAVAIL, errno.ECONNREFUSED), FailureKind.CONNECT,
        ""),
    "no file at the second address":
        (of_addresses(errno.ECONNREFUSED, errno.EMFILE), FailureKind.LOCAL, ""),
    "no thread": (RuntimeError("can't start new thread"), FailureKind.LOCAL,
        "RuntimeError"),
    "no thread when the interpreter exits": (
        RuntimeError("can't create new thread at interpreter shutdown"),
        FailureKind.LOCAL, "RuntimeError"),
    "no file in the words of a fetcher": (
        caused(FetchFailedError("failed", kind=FailureKind.CONNECT),
               of_number(errno.EMFILE)), FailureKind.LOCAL, "OSError"),
    "a network that cannot be reached":
        (of_number(errno.ENETUNREACH), FailureKind.CONNECT, "OSError: "),
    "timeout without a message": (
        caused(httpx.ReadTimeout(""), TimeoutError("Cancelled by cancel scope 7f")),
        FailureKind.TIMEOUT, "ReadTimeout: no response in time"),
    "timeout with a message":
        (TimeoutError("why"), FailureKind.TIMEOUT, "TimeoutError: why"),
    "deadline": (TimeoutError(), FailureKind.TIMEOUT, "no response within 2.5 s"),
    "timeout of the socket": (caused(httpx.ReadError(""), TimeoutError("timed out")),
        FailureKind.TRANSFER, "ReadError: timed out"),
    "reset": (caused(httpx.ReadError(""), anyio.BrokenResourceError(),
        ConnectionResetError(104, "Connection reset by peer")),
        FailureKind.TRANSFER, "ReadError: [Errno 104] Connection reset by peer"),
    "coding": (CodingError("cut off"), FailureKind.CODING, "CodingError: cut off"),
    "value": (ValueError("odd"), FailureKind.OTHER, "ValueError: odd"),
    "no message at all": (ValueError(), FailureKind.OTHER, "ValueError"),
    "a group of causes": (
        caused(httpx.ConnectError(""), ExceptionGroup("two", [OSError(), NO_NAME])),
        FailureKind.NAME_RESOLUTION, "ConnectError: [Errno -2] Name or service not"),
    "bytes, which are not shown": (
        httpx.RemoteProtocolError("illegal chunk header: bytearray(b'User-agent: *')"),
        FailureKind.PROTOCOL, "RemoteProtocolError: illegal chunk header"),
    "a cause far down a long chain": (
        caused(httpx.ReadError(""), *[OSError() for _ in range(50)], NO_NAME),
        FailureKind.TRANSFER, "ReadError"),
    "a cause at the end of a large group": (
        caused(httpx.ReadError(""), ExceptionGroup("51", [*[OSError()] * 50, NO_NAME])),
        FailureKind.TRANSFER, "ReadError"),
})  # fmt: skip
def test_exception_becomes_a_failure_of_its_kind(
    error: Exception, kind: FailureKind, text: str
) -> None:
    outcome = outcome_of(error, redirects=HOPS, deadline=2.5)

    assert outcome.failure is kind
    assert outcome.error.startswith(text)
    assert outcome.redirects == HOPS
    assert outcome.cause is error


KINDS_BY_NAME = {
    "ConnectTimeout": FailureKind.TIMEOUT,
    "ReadTimeout": FailureKind.TIMEOUT,
    "WriteTimeout": FailureKind.TIMEOUT,
    "PoolTimeout": FailureKind.LOCAL,
    "ConnectError": FailureKind.CONNECT,
    "ProxyError": FailureKind.CONNECT,
    "ReadError": FailureKind.TRANSFER,
    "WriteError": FailureKind.TRANSFER,
    "CloseError": FailureKind.TRANSFER,
    "RemoteProtocolError": FailureKind.PROTOCOL,
    "LocalProtocolError": FailureKind.OTHER,
    "DecodingError": FailureKind.CODING,
    "UnsupportedProtocol": FailureKind.OTHER,
    "TooManyRedirects": FailureKind.OTHER,
    "InvalidURL": FailureKind.OTHER,
}


@pytest.mark.parametrize("library", [httpx, httpx2, httpcore], ids=lambda m: m.__name__)
@pytest.mark.parametrize(("name", "kind"), KINDS_BY_NAME.items())
def test_exception_of_each_library_becomes_a_failure_of_its_kind(
    library: Any,  # noqa: ANN401 (modules)
    name: str,
    kind: FailureKind,
) -> None:
    if not hasattr(library, name):
        return  # httpcore has fewer exceptions

    outcome = outcome_of(getattr(library, name)("why"), redirects=(), deadline=1.0)

    assert (outcome.failure, outcome.error) == (kind, f"{name}: why")


KINDS_BY_CLASS: dict[type[Exception], FailureKind] = {
    aiohttp.ClientConnectorCertificateError: FailureKind.TLS,
    aiohttp.ClientConnectorDNSError: FailureKind.NAME_RESOLUTION,
    aiohttp.ClientConnectorError: FailureKind.CONNECT,
    aiohttp.ClientConnectorSSLError: FailureKind.TLS,
    aiohttp.ClientHttpProxyError: FailureKind.CONNECT,
    aiohttp.ClientOSError: FailureKind.TRANSFER,
    aiohttp.ClientPayloadError: FailureKind.PROTOCOL,
    aiohttp.ClientResponseError: FailureKind.PROTOCOL,
    aiohttp.ConnectionTimeoutError: FailureKind.TIMEOUT,
    aiohttp.InvalidURL: FailureKind.OTHER,
    aiohttp.ServerDisconnectedError: FailureKind.TRANSFER,
    aiohttp.ServerFingerprintMismatch: FailureKind.TLS,
    aiohttp.SocketTimeoutError: FailureKind.TIMEOUT,
    CannotResolveHostError: FailureKind.NAME_RESOLUTION,
    DownloadConnectionRefusedError: FailureKind.CONNECT,
    DownloadTimeoutError: FailureKind.TIMEOUT,
    TCPTimedOutError: FailureKind.CONNECT,
    ConnectionLost: FailureKind.TRANSFER,
}


@pytest.mark.parametrize(("kind_of_error", "kind"), KINDS_BY_CLASS.items())
def test_exception_of_aiohttp_or_scrapy_becomes_a_failure_of_its_kind(
    kind_of_error: type[Exception], kind: FailureKind
) -> None:
    error = kind_of_error.__new__(kind_of_error)

    assert failure_kind(error) is kind


NETWORK_FAILURES: dict[str, tuple[BaseException, bool]] = {
    **{
        f"{kind.__module__}.{kind.__name__}": (kind.__new__(kind), True)
        for kind in (
            ConnectionResetError,
            TimeoutError,
            socket.gaierror,
            ssl.SSLCertVerificationError,
            httpx.ConnectTimeout,
            httpx2.RemoteProtocolError,
            httpx.ProxyError,
            impit.HTTPError,
            impit.ReadError,
            http.client.BadStatusLine,
            aiohttp.ClientOSError,
            aiohttp.ClientConnectorCertificateError,
            aiohttp.ClientPayloadError,
            requests.ConnectTimeout,
            requests.ReadTimeout,
            requests.exceptions.ChunkedEncodingError,
            requests.exceptions.RetryError,
            curl.DNSError,
            curl.InvalidSchema,
            curl.Timeout,
            urllib3.exceptions.MaxRetryError,
            urllib3.exceptions.ReadTimeoutError,
            urllib.error.URLError,
        )
    },
    **{
        f"not {kind.__module__}.{kind.__name__}": (kind.__new__(kind), False)
        for kind in (
            OSError,
            FileNotFoundError,
            UnicodeError,
            KeyError,
            KeyboardInterrupt,
            httpx.PoolTimeout,
            httpx.LocalProtocolError,
            httpx.UnsupportedProtocol,
            httpx.DecodingError,
            http.client.InvalidURL,
            aiohttp.InvalidURL,
            aiohttp.TooManyRedirects,
            requests.JSONDecodeError,
            requests.exceptions.InvalidSchema,
            requests.exceptions.InvalidURL,
            impit.UnsupportedProtocol,
            redis.ConnectionError,
            redis.TimeoutError,
        )
    },
    "not if the network is only the cause": (caused(ValueError(), REFUSED), False),
    "not without file descriptors": (
        caused(httpx.ConnectError(""), OSError(errno.EMFILE, "Too many")),
        False,
    ),
}


@pytest.mark.parametrize(
    ("error", "expected"), NETWORK_FAILURES.values(), ids=NETWORK_FAILURES
)
def test_only_a_clients_exception_is_a_failure_of_the_network(
    error: BaseException, *, expected: bool
) -> None:
    assert is_network_failure(error) is expected


@cases("reasons kind", {
    "TLS": ([SSL.Error(), ConnectionLost()], FailureKind.TLS),
    "a lost connection": ([ValueError(), ConnectionDone()], FailureKind.TRANSFER),
    "not HTTP": ([ValueError()], FailureKind.PROTOCOL),
})  # fmt: skip
def test_reasons_of_a_failed_download_are_its_causes(
    reasons: list[Exception], kind: FailureKind
) -> None:
    response_failed = ResponseFailed([Failure(one) for one in reasons])
    error = caused(DownloadFailedError("failed"), response_failed)

    assert failure_kind(error) is kind


def test_cycle_of_causes_ends() -> None:
    error, other = httpx.ConnectError(""), OSError()
    error.__cause__, other.__cause__ = other, error

    outcome = outcome_of(error, redirects=(), deadline=30)

    assert outcome.failure is FailureKind.CONNECT
    assert outcome.error == "ConnectError"


def test_exception_that_the_caller_was_handling_is_not_a_cause() -> None:
    """Python chains it to any exception raised meanwhile, even across an await."""
    outer = socket.gaierror("no such name")
    try:
        raise outer
    except OSError:
        try:
            raise httpx.RemoteProtocolError("illegal status line")  # noqa: TRY301
        except httpx.RemoteProtocolError as error:
            outcome = outcome_of(error, redirects=(), deadline=1.0, outer=outer)

    assert outcome.failure is FailureKind.PROTOCOL
    assert outcome.error == "RemoteProtocolError: illegal status line"


@cases("text shown", {
    "at the end": ("illegal line: b'Set-Cookie: a\\x00'", ": illegal line"),
    "nothing else": ("bytearray(b'secret')", ""),
    "a word that only ends with b": ("grab 'it'", ": grab 'it'"),
})  # fmt: skip
def test_bytes_quoted_in_an_error_are_not_shown(text: str, shown: str) -> None:
    error = httpx.RemoteProtocolError(text)

    outcome = outcome_of(error, redirects=(), deadline=1.0)

    assert outcome.error == f"RemoteProtocolError{shown}"
