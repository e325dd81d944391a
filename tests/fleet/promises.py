"""What a fleet promises, as a pure function of the figures."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from tests.fleet.fleet import Figures

# A checker of its own for every two rounds: those after a restart begin anew.
_FIRST_ROUND_AFTER_RESTART = 2


def broken_promises(
    figures: Figures, *, has_leases: bool, was_restarted: bool
) -> list[str]:
    """The promises that `figures` break, as sentences; empty if none.

    Args:
        figures: of a whole fleet.
        has_leases: whether its store had leases.
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
    unasked = figures.sites - len(figures.gets_by_site)
    if unasked:
        broken.append(f"BROKEN: {unasked:,} origins were never asked")
    if was_restarted:
        broken += _broken_by_restart(figures)
    elif has_leases:
        broken += _broken_by_leases(figures)
    return broken


def _broken_by_leases(figures: Figures) -> list[str]:
    """Once each; once more what a killed worker had asked and could not bring."""
    too_often = [
        f"BROKEN: origin {site} was asked {count} times"
        for site, count in sorted(figures.gets_by_site.items())
        if count > 1 + (site in figures.by_victim)
    ]
    not_again = [
        f"BROKEN: nobody has taken over origin {site}"
        for site in figures.held
        if figures.gets_by_site[site] != 2
    ]
    return too_often + not_again


def _broken_by_restart(figures: Figures) -> list[str]:
    """Once by each process while the server was gone, and then as ever."""
    broken = []
    if not figures.failures(0):
        broken.append("BROKEN: no failure of the store was counted")
    if max(figures.gets[0].values()) > figures.processes:
        broken.append("BROKEN: a process has asked an origin twice in one round")
    for number, gets in enumerate(figures.gets[1:], 1):
        most = 1 if number == _FIRST_ROUND_AFTER_RESTART else 0
        if max(gets.values(), default=0) > most:
            broken.append(f"BROKEN: too many GETs in round {number + 1}")
        if figures.failures(number):
            broken.append(f"BROKEN: the store still fails in round {number + 1}")
    return broken
