"""Archived robots.txt responses read from WARC files built byte by byte."""

from __future__ import annotations

import gzip
import io
import os
import pickle
import subprocess
import sys
import zlib
from contextlib import suppress
from datetime import datetime
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from robotsgate import ArchivedResponse, Policy, RobotsArchive
from robotsgate.integrations.warc import (
    DamagedWarcError,
    WarcCounts,
    responses,
)
from tests.integrations.warc_files import (
    DAY,
    RULES,
    chunked,
    http,
    in_zstd,
    member,
    plain,
    record,
    redirect,
    stored,
    zipped,
    zipped_together,
)
from tests.systems import need_linux
from tests.tables import cases

if TYPE_CHECKING:
    from collections.abc import Callable

A, B, C = (f"https://{name}.example" for name in "abc")
AT = datetime.fromisoformat(DAY).timestamp()
LATER = "2024-05-06T07:08:09Z"
MUCH_LATER = datetime.fromisoformat(LATER).timestamp()
ZIPPED_RULES = gzip.compress(RULES)
GZIP = b"Content-Encoding: gzip\r\n"
CHUNKED = b"Transfer-Encoding: chunked\r\n"

_PAGE = Path(__file__).parents[2] / "docs/how-to/read-archives.md"


class Pipe(io.BytesIO):
    """A file that is not seekable."""

    def seekable(self) -> bool:
        return False

    def seek(self, *_: object) -> int:
        raise io.UnsupportedOperation("seek")

    def tell(self) -> int:
        raise io.UnsupportedOperation("tell")


def read(data: bytes) -> tuple[list[tuple[str, ArchivedResponse]], WarcCounts]:
    captures = responses(io.BytesIO(data))
    return list(captures), captures.counts


def read_to_damage(data: bytes) -> list[tuple[str, ArchivedResponse]]:
    pairs = []
    with suppress(DamagedWarcError):
        pairs.extend(responses(io.BytesIO(data)))
    return pairs


def damaged(data: bytes, place: int) -> bytes:
    copy = bytearray(data)
    copy[place] ^= 0xFF
    return bytes(copy)


def robots(origin: str, block: bytes | None = None, **headers: str) -> bytes:
    return record(f"{origin}/robots.txt", block, **headers)


_FIRST, _SECOND = robots(A), robots(B)


def response_to(block: bytes, **headers: str) -> ArchivedResponse:
    [(origin, response)], _ = read(robots(A, block, **headers))
    assert origin == A
    return response


@pytest.mark.parametrize("file", [plain, zipped, zipped_together, in_zstd])
def test_all_robots_txt_captures_are_read_in_file_order(
    file: Callable[..., bytes],
) -> None:
    later = "2024-03-04T05:06:07.250Z"
    head = b"Content-Type: text/plain\r\n"

    pairs, counts = read(
        file(robots(A, http(head=head)), robots(B), robots(A, http(b""), date=later))
    )

    assert pairs == [
        (A, ArchivedResponse(200, [("Content-Type", "text/plain")], RULES, (), AT)),
        (B, ArchivedResponse(200, (), RULES, (), AT)),
        (A, ArchivedResponse(200, (), b"", (), 1709528767.25)),
    ]
    assert counts == WarcCounts(captures=3)


@pytest.mark.parametrize(
    ("url", "origins"),
    [
        ("HTTPS://A.example:443/robots.txt", [A]),
        ("<https://a.example/robots.txt>", [A]),
        ("http://a.example/robots.txt", ["http://a.example"]),
        ("https://a.example:8443/robots.txt", ["https://a.example:8443"]),
        ("https://a.example/ROBOTS.TXT", []),
        ("https://a.example/robots.txt?x", []),
        ("https://a.example/old/robots.txt", []),
        ("https://a.example/", []),
        ("dns:a.example", []),
        ("", []),
    ],
)
def test_capture_url_determines_its_origin(url: str, origins: list[str]) -> None:
    pairs, _ = read(record(url))

    assert [origin for origin, _ in pairs] == origins


@pytest.mark.parametrize("kind", ["request", "metadata", "resource", "conversion"])
def test_other_record_types_are_ignored(kind: str) -> None:
    pairs, counts = read(robots(A, kind=kind))

    assert (pairs, counts) == ([], WarcCounts())


@pytest.mark.parametrize(
    ("date", "seconds"),
    [
        ("2024-01-02T03:04:05", AT),
        ("2024-01-02T04:04:05+01:00", AT),
        ("2024-01", None),
        ("1969-12-31T00:00:00Z", None),
        ("yesterday", None),
    ],
)
def test_date_is_parsed_or_unknown(date: str, seconds: float | None) -> None:
    assert response_to(http(), date=date).fetched_at == seconds


@cases("body head", {
    "gzip": (ZIPPED_RULES, GZIP),
    "deflate": (zlib.compress(RULES), b"Content-Encoding: deflate\r\n"),
    "chunks of one byte": (chunked(ZIPPED_RULES, size=1), CHUNKED + GZIP),
    "longer than its length": (RULES, b"Content-Length: 12\r\n"),
    "removed chunks": (RULES, CHUNKED + b"Content-Length: 99\r\n"),
    "already decoded": (RULES, GZIP + b"Content-Length: 99\r\n"),
    "already decoded, with labels that are not codings": (
        RULES, b"Content-Encoding: gzip, UTF-8\r\nContent-Encoding: none\r\n"
    ),
    "invalid length": (RULES, b"Content-Length: some\r\n"),
    "a superscript length": (RULES, b"Content-Length: \xb2\r\n"),
    "many zeros": (RULES, b"Content-Length: " + b"0" * 5_000 + b"9\r\n"),
})  # fmt: skip
def test_body_is_decoded(body: bytes, head: bytes) -> None:
    response = response_to(http(body, head=head))

    assert (response.status, response.body) == (200, RULES)


@cases("block", {
    "HTTP/2": (http(RULES, status=b"HTTP/2 200"),),
    "LF": (http(RULES).replace(b"\r\n", b"\n"),),
    "line without a colon": (http(RULES, head=b"no header\r\n"),),
    "long head": (http(RULES, head=b"X: " + b"x" * 70_000 + b"\r\n"),),
})  # fmt: skip
def test_unusual_response_head_is_read(block: bytes) -> None:
    response = response_to(block)

    assert (response.status, response.body) == (200, RULES)


@cases("block headers", {
    "truncated body": (http(head=b"Content-Length: 99\r\n"), {}),
    "no body": (http(b"", head=GZIP + b"Content-Length: 9\r\n"), {}),
    "truncated body, 5,000 digits": (
        http(head=b"Content-Length: " + b"9" * 5_000 + b"\r\n"), {}
    ),
    "truncated gzip": (http(ZIPPED_RULES[:-9], head=GZIP), {}),
    "corrupt gzip": (http(b"\x1f\x8b" + RULES, head=GZIP), {}),
    "no last chunk": (http(chunked(RULES)[:-5], head=CHUNKED), {}),
    "no chunks": (http(b"", head=CHUNKED), {}),
    "broken chunk": (http(b"9\r\n" + RULES, head=CHUNKED), {}),
    "unknown coding": (http(head=b"Content-Encoding: br\r\n"), {}),
    "marked as truncated": (http(), {"WARC_Truncated": "length"}),
    "one of several segments": (http(), {"WARC_Segment_Number": "1"}),
})  # fmt: skip
def test_incomplete_body_makes_the_origin_unreachable(
    block: bytes, headers: dict[str, str]
) -> None:
    response = response_to(block, **headers)

    assert (response.status, response.body) == (206, b"")
    assert RobotsArchive(lambda _: response).can_fetch("Bot", f"{A}/") is False


@pytest.mark.parametrize("status", [404, 429, 301, 503])
def test_status_suffices_if_the_body_does_not_matter(status: int) -> None:
    head = GZIP + b"Content-Length: 999\r\n"
    block = http(ZIPPED_RULES[:9], head=head, status=b"HTTP/1.1 %d X" % status)

    response = response_to(block, WARC_Truncated="length")

    assert (response.status, response.body) == (status, b"")


def test_start_of_an_error_page_is_kept() -> None:
    """It may say "not found", which can count as a 404."""
    block = http(b"<title>404</title>" * 1_000, status=b"HTTP/1.1 500 X")

    assert len(response_to(block).body) == 4_096


@pytest.mark.parametrize("size", [100, 40 * 2**20])
@pytest.mark.parametrize("headers", [{}, {"WARC_Truncated": "length"}])
def test_body_beyond_the_limit_counts_as_complete(
    size: int, headers: dict[str, str]
) -> None:
    data = io.BytesIO(robots(A, http(b"x" * size), **headers))

    [(_, response)] = responses(data, policy=Policy(max_body_bytes=99))

    assert (response.status, len(response.body)) == (200, 100)


@cases("capture", {
    "empty": (robots(A, b"", date=LATER),),
    "no HTTP": (robots(A, RULES, date=LATER),),
    "cut off": (robots(A, b"HTTP/1.1 200 OK\r\nA: b\r\n\r", date=LATER),),
    "invalid status": (robots(A, b"HTTP/1.1 2000 OK\r\n\r\n", date=LATER),),
    "long head": (robots(A, http(head=b"X: " + b"x" * 200_000 + b"\r\n"), date=LATER),),
    "revisit": (robots(A, http(b""), kind="revisit", date=LATER),),
})  # fmt: skip
def test_unreadable_capture_is_counted_and_answers_none(capture: bytes) -> None:
    """An older capture may be outdated, and a revisit has no body of its own."""
    pairs, counts = read(robots(A) + capture + robots(B))

    assert pairs[1] == (A, ArchivedResponse(None, fetched_at=MUCH_LATER))
    assert RobotsArchive(dict(pairs).get).can_fetch("Bot", f"{A}/public") is None
    assert counts == WarcCounts(captures=3, unreadable=1)


@pytest.mark.parametrize("file", [plain, zipped])
@pytest.mark.parametrize("step", [1, -1])
def test_redirect_is_followed_wherever_its_target_is_in_the_file(
    file: Callable[..., bytes], step: int
) -> None:
    records = [
        redirect(f"{A}/robots.txt", f"{B}/robots.txt"),
        redirect(f"{B}/robots.txt", "/a%7Eb/r.txt", status=302),
        record(f"{B}/a~b/r.txt"),
    ]
    second = (f"{B}/a%7Eb/r.txt", 302)

    pairs, counts = read(file(*records[::step]))

    assert dict(pairs) == {
        A: ArchivedResponse(
            200, (), RULES, ((f"{B}/robots.txt", 301), second), fetched_at=AT
        ),
        B: ArchivedResponse(200, (), RULES, (second,), fetched_at=AT),
    }
    assert counts == WarcCounts(captures=2)


def test_redirect_leads_to_the_capture_nearest_in_time() -> None:
    bodies = {
        "2024-01-02T00:00:00Z": b"#1",
        "2024-01-02T04:00:00Z": b"#2",
        LATER: b"#3",
    }
    targets = [record(f"{A}/r", http(body), date=date) for date, body in bodies.items()]

    pairs, _ = read(plain(redirect(f"{A}/robots.txt", "/r"), *targets))

    assert [response.body for _, response in pairs] == [b"#2"]


@cases("target", {
    "months later": (robots(B, date=LATER),),
    "revisit of nothing": (robots(B, b"", kind="revisit"),),
    "other scheme": (robots("http://b.example"),),
    "no date": (robots(B, date="never"),),
    "nothing": (b"",),
})  # fmt: skip
def test_redirect_to_a_missing_capture_is_returned_unfollowed(target: bytes) -> None:
    """An archive of several files may still follow it."""
    pairs, counts = read(redirect(f"{A}/robots.txt", f"{B}/robots.txt") + target)

    response = dict(pairs)[A]
    assert response == ArchivedResponse(
        301, [("Location", f"{B}/robots.txt")], b"", (), AT
    )
    assert counts.unfollowed_redirects == 1
    archived = {A: response, B: RULES}
    assert RobotsArchive(archived.get).can_fetch("Bot", f"{A}/private") is False
    assert RobotsArchive(archived.get).can_fetch("Bot", f"{A}/public") is True


def test_redirect_loops_and_chains_end_as_in_a_fetch() -> None:
    """The chain is one redirect longer than the policy follows."""
    loop = redirect(f"{A}/robots.txt", "/x") + redirect(f"{A}/x", "/robots.txt")
    hops = [redirect(f"{B}/robots.txt", "/1")]
    hops += [redirect(f"{B}/{n}", f"/{n + 1}") for n in range(1, 6)]

    pairs, counts = read(plain(loop, *hops, record(f"{B}/6")))

    lengths = {origin: len(response.redirects) for origin, response in pairs}
    assert lengths == {A: 1, B: 5}
    assert {response.status for _, response in pairs} == {301}
    assert counts.unfollowed_redirects == 0


_SOURCE = redirect(f"{A}/robots.txt", "/r")
_TARGET = record(f"{A}/r")


@cases("data", {
    "is not the first in its member": (
        zipped_together(robots(B), _TARGET) + zipped(_SOURCE),
    ),
    "has a head that begins in another member": (
        zipped(_TARGET[:20], _TARGET[20:], _SOURCE),
    ),
    "is in a zstd file, where positions are not exact": (in_zstd(_SOURCE, _TARGET),),
    "is damaged": (zipped(_SOURCE, _TARGET)[:-1],),
})  # fmt: skip
def test_redirect_is_not_followed_if_its_target(data: bytes) -> None:
    assert dict(read_to_damage(data))[A].status == 301


def test_pipe_is_read_like_a_file() -> None:
    data = zipped(redirect(f"{C}/robots.txt", f"{A}/robots.txt"), robots(A))

    assert list(responses(Pipe(data))) == read(data)[0]


_ZIPPED = zipped(_FIRST)


@cases("intact rest reason", {
    "garbage after a member": (_ZIPPED, b"garbage", ""),
    "a member of garbage": (_ZIPPED, zipped(b"x" * 40_000, _SECOND), "header"),
    "a member cut off": (_ZIPPED, zipped(_SECOND)[:-1], "cut off"),
    "a wrong checksum": (
        _ZIPPED, damaged(zipped(_SECOND), -8) + zipped(_SECOND), "check"
    ),
    "damage far into a member": (
        _ZIPPED,
        damaged(zipped(robots(B, http(os.urandom(300_000)))), -50_000)
        + zipped(_SECOND), "",
    ),
    "a length too long in a member": (
        _ZIPPED, zipped(robots(B, length=60), _SECOND), "cut off"
    ),
    "a record split over two members": (
        _ZIPPED, zipped(_SECOND[:-50], _SECOND[-50:]), "cut off"
    ),
    "garbage after a record": (_FIRST, _SECOND + b"garbage", "Invalid"),
    "a length too short": (_FIRST, robots(B, length=50) + _SECOND, "Invalid"),
    "a length beyond the end": (_FIRST, robots(B, length=10**18) + _SECOND, "cut off"),
    "a length of 4,000 digits": (
        _FIRST, robots(B, length=10**3999) + _SECOND, "no valid length"
    ),
    "no length": (_FIRST, _SECOND.replace(b"Content-Length", b"X"), "no valid length"),
    "a gzip member after plain records": (_FIRST, _SECOND + zipped(_SECOND), "Invalid"),
    "garbage after zstd": (in_zstd(_FIRST), in_zstd(_SECOND) + bytes(99), ""),
    "XML": (b"", b"<Error>AccessDenied</Error>", "Invalid"),
    "a short gzip file": (b"", b"\x1f\x8b", "cut off"),
    "a WACZ file": (b"", b"PK\x03\x04", "Invalid"),
})  # fmt: skip
def test_file_ends_at_the_first_damage(intact: bytes, rest: bytes, reason: str) -> None:
    """A record is only used if the file is intact up to the next one."""
    captures = responses(io.BytesIO(intact + rest))
    offset = len(intact)

    if intact:
        assert next(captures)[0] == A
    with pytest.raises(
        DamagedWarcError, match=f"at byte {offset}: .*{reason}"
    ) as error:
        next(captures)

    copy = pickle.loads(pickle.dumps(error.value))  # noqa: S301 (our own)
    assert (str(copy), copy.offset) == (str(error.value), offset)


def test_member_without_content_is_skipped() -> None:
    """The reader of fastwarc ends there."""
    pairs, _ = read(zipped(robots(A), b"", b"\r\n", robots(B), b""))

    assert [origin for origin, _ in pairs] == [A, B]


@pytest.mark.parametrize("file", [plain, zipped, zipped_together, stored])
def test_file_cut_off_anywhere_has_no_other_captures(
    file: Callable[..., bytes],
) -> None:
    """A capture that the file has lost may turn a followed redirect into itself.

    The reader once looked for the next record inside a page.
    """
    forged = b"\n" + robots(C) + member(robots(C))
    data = file(
        robots(A),
        record(f"{C}/robots.txt?", b"", kind="revisit"),
        record(f"{A}/", http(forged)),
        redirect(f"{B}/robots.txt", "/r"),
        record(f"{B}/r"),
    )
    whole = [
        *read(data)[0],
        (B, ArchivedResponse(301, {"Location": "/r"}, b"", (), AT)),
    ]
    for length in range(len(data)):
        pairs = read_to_damage(data[:length])

        assert all(pair in whole for pair in pairs), length


@pytest.mark.parametrize("file", [plain, zipped])
def test_read_error_is_raised_unchanged(file: Callable[..., bytes]) -> None:
    class Failing(io.BytesIO):
        def read(self, size: int | None = -1, /) -> bytes:
            if self.tell() == 0 and size != 5:  # after the first look
                raise OSError(5, "the disk fails")
            return super().read(size)

    with pytest.raises(OSError, match="the disk fails"):
        list(responses(Failing(file(robots(A)))))


def test_iterator_closes_a_file_that_it_opened(tmp_path: Path) -> None:
    """The test suite turns a ResourceWarning into an error."""
    path = tmp_path / "robots.warc.gz"
    path.write_bytes(zipped(robots(A), robots(B)))

    assert len(list(responses(path))) == 2
    with responses(str(path)) as captures:
        assert next(captures)[0] == A
    assert list(captures) == []
    responses(path).close()


def test_iterator_starts_at_the_current_position_and_leaves_the_file_open() -> None:
    file = io.BytesIO(b"before" + robots(A))
    file.seek(6)

    with responses(file) as captures:
        assert [origin for origin, _ in captures] == [A]

    assert not file.closed
    with pytest.raises(FileNotFoundError):
        responses("missing.warc.gz")


def test_code_in_the_guide_reads_several_files(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    page = _PAGE.read_text(encoding="utf-8")
    section = page.partition("\n## Read robots.txt from WARC files\n")[2]
    code = section.partition("```python\n")[2].partition("```")[0]
    monkeypatch.chdir(tmp_path)
    Path("robots-1.warc.gz").write_bytes(zipped(robots(A)))
    Path("robots-2.warc.gz").write_bytes(zipped(robots("https://example.com")))

    exec(code, {})  # noqa: S102 (our own)

    assert capsys.readouterr().out.endswith("\nFalse\n")


_READER = r"""
import re, sys
from pathlib import Path
from robotsgate.integrations.warc import responses
captures = responses(sys.argv[1])
followed = sum(len(response.redirects) for _, response in captures)
peak_kib = re.search("VmHWM:\s+([0-9]+)", Path("/proc/self/status").read_text())[1]
print(captures.counts.captures, followed, peak_kib)
"""


@pytest.mark.slow
def test_many_or_long_records_need_little_memory(tmp_path: Path) -> None:
    need_linux()

    def measure(origins: int, *, longest: int) -> tuple[int, int, int]:
        """Captures, redirects and peak KiB of a process that reads a file."""
        path = tmp_path / f"{origins}.warc"
        with path.open("wb") as file:
            file.write(robots(C, http(b"x" * longest)))
            for number in range(origins):
                host = f"{number}.example/robots.txt"
                file.write(redirect(f"http://{host}", f"https://{host}"))
                file.write(record(f"https://{host}"))
        completed = subprocess.run(  # noqa: S603 (our own code)
            [sys.executable, "-c", _READER, str(path)],
            check=True,
            capture_output=True,
            text=True,
        )
        captures, followed, peak = map(int, completed.stdout.split())
        return captures, followed, peak

    *_, least = measure(1_000, longest=1_000)
    captures, followed, peak = measure(20_000, longest=40 * 2**20)

    assert (captures, followed) == (40_001, 20_000)
    assert peak - least < 10 * 1024
