"""Archived robots.txt responses, out of WARC files that are built byte by byte."""

from __future__ import annotations

import gzip
import io
import os
import pickle
import subprocess
import sys
import zlib
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
    zipped,
    zipped_at_once,
)

if TYPE_CHECKING:
    from collections.abc import Callable

A, B, C = (f"https://{name}.example" for name in "abc")
AT = datetime.fromisoformat(DAY).timestamp()
ZIPPED_RULES = gzip.compress(RULES)
GZIP = b"Content-Encoding: gzip\r\n"
CHUNKED = b"Transfer-Encoding: chunked\r\n"

_PAGE = Path(__file__).parents[2] / "docs/how-to/read-warc-files.md"


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


def robots(origin: str, block: bytes | None = None, **headers: str) -> bytes:
    return record(f"{origin}/robots.txt", block, **headers)


def response_to(block: bytes, **headers: str) -> ArchivedResponse:
    [(origin, response)], _ = read(robots(A, block, **headers))
    assert origin == A
    return response


@pytest.mark.parametrize("file", [plain, zipped, zipped_at_once, in_zstd])
def test_every_capture_of_a_robots_txt_comes_in_the_order_of_the_file(
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
    assert counts == WarcCounts(records=3, captures=3)


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
def test_url_of_a_capture_gives_its_origin(url: str, origins: list[str]) -> None:
    pairs, counts = read(record(url))

    assert [origin for origin, _ in pairs] == origins
    assert counts.records == 1


@pytest.mark.parametrize("kind", ["request", "metadata", "resource", "conversion"])
def test_only_responses_and_revisits_count(kind: str) -> None:
    pairs, counts = read(robots(A, kind=kind))

    assert (pairs, counts) == ([], WarcCounts(records=1))


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
def test_date_that_names_no_moment_is_unknown(date: str, seconds: float | None) -> None:
    assert response_to(http(), date=date).fetched_at == seconds


@pytest.mark.parametrize(
    ("body", "head"),
    [
        pytest.param(ZIPPED_RULES, GZIP, id="gzip"),
        pytest.param(ZIPPED_RULES, b"Content-Encoding: X-GZIP\r\n", id="x-gzip"),
        pytest.param(
            zlib.compress(RULES), b"Content-Encoding: deflate\r\n", id="deflate"
        ),
        pytest.param(chunked(RULES), CHUNKED, id="chunks"),
        pytest.param(
            chunked(ZIPPED_RULES, size=1), CHUNKED + GZIP, id="chunks of one byte"
        ),
        pytest.param(RULES, b"Content-Length: 12\r\n", id="longer than it says"),
        pytest.param(
            RULES, GZIP + CHUNKED + b"Content-Length: 999\r\n", id="decoded before"
        ),
        pytest.param(RULES, b"Content-Length: some\r\n", id="length that is none"),
    ],
)
def test_body_is_decoded(body: bytes, head: bytes) -> None:
    response = response_to(http(body, head=head))

    assert (response.status, response.body) == (200, RULES)


@pytest.mark.parametrize(
    "block",
    [
        pytest.param(http(RULES, status=b"HTTP/2 200"), id="HTTP/2"),
        pytest.param(http(RULES).replace(b"\r\n", b"\n"), id="LF"),
        pytest.param(http(RULES, head=b"no header\r\n"), id="line without a colon"),
        pytest.param(
            http(RULES, head=b"X: " + b"x" * 70_000 + b"\r\n"), id="long head"
        ),
    ],
)
def test_head_is_read_as_crawlers_write_it(block: bytes) -> None:
    response = response_to(block)

    assert (response.status, response.body) == (200, RULES)


@pytest.mark.parametrize(
    ("block", "headers"),
    [
        pytest.param(http(head=b"Content-Length: 99\r\n"), {}, id="cut body"),
        pytest.param(http(b"", head=GZIP + b"Content-Length: 9\r\n"), {}, id="no body"),
        pytest.param(http(ZIPPED_RULES[:-9], head=GZIP), {}, id="cut gzip"),
        pytest.param(
            http(b"\x1f\x8b" + RULES, head=GZIP), {}, id="gzip that is broken"
        ),
        pytest.param(http(chunked(RULES)[:-5], head=CHUNKED), {}, id="no last chunk"),
        pytest.param(http(b"", head=CHUNKED), {}, id="no chunk at all"),
        pytest.param(http(b"9\r\n" + RULES, head=CHUNKED), {}, id="broken chunk"),
        pytest.param(http(head=b"Content-Encoding: br\r\n"), {}, id="unknown coding"),
        pytest.param(http(), {"WARC_Truncated": "length"}, id="truncated"),
        pytest.param(
            http(), {"WARC_Segment_Number": "1"}, id="one of several segments"
        ),
    ],
)
def test_body_that_is_not_whole_makes_its_origin_unreachable(
    block: bytes, headers: dict[str, str]
) -> None:
    response = response_to(block, **headers)

    assert (response.status, response.body) == (206, b"")
    assert RobotsArchive(lambda _: response).can_fetch("Bot", f"{A}/") is False


@pytest.mark.parametrize("status", [404, 429, 301, 503])
def test_status_is_enough_where_the_body_does_not_matter(status: int) -> None:
    head = GZIP + b"Content-Length: 999\r\n"
    block = http(ZIPPED_RULES[:9], head=head, status=b"HTTP/1.1 %d X" % status)

    response = response_to(block, WARC_Truncated="length")

    assert (response.status, response.body) == (status, b"")


def test_page_of_an_error_is_kept_to_see_whether_it_says_not_found() -> None:
    block = http(b"<title>404</title>" * 1_000, status=b"HTTP/1.1 500 X")

    assert len(response_to(block).body) == 4_096


@pytest.mark.parametrize("size", [512_001, 40 * 2**20])
@pytest.mark.parametrize("headers", [{}, {"WARC_Truncated": "length"}])
def test_body_beyond_the_limit_is_whole_as_far_as_it_counts(
    size: int, headers: dict[str, str]
) -> None:
    response = response_to(http(b"x" * size), **headers)

    assert (response.status, len(response.body)) == (200, 512_001)


def test_limit_is_that_of_the_policy() -> None:
    data = io.BytesIO(robots(A, http(RULES * 9), WARC_Truncated="length"))

    [(_, response)] = responses(data, policy=Policy(max_body_bytes=99))

    assert (response.status, len(response.body)) == (200, 100)


@pytest.mark.parametrize(
    "block",
    [
        b"",
        RULES,
        b"HTTP/1.1 200 OK\r\nA: b",
        b"HTTP/1.1 2000 OK\r\n\r\n",
        http(head=b"X: " + b"x" * 200_000 + b"\r\n"),
    ],
)
def test_capture_without_a_response_is_skipped_and_counted(block: bytes) -> None:
    pairs, counts = read(robots(A, block) + robots(B))

    assert [origin for origin, _ in pairs] == [B]
    assert counts == WarcCounts(records=2, captures=1, unreadable=1)


NOT_MODIFIED = http(b"", status=b"HTTP/1.1 304 Not Modified")
REFERS_BY_DATE = {
    "WARC_Refers_To_Target_URI": f"{A}/robots.txt",
    "WARC_Refers_To_Date": DAY,
}
LATER = "2024-05-06T07:08:09Z"


@pytest.mark.parametrize("block", [b"", NOT_MODIFIED, http(b""), http(b"", head=GZIP)])
@pytest.mark.parametrize("refers", [REFERS_BY_DATE, {"WARC_Refers_To": "<urn:x:1>"}])
@pytest.mark.parametrize("is_first", [True, False])
def test_revisit_has_the_body_that_it_refers_to(
    block: bytes, refers: dict[str, str], *, is_first: bool
) -> None:
    original = robots(A, record_id="<urn:x:1>")
    revisit = robots(B, block, kind="revisit", date=LATER, **refers)
    later = datetime.fromisoformat(LATER).timestamp()

    pairs, _ = read(zipped(*[revisit, original][:: 1 if is_first else -1]))

    response = dict(pairs)[B]
    assert (response.status, response.body) == (200, RULES)
    assert response.fetched_at == later


@pytest.mark.parametrize(
    "refers",
    [
        {},
        {**REFERS_BY_DATE, "WARC_Refers_To_Date": LATER},
        {**REFERS_BY_DATE, "WARC_Refers_To_Date": ""},
        {"WARC_Refers_To": "<urn:x:2>"},
    ],
)
@pytest.mark.parametrize("block", [b"", NOT_MODIFIED, http(b"")])
def test_revisit_of_what_is_not_there_is_skipped_and_counted(
    block: bytes, refers: dict[str, str]
) -> None:
    """An empty body would allow everything."""
    revisit = robots(A, block, kind="revisit", date=LATER, **refers)

    pairs, counts = read(robots(A) + revisit)

    assert [response.body for _, response in pairs] == [RULES]
    assert counts == WarcCounts(records=2, captures=1, unresolved_revisits=1)


def test_revisit_of_a_revisit_is_not_resolved() -> None:
    revisit = robots(A, b"", kind="revisit", **REFERS_BY_DATE)

    assert read(revisit)[1] == WarcCounts(records=1, unresolved_revisits=1)


def test_revisit_has_its_own_status_and_headers() -> None:
    """Its payload is that of a page with another status, for which no body counts."""
    original = record(f"{A}/", http(RULES, status=b"HTTP/1.1 404 X"))
    refers = {**REFERS_BY_DATE, "WARC_Refers_To_Target_URI": f"{A}/"}
    head = b"X: y\r\n"

    pairs, _ = read(
        original + robots(A, http(b"", head=head), kind="revisit", **refers)
    )

    assert pairs == [(A, ArchivedResponse(200, [("X", "y")], RULES, (), AT))]


def test_revisit_whose_head_says_enough_needs_nothing_else() -> None:
    block = http(b"", status=b"HTTP/1.1 404 X")

    pairs, _ = read(robots(A, block, kind="revisit"))

    assert pairs == [(A, ArchivedResponse(404, (), b"", (), AT))]


@pytest.mark.parametrize("file", [plain, zipped, in_zstd])
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
    assert counts == WarcCounts(records=3, captures=2)


def test_target_of_a_redirect_that_nobody_asked_as_a_robots_txt_has_no_capture() -> (
    None
):
    pairs, _ = read(
        redirect("http://a.example/robots.txt", f"{A}/r.txt") + record(f"{A}/r.txt")
    )

    assert [origin for origin, _ in pairs] == ["http://a.example"]


def test_redirect_leads_to_the_capture_of_the_nearest_date() -> None:
    bodies = {
        "2024-01-02T00:00:00Z": b"#1",
        "2024-01-02T04:00:00Z": b"#2",
        LATER: b"#3",
    }
    targets = [record(f"{A}/r", http(body), date=date) for date, body in bodies.items()]

    pairs, _ = read(plain(redirect(f"{A}/robots.txt", "/r"), *targets))

    assert [response.body for _, response in pairs] == [b"#2"]


@pytest.mark.parametrize(
    "target",
    [
        pytest.param(robots(B, date=LATER), id="months later"),
        pytest.param(robots(B, b"", kind="revisit"), id="revisit of nothing"),
        pytest.param(robots("http://b.example"), id="other scheme"),
        pytest.param(robots(B, date="never"), id="no date"),
        pytest.param(b"", id="nothing"),
    ],
)
def test_redirect_to_what_is_not_there_is_given_as_it_is(target: bytes) -> None:
    """An archive with more files may follow it."""
    pairs, counts = read(redirect(f"{A}/robots.txt", f"{B}/robots.txt") + target)

    response = dict(pairs)[A]
    assert response == ArchivedResponse(
        301, [("Location", f"{B}/robots.txt")], b"", (), AT
    )
    assert counts.unfollowed_redirects == 1
    found = {A: response, B: RULES}
    assert RobotsArchive(found.get).can_fetch("Bot", f"{A}/private") is False
    assert RobotsArchive(found.get).can_fetch("Bot", f"{A}/public") is True


def test_redirects_end_as_in_a_fetch() -> None:
    """A loop, and one redirect more than the policy follows."""
    loop = redirect(f"{A}/robots.txt", "/x") + redirect(f"{A}/x", "/robots.txt")
    hops = [redirect(f"{B}/robots.txt", "/1")]
    hops += [redirect(f"{B}/{n}", f"/{n + 1}") for n in range(1, 6)]

    pairs, counts = read(plain(loop, *hops, record(f"{B}/6")))

    lengths = {origin: len(response.redirects) for origin, response in pairs}
    assert lengths == {A: 1, B: 5}
    assert {response.status for _, response in pairs} == {301}
    assert counts.unfollowed_redirects == 0


def test_redirect_into_a_member_with_several_records_is_never_mistaken() -> None:
    targets = [record(f"{A}/{n}", http(b"#%d" % n)) for n in range(6)]
    sources = [
        redirect(f"https://{n}.example/robots.txt", f"{A}/{n}") for n in range(6)
    ]

    pairs, _ = read(
        b"".join(zipped_at_once(*targets[n : n + 2]) for n in (0, 2, 4))
        + zipped(*sources)
    )

    bodies = [response.body for _, response in pairs]
    assert bodies == [b"#0", b"", b"#2", b"", b"#4", b""]


def test_redirect_within_one_long_member_is_not_followed() -> None:
    pages = [record(f"{A}/{n}", http(os.urandom(100_000))) for n in range(4)]

    pairs, counts = read(zipped_at_once(*pages, redirect(f"{A}/robots.txt", "/3")))

    assert [(o, r.status) for o, r in pairs] == [(A, 301)]
    assert counts == WarcCounts(records=5, captures=1, unfollowed_redirects=1)


def test_pipe_is_read_once_and_follows_nothing() -> None:
    revisit = robots(B, b"", kind="revisit", **REFERS_BY_DATE)
    captures = responses(
        Pipe(zipped(robots(A), redirect(f"{C}/robots.txt", f"{A}/robots.txt"), revisit))
    )

    pairs = list(captures)

    assert not captures.follows_redirects
    assert [(origin, response.status) for origin, response in pairs] == [
        (A, 200),
        (C, 301),
    ]
    assert captures.counts == WarcCounts(
        records=3, captures=2, unresolved_revisits=1, unfollowed_redirects=1
    )


def test_damaged_member_in_a_pipe_ends_the_iteration_with_the_counts() -> None:
    """The last capture before it may be damaged as well, so it is not given."""
    damage = b"\0" * 99 + zipped(robots(C))
    captures = responses(Pipe(zipped(robots(A), robots(B)) + damage))

    assert next(captures)[0] == A
    with pytest.raises(DamagedWarcError, match="not seekable: ") as caught:
        next(captures)

    assert caught.value.counts == WarcCounts(records=2, captures=1, damaged=1)
    copy = pickle.loads(pickle.dumps(caught.value))  # noqa: S301 (our own)
    assert (str(copy), copy.counts) == (str(caught.value), caught.value.counts)


@pytest.mark.parametrize("file", [plain, zipped])
@pytest.mark.parametrize(
    "damage",
    [
        pytest.param(b"garbage\r\n" * 9, id="garbage"),
        pytest.param(member(b""), id="empty member"),
        pytest.param(member(b"garbage"), id="member that is no record"),
        pytest.param(member(robots(C))[:-20], id="cut member"),
        pytest.param(2 * member(robots(C))[:-8], id="two damaged members"),
        pytest.param(
            member(robots(C, length=10**6, WARC_Type="request")), id="wrong length"
        ),
    ],
)
def test_damage_is_skipped_and_counted(
    file: Callable[..., bytes], damage: bytes
) -> None:
    if file is plain:
        damage = damage.removeprefix(b"\x1f\x8b")

    pairs, counts = read(file(robots(A)) + damage + b"\r\n" + file(robots(B)))

    assert [(o, r.status) for o, r in pairs if o != C] == [(A, 200), (B, 200)]
    assert counts.damaged == 1


def test_other_compression_than_gzip_ends_with_the_first_damage() -> None:
    pairs, counts = read(in_zstd(robots(A)) + b"\0" * 99 + in_zstd(robots(B)))

    assert [origin for origin, _ in pairs] == [A]
    assert counts.damaged == 1


def test_one_damaged_byte_costs_at_most_its_own_record() -> None:
    members = [member(robots(origin)) for origin in (A, C, B)]
    for place in range(len(members[1])):
        damaged = bytearray(members[1])
        damaged[place] ^= 0xFF

        pairs, counts = read(members[0] + damaged + members[2])

        whole = [(origin, r.body) for origin, r in pairs if origin != C]
        assert whole == [(A, RULES), (B, RULES)], place
        assert {r.body for _, r in pairs} <= {RULES, b""}
        assert counts.damaged <= 1


@pytest.mark.parametrize("file", [plain, zipped])
def test_file_that_is_cut_anywhere_says_so(file: Callable[..., bytes]) -> None:
    first, second = file(robots(A)), file(robots(B))
    for length in range(1, len(second) - 4):
        pairs, counts = read(first + second[:length])

        assert pairs[0][1].body == RULES
        bodies = {(r.status, r.body) for _, r in pairs[1:]}
        assert bodies <= {(206, b""), (200, RULES)}, length
        assert counts.damaged == 1, length


@pytest.mark.parametrize("place", [-50_000, -8])
def test_damage_far_behind_the_head_of_a_record_is_seen(place: int) -> None:
    """The whole body can be read before the checksum of its member."""
    damaged = bytearray(member(robots(B, http(os.urandom(300_000)))))
    damaged[place : place + 4] = b"oops"
    source = redirect(f"{A}/robots.txt", f"{B}/robots.txt")

    pairs, counts = read(zipped(source) + bytes(damaged) + zipped(robots(C)))

    assert [(o, r.status) for o, r in pairs] == [(A, 301), (C, 200)]
    assert (counts.captures, counts.damaged) == (2, 1)
    assert counts.unfollowed_redirects == 1


def test_redirect_to_a_body_that_is_cut_off_makes_the_origin_unreachable() -> None:
    pairs, _ = read(plain(redirect(f"{A}/robots.txt", "/r"), record(f"{A}/r"))[:-9])

    assert [(o, r.status) for o, r in pairs] == [(A, 206)]


def test_redirect_to_a_capture_before_damage_is_followed() -> None:
    data = zipped(redirect(f"{A}/robots.txt", "/r"), record(f"{A}/r")) + b"\0" * 99

    pairs, _ = read(data + zipped(robots(B)))

    assert [(o, r.status) for o, r in pairs] == [(A, 200), (B, 200)]


def test_file_that_cannot_be_read_is_an_error_of_its_own() -> None:
    class Failing(io.BytesIO):
        def read(self, _: int | None = -1, /) -> bytes:
            raise OSError(5, "the disk fails")

    with pytest.raises(OSError, match="the disk fails"):
        list(responses(Failing(robots(A))))


@pytest.mark.parametrize("data", [b"<Error>AccessDenied</Error>", b"\x1f\x8b", b"x"])
def test_file_that_is_no_warc_is_an_error(data: bytes) -> None:
    with pytest.raises(DamagedWarcError, match="expected a WARC file"):
        read(data)


def test_file_without_a_byte_has_no_captures() -> None:
    assert read(b"") == ([], WarcCounts())


def test_iterator_closes_a_file_that_it_has_opened(tmp_path: Path) -> None:
    """The suite takes a ResourceWarning for an error."""
    path = tmp_path / "robots.warc.gz"
    path.write_bytes(zipped(robots(A), robots(B)))

    assert len(list(responses(path))) == 2
    with responses(str(path)) as captures:
        assert next(captures)[0] == A
    assert list(captures) == []
    responses(path).close()


def test_iterator_begins_where_the_file_is_and_leaves_it_open() -> None:
    file = io.BytesIO(b"before" + robots(A))
    file.seek(6)

    with responses(file) as captures:
        assert [origin for origin, _ in captures] == [A]

    assert not file.closed
    with pytest.raises(FileNotFoundError):
        responses("missing.warc.gz")


def test_archive_answers_as_of_a_date_between_two_snapshots(tmp_path: Path) -> None:
    path = tmp_path / "robots.warc.gz"
    gone = http(b"", status=b"HTTP/1.1 404 Not Found")
    path.write_bytes(zipped(robots(A), robots(A, gone, date=LATER)))

    def archive(as_of: str) -> RobotsArchive:
        end = datetime.fromisoformat(as_of).timestamp()
        found = {
            origin: response
            for origin, response in responses(path)
            if response.fetched_at is not None and response.fetched_at <= end
        }
        return RobotsArchive(found.get)

    url = f"{A}/private"
    answers = [
        archive(f"2024-0{month}-01T00:00:00Z").can_fetch("Bot", url)
        for month in (1, 3, 6)
    ]
    assert answers == [None, False, True]


def test_code_of_the_page_reads_several_files(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    page = _PAGE.read_text(encoding="utf-8")
    code = page.partition("```python\n")[2].partition("```")[0]
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
def test_many_records_and_long_ones_need_little_memory(tmp_path: Path) -> None:
    def figures(origins: int, *, longest: int) -> tuple[int, int, int]:
        """Captures, redirects and KiB at the peak, of a process that reads a file."""
        path = tmp_path / f"{origins}.warc"
        with path.open("wb") as file:
            file.write(robots(C, http(b"x" * longest)))
            for number in range(origins):
                host = f"{number}.example/robots.txt"
                file.write(redirect(f"http://{host}", f"https://{host}"))
                file.write(record(f"https://{host}"))
        done = subprocess.run(  # noqa: S603 (our own words)
            [sys.executable, "-c", _READER, str(path)],
            check=True,
            capture_output=True,
            text=True,
        )
        captures, followed, peak = map(int, done.stdout.split())
        return captures, followed, peak

    *_, least = figures(1_000, longest=1_000)
    captures, followed, peak = figures(20_000, longest=40 * 2**20)

    assert (captures, followed) == (40_001, 20_000)
    assert peak - least < 10 * 1024
