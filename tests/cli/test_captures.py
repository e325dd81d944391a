"""`robotsgate filter --responses`: answers from archived responses in WARC files."""

from __future__ import annotations

import gzip
import json
import sys
from typing import TYPE_CHECKING

import pytest

from tests.cli.conftest import peak_kib
from tests.integrations.warc_files import http, member, plain, record, zipped
from tests.servers.answers import Reply
from tests.tables import cases

if TYPE_CHECKING:
    from pathlib import Path

    from tests.cli.conftest import Program, Serve

_SITE, _OTHER = "https://a.example", "https://b.example"


def disallowing(path: str) -> bytes:
    return f"User-agent: *\nDisallow: {path}\n".encode()


def captured(
    date: str, path: str = "", *, site: str = _SITE, status: int = 200
) -> bytes:
    """A capture whose rules disallow only `path`."""
    block = http(disallowing(path), status=b"HTTP/1.1 %d X" % status)
    return record(f"{site}/robots.txt", block, date=date)


def damaged(record: bytes) -> bytes:
    data = member(record)
    middle = len(data) // 2
    return data[:middle] + bytes(8) + data[middle + 8 :]


def archive(folder: Path, *records: bytes, name: str = "robots.warc.gz") -> Path:
    file = folder / name
    file.write_bytes(zipped(*records))
    return file


_TWO = (captured("2024-01-01T12:00:00Z", "/1"), captured("2024-01-31T23:59:59Z", "/2"))
_OUTAGE = (
    captured("2024-01-01T12:00:00Z", "/1"),
    captured("2024-01-31T12:00:00Z", status=503),
)


@cases("records date disallowed", {
    "no date, last capture first": (_TWO[::-1], None, {"2"}),
    "the day itself": (_TWO, "2024-01-31", {"2"}),
    "a second before": (_TWO, "2024-01-31T23:59:58", {"1"}),
    "the exact second": (_TWO, "2024-01-31T23:59:59Z", {"2"}),
    "a UTC offset": (_TWO, "2024-02-01T00:59:58+01:00", {"1"}),
    "a day before any capture": (_TWO, "2023-12-31", None),
    "a failure after a good copy": (_OUTAGE, None, {"1"}),
    "a failure under another policy": (
        _OUTAGE, "2024-01-31 --policy google-2021", {"1", "2"}
    ),
})  # fmt: skip
def test_last_capture_up_to_the_date_applies(
    program: Program,
    tmp_path: Path,
    records: tuple[bytes, ...],
    date: str | None,
    disallowed: set[str] | None,
) -> None:
    file = archive(tmp_path, *records)
    options = [] if date is None else f"--as-of {date}".split()
    urls = [f"{_SITE}/{number}" for number in "12"]

    result = program(
        *("filter", "-a", "a", "--responses", file, *options),
        stdin="\n".join(urls).encode(),
    )

    if disallowed is None:
        assert (result.code, result.stdout) == (3, "")
    else:
        allowed = [url for url in urls if url[-1] not in disallowed]
        assert (result.code, result.stdout.splitlines()) == (0, allowed)


def test_files_are_read_as_one_in_the_given_order(
    program: Program, tmp_path: Path
) -> None:
    files = [
        archive(tmp_path, captured("2024-01-02T00:00:00Z", "/1"), name="1"),
        archive(tmp_path, captured("2024-01-02T00:00:00Z", "/2"), name="2"),
        archive(tmp_path, captured("2024-01-01T00:00:00Z", "/3"), name="3"),
    ]
    stdin = "\n".join(f"{_SITE}/{number}" for number in "123").encode()

    options = ["filter", "-a", "a", *(f"--responses={file}" for file in files)]
    result = program(*options, stdin=stdin)
    same = program(*options, "-q", stdin=stdin)

    assert result.stdout == same.stdout == f"{_SITE}/1\n{_SITE}/3\n"
    assert result.stderr == (
        "".join(f"{file}: 1 capture\n" for file in files)
        + "3 URLs, 2 allowed, 0 not archived\n"
    )
    assert same.stderr == ""


@cases("data", {
    "a compressed WARC file": (zipped(*_TWO),),
    "a WARC file": (b"WARC/1.1\r\n",),
    "compressed URLs": (gzip.compress(f"{_SITE}/".encode()),),
})  # fmt: skip
@pytest.mark.parametrize("options", [[], ["--responses", "x.warc"]])
def test_capture_in_the_place_of_urls_is_an_error_that_names_the_option(
    program: Program, tmp_path: Path, data: bytes, options: list[str]
) -> None:
    """Files after the first of --responses used to be captures, too."""
    file = tmp_path / "x"
    file.write_bytes(data)

    result = program("filter", "-a", "a", *options, file, file, stdin=b"")

    assert (result.code, result.stdout, result.stderr.count("\n")) == (2, "", 1)
    assert f"expected URLs; use --responses {file} " in result.stderr


def test_unarchived_url_is_neither_allowed_nor_rejected(
    program: Program, serve: Serve, tmp_path: Path
) -> None:
    server = serve(Reply())
    file = archive(tmp_path, captured("2024-01-01T00:00:00Z", "/p"))
    rejected, unknown = tmp_path / "rejected", tmp_path / "unknown"
    lines = [f"{_SITE}/x", f"{server.url}/é\x9b", f"{_SITE}/p", "foo", f"{_OTHER}/"]
    stdin = "\n".join(lines).encode()
    options = ("filter", "-a", "a", "--responses", file, "--rejected", rejected)

    result = program(*options, "--unknown", unknown, stdin=stdin)

    assert (result.code, result.stdout) == (3, f"{_SITE}/x\n")
    assert result.stderr.endswith(
        "\n4 URLs, 1 allowed, 2 not archived; 1 line without a URL\n"
    )
    rows = [row.split("\t")[0] for row in rejected.read_text().splitlines()]
    assert rows == [f"{_SITE}/p", "foo"]
    assert unknown.read_text() == f"{server.url}/é\x9b\n{_OTHER}/\n"
    assert server.targets == []
    assert program(*options, stdin=stdin) == result  # without --unknown


def test_json_has_the_date_of_the_capture_used(
    program: Program, tmp_path: Path
) -> None:
    file = archive(
        tmp_path,
        captured("1970-01-02T00:00:00Z", "/p"),
        captured("1970-01-03T00:00:00Z", status=503),
        captured("1970-01-04T00:00:00Z", status=503, site=_OTHER),
    )
    rejected, unknown = tmp_path / "rejected", tmp_path / "unknown"
    lines = [
        f'{{ "url": "{_SITE}/1", "n": 1e2 }}',
        '{"url": "HTTPS://u@A.example:443", "robots_txt_fetched_at": 1}',
        f'{{"url": "{_SITE}/p"}}',
        f'{{"url": "{_OTHER}/"}}',
        '{"url": "foo"}',
        '{"url": "https://c.example/"}',
    ]

    result = program(
        *("filter", "-a", "a", "--json", "--max-origins", "1"),
        *("--responses", file),
        *("--rejected", rejected, "--unknown", unknown),
        stdin="\n".join(lines).encode(),
    )

    day = "1970-01-02T00:00:00Z"
    assert result.code == 3
    assert result.stdout.startswith(lines[0][:-1].rstrip())  # unchanged
    dates = [row["robots_txt_fetched_at"] for row in result.records]
    assert dates == [day, day]
    assert [*result.records[0]] == ["url", "n", "robots_txt_fetched_at"]
    assert result.stdout.count("robots_txt_fetched_at") == 2
    rows = [json.loads(row) for row in rejected.read_text().splitlines()]
    dates = [row["robots_txt_fetched_at"] for row in rows]
    assert dates == [day, "1970-01-04T00:00:00Z", None]
    assert rows[1]["verdict"]["status"] == 503
    assert rows[0]["verdict"]["fetched_at"] == day
    assert unknown.read_text() == f"{lines[-1]}\n"


def test_damaged_file_is_used_up_to_the_damage(
    program: Program, tmp_path: Path
) -> None:
    file, unknown = tmp_path / "robots\x1b.warc.gz", tmp_path / "unknown"
    intact = member(captured("2024-01-01T00:00:00Z", "/p"))
    file.write_bytes(
        intact
        + damaged(captured("2024-01-02T00:00:00Z", "/q"))
        + member(captured("2024-01-01T00:00:00Z", site=_OTHER))
    )
    third = "https://c.example"
    following = archive(tmp_path, captured("2024-01-01T00:00:00Z", "/q", site=third))
    urls = [f"{site}/{path}" for site in (_SITE, _OTHER, third) for path in "pq"]

    result = program(
        *("filter", "-a", "a", "--responses", file, "--responses", following),
        *("--unknown", unknown),
        stdin="\n".join(urls).encode(),
    )

    assert (result.code, result.stdout) == (2, f"{_SITE}/q\n{third}/p\n")
    assert unknown.read_text() == f"{_OTHER}/p\n{_OTHER}/q\n"
    error, *summary = result.stderr.splitlines()
    shown = rf"{tmp_path}/robots\x1b.warc.gz: "
    assert error.startswith(
        f"robotsgate: {shown}expected an intact WARC record at byte {len(intact)}: "
    )
    assert summary[:2] == [f"{shown}1 capture", f"{following}: 1 capture"]


def test_unreadable_capture_that_applies_leaves_the_url_undecided(
    program: Program, tmp_path: Path
) -> None:
    dates = ("2023-01-01T00:00:00Z", "2024-01-01T12:00:00Z")
    revisits = [
        record(f"{_SITE}/robots.txt", b"", kind="revisit", date=date) for date in dates
    ]
    head = f"Location: {_SITE}/elsewhere\r\n".encode()
    moved = http(b"", head=head, status=b"HTTP/1.1 301 X")
    redirect = record(f"{_OTHER}/robots.txt", moved)
    file = archive(tmp_path, captured(dates[1]), *revisits, redirect)

    result = program(
        "filter", "-a", "a", "--responses", file, stdin=f"{_SITE}/1\n".encode()
    )

    assert (result.code, result.stdout) == (3, "")
    counts = "4 captures, 2 unreadable, 1 unfollowed redirect"
    assert result.stderr.startswith(f"{file}: {counts}\n")


def test_missing_extra_is_an_error_that_says_what_to_install(
    program: Program, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setitem(sys.modules, "fastwarc.warc", None)
    monkeypatch.delitem(sys.modules, "robotsgate.integrations.warc", raising=False)

    result = program("filter", "-a", "a", "--responses", "x")

    assert result.code == 2
    assert result.stderr.endswith("run pip install '.[warc]'\n")


def test_bodies_are_not_kept_in_memory(tmp_path: Path) -> None:
    body = disallowing("/p") + b"#" * 500_000
    file = tmp_path / "robots.warc.gz"
    with file.open("wb") as warc:
        for number in range(100):
            url = f"https://{number}.example/robots.txt"
            warc.write(member(plain(record(url, http(body)))))
    urls, output = tmp_path / "urls", tmp_path / "output"
    urls.write_text("https://7.example/x\nhttps://7.example/p\n")

    peak = peak_kib(
        *("filter", "-q", "-a", "a", "--responses", file), stdin=urls, stdout=output
    )

    assert output.read_text() == "https://7.example/x\n"
    assert peak < 80 * 1_024
