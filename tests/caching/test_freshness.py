"""RFC 9309 §2.4, RFC 9111 §4.2 and §5.2, RFC 9110 §10.2.3."""

from __future__ import annotations

import zlib
from email.utils import formatdate

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from robotsgate.caching._freshness import (
    CACHING_HEADERS,
    freshness_lifetime,
    http_date,
    retry_delay,
    retry_delay_asked_for,
)
from robotsgate.caching._policy import Policy

from .builders import DAY, MINUTE, NOW, ORIGIN, PRESETS

DEFAULT = DAY
SHORTEST = MINUTE
LONGEST = 7 * DAY

HINDI_600 = "\u096c\u0966\u0966"
FULL_WIDTH_600 = "\uff16\uff10\uff10"
SUPERSCRIPT_2 = "\u00b2"

JITTERED_MINUTE = 65.98034936981276
"""Of `ORIGIN`, whose CRC-32 is 0.9967… of 2^32."""


def date(seconds_from_now: float) -> str:
    return formatdate(NOW + seconds_from_now, usegmt=True)


def lifetime(headers: dict[str, str], *, policy: Policy | None = None) -> float:
    return freshness_lifetime(headers, now=NOW, policy=policy or Policy())


@pytest.mark.parametrize(
    ("headers", "expected"),
    [
        pytest.param({}, DEFAULT, id="no headers"),
        pytest.param({"cache-control": ""}, DEFAULT, id="an empty header"),
        pytest.param({"cache-control": "public"}, DEFAULT, id="no lifetime in it"),
        pytest.param({"cache-control": " , ,, "}, DEFAULT, id="commas only"),
        pytest.param({"date": date(0), "age": "10"}, DEFAULT, id="Date and Age only"),
        pytest.param({"etag": '"x"', "expires": ""}, DEFAULT, id="an empty Expires"),
    ],
)
def test_default_lifetime_holds_where_nothing_is_asked(
    headers: dict[str, str], expected: float
) -> None:
    assert lifetime(headers) == expected


@pytest.mark.parametrize(
    ("headers", "expected"),
    [
        pytest.param({"cache-control": "max-age=600"}, 600, id="max-age"),
        pytest.param({"cache-control": "s-maxage=700"}, 700, id="s-maxage"),
        pytest.param(
            {"cache-control": "max-age=600, s-maxage=700"},
            700,
            id="s-maxage goes before a max-age that stands first",
        ),
        pytest.param(
            {"cache-control": "s-maxage=700, max-age=600"},
            700,
            id="s-maxage goes before a max-age that stands second",
        ),
        pytest.param(
            {"cache-control": "Max-Age=600"}, 600, id="names in any case are known"
        ),
        pytest.param(
            {"cache-control": "public ,  max-age = 600 ,must-revalidate"},
            600,
            id="blanks around everything do not matter",
        ),
        pytest.param(
            {"cache-control": 'max-age="600"'}, 600, id="a quoted number counts"
        ),
        pytest.param(
            {"cache-control": "max-age=600, max-age=900"},
            600,
            id="the first of two max-age counts",
        ),
        pytest.param(
            {"cache-control": "max-age=0000000000000600"},
            600,
            id="leading zeros do not matter",
        ),
        pytest.param(
            {"cache-control": "max-age=600", "age": "100"},
            500,
            id="Age is subtracted from max-age",
        ),
        pytest.param(
            {"cache-control": "s-maxage=700", "age": " 100 "},
            600,
            id="Age is subtracted from s-maxage",
        ),
        pytest.param(
            {"cache-control": "max-age=600", "age": "600"},
            SHORTEST,
            id="Age as large as max-age gives the shortest lifetime",
        ),
        pytest.param(
            {"cache-control": "max-age=600", "age": "99999999999999999999"},
            SHORTEST,
            id="Age larger than max-age gives the shortest lifetime",
        ),
        pytest.param(
            {"cache-control": "max-age=600", "expires": date(5_000)},
            600,
            id="max-age goes before Expires",
        ),
        pytest.param(
            {"expires": date(600), "date": date(0)}, 600, id="Expires minus Date"
        ),
        pytest.param(
            {"expires": date(600), "date": date(-300)},
            900,
            id="Expires minus Date for a server whose clock is slow",
        ),
        pytest.param(
            {"expires": date(86_400), "date": date(85_800)},
            600,
            id="Expires minus Date for a server whose clock is fast",
        ),
        pytest.param({"expires": date(600)}, 600, id="Expires without Date"),
        pytest.param(
            {"expires": date(600), "date": "today"}, 600, id="Expires, broken Date"
        ),
        pytest.param(
            {"expires": date(-600), "date": date(0)},
            SHORTEST,
            id="Expires in the past gives the shortest lifetime",
        ),
        pytest.param(
            {"expires": date(600), "date": date(0), "age": "100"},
            600,
            id="Age is not subtracted from Expires minus Date",
        ),
    ],
)
def test_headers_ask_for_a_lifetime(headers: dict[str, str], expected: float) -> None:
    assert lifetime(headers) == expected


@pytest.mark.parametrize("directive", ["no-store", "no-cache", "max-age=0"])
@pytest.mark.parametrize(
    "pattern",
    [
        pytest.param("{}", id="alone"),
        pytest.param("public, {}", id="behind another"),
        pytest.param("{}, must-revalidate", id="before another"),
    ],
)
def test_unwanted_storage_gives_the_shortest_lifetime(
    directive: str, pattern: str
) -> None:
    assert lifetime({"cache-control": pattern.format(directive)}) == SHORTEST


@pytest.mark.parametrize("directive", ["no-store", "no-cache", "NO-STORE", "No-Cache"])
@pytest.mark.parametrize("pattern", ["{}, max-age=600", "s-maxage=600,{}"])
def test_unwanted_storage_goes_before_a_lifetime(directive: str, pattern: str) -> None:
    headers = {"cache-control": pattern.format(directive), "expires": date(600)}

    assert lifetime(headers) == SHORTEST


@pytest.mark.parametrize(
    ("headers", "expected"),
    [
        pytest.param({"cache-control": "max-age=59"}, SHORTEST, id="just too short"),
        pytest.param({"cache-control": "max-age=60"}, 60, id="as short as may be"),
        pytest.param({"cache-control": "max-age=604800"}, LONGEST, id="as long as may"),
        pytest.param({"cache-control": "max-age=604801"}, LONGEST, id="just too long"),
        pytest.param({"cache-control": f"max-age={2**31}"}, LONGEST, id="2^31"),
        pytest.param(
            {"cache-control": f"max-age={2**63 + 1}"}, LONGEST, id="over 2^63"
        ),
        pytest.param(
            {"cache-control": "max-age=" + "9" * 10_000},
            LONGEST,
            id="more digits than int() would read",
        ),
        pytest.param(
            {"expires": "Fri, 31 Dec 9999 23:59:59 GMT"}, LONGEST, id="end of time"
        ),
        pytest.param(
            {"expires": "Thu, 01 Jan 1970 00:00:00 GMT"}, SHORTEST, id="start of time"
        ),
    ],
)
def test_lifetime_stays_within_the_bounds(
    headers: dict[str, str], expected: float
) -> None:
    assert lifetime(headers) == expected


BROKEN_NUMBERS = {
    "negative": "-600",
    "with a plus": "+600",
    "a word": "forever",
    "a float": "600.0",
    "scientific": "6e2",
    "hexadecimal": "0x258",
    "with a unit": "600s",
    "grouped": "6_00",
    "with a blank inside": "6 00",
    "empty": "",
    "Hindi digits": HINDI_600,
    "full-width digits": FULL_WIDTH_600,
    "a superscript": SUPERSCRIPT_2,
    "not a number": "nan",
    "infinite": "inf",
}


@pytest.mark.parametrize("value", BROKEN_NUMBERS.values(), ids=BROKEN_NUMBERS)
class TestBrokenNumber:
    def test_broken_max_age_is_ignored(self, value: str) -> None:
        assert lifetime({"cache-control": f"max-age={value}"}) == DEFAULT

    def test_broken_max_age_leaves_expires(self, value: str) -> None:
        headers = {"cache-control": f"max-age={value}", "expires": date(600)}

        assert lifetime(headers) == 600

    def test_broken_s_maxage_leaves_max_age(self, value: str) -> None:
        assert lifetime({"cache-control": f"s-maxage={value},max-age=700"}) == 700

    def test_broken_age_is_ignored(self, value: str) -> None:
        assert lifetime({"cache-control": "max-age=700", "age": value}) == 700

    def test_broken_retry_after_is_ignored(self, value: str) -> None:
        headers = {"retry-after": value}

        assert retry_delay_asked_for(headers, now=NOW, policy=Policy()) is None


def test_directive_without_a_value_is_ignored() -> None:
    assert lifetime({"cache-control": "max-age"}) == DEFAULT


def test_text_in_quotes_is_one_value() -> None:
    """RFC 9111 §5.2: an argument may be a quoted string, commas included."""
    headers = {"cache-control": 'note="now, max-age=604800", max-age=600'}

    assert lifetime(headers) == 600


@pytest.mark.parametrize(
    "value",
    [
        pytest.param("0", id="zero"),
        pytest.param("-1", id="minus one"),
        pytest.param("never", id="a word"),
        pytest.param("2027-01-15T08:10:00Z", id="an ISO date"),
        pytest.param("Fri, 31 Dec 99999 23:59:59 GMT", id="a year with five digits"),
        pytest.param("Fri, 31 Foo 2027 23:59:59 GMT", id="no such month"),
        pytest.param("9" * 5_000, id="digits without end"),
    ],
)
def test_broken_expires_is_ignored(value: str) -> None:
    assert lifetime({"expires": value}) == DEFAULT


def test_order_of_headers_does_not_matter() -> None:
    headers = {
        "age": "100",
        "cache-control": "max-age=600",
        "date": date(0),
        "expires": date(5_000),
    }

    backwards = dict(reversed(headers.items()))

    assert lifetime(headers) == lifetime(backwards) == 500


def test_only_the_caching_headers_are_looked_at() -> None:
    looked_at = set()

    class Headers(dict[str, str]):
        def get(self, key: str, default: str = "") -> str:  # type: ignore[override]  # enough here
            looked_at.add(key)
            return default

    lifetime(Headers())
    lifetime(Headers({"expires": date(1)}))
    retry_delay_asked_for(Headers(), now=NOW, policy=Policy())

    assert looked_at <= set(CACHING_HEADERS)


def test_policy_sets_the_bounds() -> None:
    policy = Policy(default_lifetime=5, min_lifetime=100, max_lifetime=200)

    assert lifetime({}, policy=policy) == 5
    assert lifetime({"cache-control": "max-age=1"}, policy=policy) == 100
    assert lifetime({"cache-control": "max-age=150"}, policy=policy) == 150
    assert lifetime({"cache-control": "max-age=201"}, policy=policy) == 200


@pytest.mark.parametrize(
    ("preset", "longest"),
    [
        ("default", LONGEST),
        ("google_today", LONGEST),
        ("google_2021", LONGEST),
        ("rfc9309", DAY),
        ("strict", LONGEST),
    ],
)
def test_preset_bounds_the_lifetime(preset: str, longest: float) -> None:
    policy = PRESETS[preset]

    assert lifetime({}, policy=policy) == DAY
    assert lifetime({"cache-control": "max-age=9999999"}, policy=policy) == longest
    assert lifetime({"cache-control": "max-age=1"}, policy=policy) == MINUTE


@pytest.mark.parametrize(
    ("value", "expected"),
    [
        pytest.param("Sun, 06 Nov 1994 08:49:37 GMT", 784_111_777.0, id="IMF-fixdate"),
        pytest.param("Sunday, 06-Nov-94 08:49:37 GMT", 784_111_777.0, id="RFC 850"),
        pytest.param("Sun Nov  6 08:49:37 1994", 784_111_777.0, id="asctime"),
        pytest.param("Sun, 06 Nov 1994 09:49:37 +0100", 784_111_777.0, id="an offset"),
        pytest.param("", None, id="nothing"),
        pytest.param(" ", None, id="a blank"),
        pytest.param("soon", None, id="a word"),
        pytest.param("1994", None, id="a year"),
        pytest.param("Sun, 06 Nov 99999 08:49:37 GMT", None, id="a year too large"),
        pytest.param("6 nov 1994 0:0:0 +" + "9" * 400, None, id="an absurd offset"),
    ],
)
def test_http_date_is_read(value: str, expected: float | None) -> None:
    assert http_date(value) == expected


@pytest.mark.parametrize(
    ("value", "expected"),
    [
        pytest.param("120", 120, id="seconds"),
        pytest.param(" 120 ", 120, id="seconds with blanks"),
        pytest.param(date(120), 120, id="a date"),
        pytest.param("0", 60, id="at once is as short as a first retry"),
        pytest.param("59", 60, id="too short"),
        pytest.param("60", 60, id="as short as may be"),
        pytest.param("86400", DAY, id="as long as may be"),
        pytest.param("86401", DAY, id="too long"),
        pytest.param("9" * 5_000, DAY, id="far too long"),
        pytest.param(date(-1), 60, id="a date just gone"),
        pytest.param("Thu, 01 Jan 1970 00:00:00 GMT", 60, id="a date long gone"),
        pytest.param("Fri, 31 Dec 9999 23:59:59 GMT", DAY, id="a date far away"),
        pytest.param("", None, id="nothing"),
        pytest.param("soon", None, id="a word"),
        pytest.param("120, 120", None, id="two of them"),
        pytest.param("Fri, 31 Foo 9999 23:59:59 GMT", None, id="no such month"),
    ],
)
def test_retry_after_asks_for_a_delay(value: str, expected: float | None) -> None:
    headers = {"retry-after": value}

    assert retry_delay_asked_for(headers, now=NOW, policy=Policy()) == expected


def test_without_retry_after_no_delay_is_asked_for() -> None:
    assert retry_delay_asked_for({}, now=NOW, policy=Policy()) is None


def test_policy_bounds_retry_after() -> None:
    policy = Policy(retry_initial=10, retry_after_max=20)

    delays = [
        retry_delay_asked_for({"retry-after": value}, now=NOW, policy=policy)
        for value in ("9", "15", "21")
    ]

    assert delays == [10, 15, 20]


def without_jitter(delay: float, *, origin: str = ORIGIN) -> float:
    return delay / (1 + zlib.crc32(origin.encode()) / 2**32 / 10)


def delays(
    policy: Policy, *, status: int | None, failures: range | tuple[int, ...]
) -> list[float]:
    return [
        without_jitter(
            retry_delay(failures=number, status=status, origin=ORIGIN, policy=policy)
        )
        for number in failures
    ]


@pytest.mark.parametrize(
    ("status", "expected"),
    [
        pytest.param(
            None, [60, 120, 240, 480, 960, 1_920, 3_600, 3_600], id="no response"
        ),
        pytest.param(
            500, [60, 120, 240, 480, 960, 1_920, 3_600, 3_600], id="a server error"
        ),
        pytest.param(
            429, [60, 120, 240, 480, 960, 1_920, 3_600, 3_600], id="too many requests"
        ),
        pytest.param(
            503, [30, 60, 120, 240, 480, 960, 1_920, 3_600], id="a 503 starts lower"
        ),
    ],
)
def test_retry_delay_doubles_up_to_an_hour(
    status: int | None, expected: list[float]
) -> None:
    found = delays(Policy(), status=status, failures=range(1, 9))

    assert found == pytest.approx(expected)


@pytest.mark.parametrize("preset", PRESETS)
def test_presets_share_the_retry_schedule(preset: str) -> None:
    found = delays(PRESETS[preset], status=None, failures=(1, 2, 6, 7, 1_000))

    assert found == pytest.approx([60, 120, 1_920, 3_600, 3_600])


def test_retry_factor_of_one_keeps_the_delay() -> None:
    policy = Policy(retry_factor=1)

    found = delays(policy, status=None, failures=(1, 2, 10, 100_000_000))

    assert found == pytest.approx([60, 60, 60, 60])


def test_policy_sets_the_schedule() -> None:
    policy = Policy(
        retry_initial=10, retry_factor=3, retry_max=100, retry_initial_503=5
    )

    assert delays(policy, status=500, failures=range(1, 5)) == pytest.approx(
        [10, 30, 90, 100]
    )
    assert delays(policy, status=503, failures=range(1, 5)) == pytest.approx(
        [5, 15, 45, 100]
    )


@pytest.mark.parametrize("failures", [1_100, 5_000, 10**9])
@pytest.mark.parametrize("factor", [2.0, 1e300, 10])
def test_failures_without_end_do_not_overflow(failures: int, factor: float) -> None:
    policy = Policy(retry_factor=factor)

    found = delays(policy, status=None, failures=(failures,))

    assert found == pytest.approx([3_600])


def test_delay_that_grows_slowly_comes_to_its_bound() -> None:
    policy = Policy(retry_factor=1.001)

    assert delays(policy, status=None, failures=(4_000,)) == pytest.approx(
        [60 * 1.001**3_999]
    )
    assert delays(policy, status=None, failures=(5_000,)) == pytest.approx([3_600])


def jittered(origin: str) -> float:
    return retry_delay(failures=1, status=None, origin=origin, policy=Policy())


def test_jitter_adds_a_tenth_at_most() -> None:
    found = [jittered(f"https://host{number}.example") for number in range(1_000)]

    assert all(60 <= delay < 66 for delay in found)


def test_jitter_spreads_origins_over_its_span() -> None:
    found = [jittered(f"https://host{number}.example") for number in range(1_000)]

    tenths = {int((delay - 60) / 0.6) for delay in found}

    assert tenths == set(range(10))


def test_jitter_of_an_origin_is_always_the_same() -> None:
    """Not of `hash()`, which differs from process to process."""
    assert jittered(ORIGIN) == jittered(ORIGIN) == pytest.approx(JITTERED_MINUTE)


def test_jitter_differs_between_ports_and_schemes() -> None:
    origins = ("https://example.com", "http://example.com", "https://example.com:8443")

    assert len({jittered(origin) for origin in origins}) == 3


RUBBISH = st.text('0123456789-+,.:;=" GMTJanuonFri\u0967\u00b2\x00', max_size=40)
ABSURD = st.sampled_from(
    [
        "6 nov 1994 0:0:0 +" + "9" * 300,
        "6 nov 1994 0:0:0 +" + "9" * 5_000,
        "9" * 5_000 + " nov 1994 0:0:0 GMT",
        "6 nov " + "9" * 5_000 + " 0:0:0 GMT",
    ]
)
VALUES = st.one_of(
    RUBBISH,
    ABSURD,
    st.integers().map(str),
    st.integers(-4_000_000_000, 250_000_000_000).map(
        lambda seconds: formatdate(seconds, usegmt=True)
    ),
    st.builds(
        "{}={}".format,
        st.sampled_from(["max-age", "s-maxage", "no-store", "no-cache", "x"]),
        st.one_of(RUBBISH, st.integers().map(str)),
    ),
)
HEADERS = st.dictionaries(st.sampled_from(CACHING_HEADERS), VALUES)


@settings(deadline=None, derandomize=True, database=None, max_examples=400)
@given(headers=HEADERS, preset=st.sampled_from(sorted(PRESETS)))
def test_lifetime_is_the_default_or_within_the_bounds(
    headers: dict[str, str], preset: str
) -> None:
    policy = PRESETS[preset]

    found = lifetime(headers, policy=policy)

    assert (
        found == policy.default_lifetime
        or policy.min_lifetime <= found <= policy.max_lifetime
    )


@settings(deadline=None, derandomize=True, database=None, max_examples=400)
@given(value=VALUES)
def test_delay_asked_for_is_none_or_within_the_bounds(value: str) -> None:
    policy = Policy()

    found = retry_delay_asked_for({"retry-after": value}, now=NOW, policy=policy)

    assert found is None or policy.retry_initial <= found <= policy.retry_after_max
