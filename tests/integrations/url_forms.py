"""URLs in every form found in the wild, for links and for redirect Locations.

Each is built from parts. Unusual parts of one kind are combined with ordinary parts of
the others; kinds that change each other's meaning are combined in all pairs.
"""

from __future__ import annotations

from itertools import product

ALLOWED = "allowed.test"
"""The host that allows everything; others disallow paths starting with /private."""

_SCHEMES = (
    "http://", "HTTP://", "http:\\\\", "http:/\\", "http:\\/", "http:", "http:/",
    "http:///",
    "http:////", "http:\\\\\\", "//", "\\\\", "/\\", " http://", "ht\ttp://",
    "gopher://",
    "://",
)  # fmt: skip

_USERINFO = (
    "", "u@", "u:p@", "u:p:q@", "@", "a@b@", "u%40:p@", f"{ALLOWED}@", f"{ALLOWED}:80@",
    f"{ALLOWED}\\@", f"{ALLOWED}%5C@", f"{ALLOWED}%2F@", f"{ALLOWED}\\x@",
)  # fmt: skip

_HOSTS = (
    "h.test", "H.Test", "h.test.", "h.test..", "h..test", ".", "..", ".h.test", "",
    "h%2etest", "h%2Etest.", "h.test%2e", "%68.test", "h.test%00", "h.test%20",
    "h.te st",
    "h.te\tst", "h%5C.test", "h%2F.test", "h|x.test", "h{}.test", "h_x.test", "-h.test",
    "\uff48.test", "h\u3002test", "h.test\uff0e", "b\u00fccher.test", "fa\u00df.test",
    "xn--bcher-kva.test", "xn--.test", "\u2488com", "h\u00ad.test", "\u2100.test",
    "127.0.0.1", "127.0.0.1.", "127.1", "2130706433", "0x7f.1", "0177.0.0.1", "1.2.3",
    "256.1.1.1", "[::1]", "[0:0::1]", "[::1].", "[::ffff:127.0.0.1]", "[::1%25lo]",
    "[]",
    "::1", f"{ALLOWED}\\x.h.test", f"{ALLOWED}\\.h.test", f"h.test\\.{ALLOWED}",
    f"{ALLOWED}\\", f"{ALLOWED}%5C.h.test", f"{ALLOWED}%2F.h.test",
    f"{ALLOWED};.h.test",
    f"{ALLOWED}%23.h.test", f"{ALLOWED}&h.test",
)  # fmt: skip

_PORTS = (
    "", ":", ":80", ":080", ":81", ":8080", ":443", ":0", ":65536", ":8x", ":-1",
    ":+80",
    ":80:80", ": 80", ":\u0668\u0660",
)  # fmt: skip

ORDINARY_PATHS = (
    "/public", "/", "", "/a/b.html", "/a//b", "/%7Eme", "/~me", "/caf\u00e9", "/a%2Fb",
    "/a%20b", "/a+b", "/.well-known/x", "/...", "/a;p=1", "/a?b=../c", "/a?/../private",
    "/a#/private", "/a#/../private", "?q", "/a?", "/a,b!c(d)*$", "/a:b@c", "//a", "/a/",
    "/a?x=http://h.test/private", "/a?x=%2e%2e&y=\u00e9", "/a?b%5Cc",
)  # fmt: skip

_PATHS = (
    "/private", "/private/x", "/Private/x", "/%70rivate/x", "/%50rivate", "/private;x",
    "/private?x", "/private#x", "//private/x", "/private//x", "/./private/x",
    "/%2e/private/x", "/.%2f/private/x", "/a/../private/x", "/a/%2e%2e/private/x",
    "/a/%2E%2e/private/x", "/a/.%2e/private/x", "/a/%2e./private/x",
    "/a/%252e%252e/private/x", "/private/../a", "/private/%2e%2e/a", "/private/..",
    "/private/%2e%2e", "/private/.", "/private/../../a", "/a/../b/%2e%2e/private/x",
    "/private/%2e%2e/../a", "/a/../private/%2e%2e/b", "/a/%2e%2e/../private/x",
    "/../private/x", "/%2e%2e/private/x", "/..//private/x", "//../private/x",
    "/a/..//private/x", "/a/..;/private/x", "/..", "/.", "/%2e", "/a/..", "/a/.",
    "/a/../robots.txt", "/%2e/robots.txt", "/robots.txt", "/robots.txt?x",
    "/robots%2etxt",
    "//robots.txt", "/ROBOTS.TXT", "\\private\\x", "/\\private", "/a\\..\\private\\x",
    "/a/..\\private\\x", "/a\\../private/x", "/private\\..\\a", "/private\\x",
    "/private\\../a", "/a\\%2e%2e\\private", "/a/%2e%2e\\private", "/a/..%5cprivate",
    "/a%5C..%5Cprivate", "/a/b\\c/../../private", "/a/..%2fprivate", "/a\\b", "/\\",
    "\\",
    "/a?b\\..\\private", "/a#\\..\\private", "/pri\tvate/x", "/\tprivate",
    "/private/x ",
    " /private/x", "/pri vate", "/.\t./private/x", "/a/.\t./private/x",
    "/private\u00e9",
    "/\u00e9/../private", "/%", "/%2", "/%zz", "/a/%2/../private", "/private%00",
    "/%00",
    "/a/%2e%2e%00/private", "/[private]", "/a/\uff0e\uff0e/private",
    "/a/\u2025/private",
    "/private$", "/private*", '/"private', "/|private", "/a/../../../private/x",
    "/a/./././private", "/a/.../private", "/a/. ./private", "/a/%2e%20%2e/private",
)  # fmt: skip


def ordinary_urls() -> list[str]:
    """Unambiguous URLs of pages that every host allows."""
    starts = (
        "http://h.test",
        "HTTP://H.Test:80",
        "http://b\u00fccher.test",
        "http://127.0.0.1",
    )
    return [start + path for start in starts for path in ORDINARY_PATHS]


def url_forms() -> list[str]:
    """More than 700 distinct URLs."""
    forms = [f"http://h.test{path}" for path in (*ORDINARY_PATHS, *_PATHS)]
    forms += [f"http://H.TEST.:80{path}" for path in _PATHS]
    forms += [
        f"http://{userinfo}{host}{path}"
        for userinfo, host in product(_USERINFO, _HOSTS)
        if userinfo in {"", "u:p@", f"{ALLOWED}\\@"} or host in _HOSTS[:3]
        for path in ("/private/x", "/public")
    ]
    forms += [
        f"http://{host}{port}/private/x"
        for host, port in product(("h.test", "h.test.", "[::1]", ALLOWED), _PORTS)
    ]
    forms += [
        f"{scheme}{host}{path}"
        for scheme in _SCHEMES
        for host, path in product(("h.test", ALLOWED), ("/private/x", "/a/../private"))
    ]
    forms += [path for path in _PATHS if path.startswith(("/", "\\", "?"))]
    return list(dict.fromkeys(forms))
