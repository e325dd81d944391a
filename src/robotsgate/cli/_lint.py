"""`robotsgate lint`: finds robots.txt lines that don't do what they seem to do."""

from __future__ import annotations

from collections import Counter
from dataclasses import replace

import anyio
import click

from robotsgate import Origin, Severity, SystemClock, __version__
from robotsgate.cli._findings import Finding, about_answer, about_file, sarif
from robotsgate.cli._options import (
    Settings,
    fetched_robots_txt,
    fetching_options,
    is_url,
    parsed_file,
)
from robotsgate.cli._shell import Exit, complain, note, tell, tell_json
from robotsgate.events import CheckerEvent, RobotsTxtFetched

_STYLES = {
    Severity.ERROR: "bold red",
    Severity.WARNING: "bold yellow",
    Severity.NOTE: "bold cyan",
}


@click.command()
@click.option(
    "--format",
    "form",
    type=click.Choice(["text", "json", "sarif"]),
    default="text",
    show_default=True,
    help="Print findings like compiler messages, as JSON Lines, or as SARIF.",
)
@click.option("--json", "form", flag_value="json", help="Same as --format json.")
@click.option("--strict", "is_strict", is_flag=True, help="Treat warnings as errors.")
@fetching_options
@click.argument("sources", nargs=-1, required=True, metavar="{URL|FILE|-}...")
def lint(
    *, form: str, is_strict: bool, settings: Settings, sources: tuple[str, ...]
) -> Exit:
    """Find lines in robots.txt files that don't do what they seem to do.

    An argument that contains :// is a URL; anything else is a file. URLs are always
    fetched, so you always see the current response; --store has no effect.

    The exit code is 1 if there are errors, and 2 if a file is missing.

    \b
    Examples:
      robotsgate lint robots.txt
      robotsgate lint --strict --format sarif https://example.com/ > robots.sarif
    """  # noqa: D301 (\b stops click from rewrapping)
    in_files: list[tuple[str, Finding]] = []
    is_complete = True
    for source in sources:
        name, findings, trouble = _findings_of(source, settings)
        in_files += [(name, finding) for finding in findings]
        for finding in findings:
            if form == "json":
                tell_json({"file": name, **finding.as_dict()})
            elif form == "text":
                _tell(finding, name)
        if trouble is not None:
            complain(trouble)
            is_complete = False
    if form == "sarif":
        tell_json(sarif(in_files, version=__version__))
    if not is_complete:
        return Exit.TROUBLE
    counts = Counter(finding.severity for _, finding in in_files)
    if not settings.is_quiet:
        note(_summary(counts))
    failures = counts[Severity.ERROR] + (counts[Severity.WARNING] if is_strict else 0)
    return Exit.DISALLOWED if failures else Exit.ALLOWED


def _findings_of(
    source: str, settings: Settings
) -> tuple[str, list[Finding], str | None]:
    """A file's name, its findings, and why it could not be read (`None` if it was)."""
    if is_url(source):
        origin = Origin.from_url(source)
        return origin.robots_url, *anyio.run(_findings_at, origin, settings)
    name = "<stdin>" if source == "-" else source
    try:
        return name, about_file(parsed_file(source, settings.dialect)), None
    except click.ClickException as error:
        return name, [], error.message


async def _findings_at(
    origin: Origin, settings: Settings
) -> tuple[list[Finding], str | None]:
    """The findings for `origin`, and why it has no file to read (`None` if it has)."""
    events: list[CheckerEvent] = []
    in_file: list[Finding] = []
    trouble = None
    async with replace(settings, store=None).checker(on_event=events.append) as checker:
        try:
            in_file = about_file(await fetched_robots_txt(origin.robots_url, checker))
        except click.ClickException as error:
            trouble = error.message
    fetched = next(one for one in events if isinstance(one, RobotsTxtFetched))
    findings = about_answer(
        origin,
        status=fetched.status,
        headers=dict(fetched.headers),
        redirects=fetched.redirects,
        now=SystemClock().now(),
    )
    return findings + in_file, trouble


def _tell(finding: Finding, name: str) -> None:
    tell(
        (f"{name}:{max(1, finding.line)}:{max(1, finding.column)}: ", "bold"),
        (finding.severity.value, _STYLES[finding.severity]),
        f": {finding.message} ",
        (f"[{finding.code}]", "dim"),
    )


def _summary(counts: Counter[Severity]) -> str:
    return ", ".join(
        f"{counts[severity]} {severity.value}{'' if counts[severity] == 1 else 's'}"
        for severity in Severity
    )
