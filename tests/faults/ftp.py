"""Faults of FTP servers."""

from __future__ import annotations

from typing import TYPE_CHECKING

from tests.faults.fault import RULES
from tests.faults.rows import flood, rules_apply, timed_out, unavailable, unreachable
from tests.servers.answers import dripping
from tests.servers.ftp import FtpPart
from tests.servers.loopback import Connection

if TYPE_CHECKING:
    from collections.abc import Callable

    from tests.faults.stage import Stage

_PIECE = b"# A comment, so that the rules stay as they are.\n" * 1_000


def _send_rules(connection: Connection) -> None:
    connection.send(RULES)


def _send_rules_forever(connection: Connection) -> None:
    connection.send(RULES)
    connection.send_for_ever(_PIECE)


def _ftp(part: FtpPart) -> Callable[[Stage], str]:
    def arrange(stage: Stage) -> str:
        server = stage.serve(part, reads_requests=False)
        return server.url.replace("http:", "ftp:")

    return arrange


FTP = (
    rules_apply("sends the file over FTP", _ftp(FtpPart(data=_send_rules))),
    rules_apply("names another address for the data, which the checker ignores",
        _ftp(FtpPart(data=_send_rules, host="127,9,9,9"))),
    rules_apply("sends an endless file", _ftp(FtpPart(data=_send_rules_forever))),
    unavailable("has no such file (550)", _ftp(FtpPart(replies={"RETR": b"550 no"}))),
    unreachable("refuses the anonymous login (530)",
        _ftp(FtpPart(replies={"PASS": b"530 Login incorrect"})),
        error="530 Login incorrect"),
    unreachable("has no passive mode (550)",
        _ftp(FtpPart(replies={"PASV": b"550 no"})), error="550 no"),
    unreachable("names a port of 5,000 digits",
        _ftp(FtpPart(replies={"PASV": b"227 (127,0,0,1,1," + b"9" * 5_000 + b")"})),
        error=""),
    unreachable("aborts the transfer (426)",
        _ftp(FtpPart(data=_send_rules, end=b"426 aborted")), error="426 aborted"),
    unreachable("closes in the middle of a login",
        _ftp(FtpPart(replies={"PASS": Connection.close})), error="EOFError"),
    unreachable("replies with a line of 10 MB",
        _ftp(FtpPart(replies={"USER": flood(b"3" * 100_000, 100)})),
        error="got more than 8192 bytes"),
    unreachable("replies with endless lines",
        _ftp(FtpPart(replies={"USER": flood(b"331-more\r\n" * 1_000, 900)})),
        error="the FTP replies are too long"),
    timed_out("is silent over FTP", _ftp(FtpPart(replies={"USER": Connection.hang}))),
    timed_out("opens the data connection and sends nothing",
        _ftp(FtpPart(data=Connection.hang))),
    timed_out("sends the file byte by byte", _ftp(FtpPart(data=dripping(b"#")))),
)  # fmt: skip
