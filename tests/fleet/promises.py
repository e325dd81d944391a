"""Checks the figures of a fleet against what a fleet guarantees."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from tests.fleet.fleet import Figures

# Workers get a new checker every two rounds, so this round has an empty memory.
_FIRST_ROUND_AFTER_RESTART = 2


def broken_promises(
    figures: Figures, *, has_leases: bool, was_restarted: bool
) -> list[str]:
    """The guarantees that `figures` break, as sentences; empty if there are none.

    Args:
        figures: the figures of the whole fleet.
        has_leases: whether its store supports leases.
        was_restarted: whether its server was stopped in the first round.
    """
    broken = []
    if figures.wrong:
        broken.append(f"BROKEN: {figures.wrong:,} verdicts are wrong")
    if figures.verdicts != figures.expected_verdicts:
        broken.append(
            f"BROKEN: expected {figures.expected_verdicts:,} verdicts,"
            f" got {figures.verdicts:,}"
        )
    missing = figures.sites - len(figures.gets_by_site)
    if missing:
        broken.append(f"BROKEN: {missing:,} origins got no request")
    if was_restarted:
        broken += _broken_by_restart(figures)
    elif has_leases:
        broken += _broken_by_leases(figures)
    return broken


def _broken_by_leases(figures: Figures) -> list[str]:
    """One request per origin, and one more for those that a killed worker fetched."""
    too_often = [
        f"BROKEN: origin {site} got {count} requests"
        for site, count in sorted(figures.gets_by_site.items())
        if count > 1 + (site in figures.by_victim)
    ]
    not_again = [
        f"BROKEN: no worker took over origin {site}"
        for site in figures.held
        if figures.gets_by_site[site] != 2
    ]
    return too_often + not_again


def _broken_by_restart(figures: Figures) -> list[str]:
    """One request per process while the server was down, then the usual ones."""
    broken = []
    if not figures.failures(0):
        broken.append("BROKEN: no store failures were counted")
    if max(figures.gets[0].values()) > figures.processes:
        broken.append("BROKEN: a process fetched an origin twice in one round")
    for number, gets in enumerate(figures.gets[1:], 1):
        maximum = 1 if number == _FIRST_ROUND_AFTER_RESTART else 0
        if max(gets.values(), default=0) > maximum:
            broken.append(f"BROKEN: too many GETs in round {number + 1}")
        if figures.failures(number):
            broken.append(f"BROKEN: the store still fails in round {number + 1}")
    return broken
