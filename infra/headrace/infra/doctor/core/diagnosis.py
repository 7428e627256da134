"""A picture -> the report: every check that is wanted, its findings in the order in which to mend them.

What follows from another check's fault comes after it, whatever its severity: mend the cause, and look again.
"""

from collections.abc import Iterable, Iterator
from dataclasses import dataclass, replace

from headrace.infra.doctor.core.checks import UNREAD, NamedCheck, check_named, check_names
from headrace.infra.doctor.core.contract import Finding, Severity
from headrace.infra.doctor.core.picture import Picture
from headrace.infra.doctor.core.words import MOST_NAMED

HEALTHY = 0
UNHEALTHY = 1
UNREACHABLE = 2
WHY_NOTHING = ("brokers", "settings")
"""The checks that say why nothing could be looked at."""
_ORDER = tuple(Severity)


@dataclass(frozen=True, slots=True)
class Report:
    """What a doctor found. `status` is the command's exit status; `healthy` where there is at most a note."""

    at_ms: int
    healthy: bool
    status: int
    checks: tuple[str, ...]
    summary: str
    findings: tuple[Finding, ...]


def diagnose(picture: Picture, now_ms: int, checks: Iterable[NamedCheck]) -> Report:
    """Judge a picture as of `now_ms`."""
    checks = tuple(checks)
    if picture.view is None or picture.unreachable is not None:
        # Nothing could be looked at: that is told whatever was asked for.
        names = {check.name for check in checks}
        checks += tuple(check_named(name) for name in WHY_NOTHING if name not in names)
    found = {
        check.name: tuple(replace(each, check=check.name) for each in check.judge(picture, now_ms)) for check in checks
    }
    faulty = {name for name, each in found.items() if any(finding.severity is Severity.FAULT for finding in each)}
    findings: list[Finding] = []
    for check in checks:
        cause = next((name for name in check.follows_from if name in faulty), None)
        findings += [
            each if each.severity is Severity.NOTE else replace(each, follows_from=cause) for each in found[check.name]
        ]
    return report_of(picture, now_ms, [check.name for check in checks], findings)


def report_of(picture: Picture | None, now_ms: int, checks: Iterable[str], findings: Iterable[Finding]) -> Report:
    """Give the report over findings, in the order in which to mend them."""
    ordered = tuple(sorted(findings, key=lambda each: (each.follows_from is not None, _ORDER.index(each.severity))))
    ill = any(each.severity is not Severity.NOTE for each in ordered)
    status = UNHEALTHY if ill else HEALTHY
    if picture is None or picture.view is None or picture.unreachable is not None:
        status = UNREACHABLE
    names = tuple(checks)
    return Report(now_ms, not ill, status, names, _summary(picture, now_ms, names, ordered), ordered)


def _summary(picture: Picture | None, now_ms: int, checks: tuple[str, ...], findings: tuple[Finding, ...]) -> str:
    asked = "" if picture is None or picture.view is None else _asked(checks)
    if any(each.severity is not Severity.NOTE for each in findings):
        counts = {severity: sum(each.severity is severity for each in findings) for severity in Severity}
        told = ", ".join(_counted(number, severity.lower()) for severity, number in counts.items() if number)
        follow = sum(each.follows_from is not None for each in findings)
        return f"{told}" + (f"; {follow} of them may follow from another" if follow else "") + asked
    if len(checks) < len(check_names()):
        return f"nothing found{asked}: this does not say that the system is healthy"
    return "healthy: " + ", ".join(_healthy(picture, now_ms)) + f"; {_counted(len(checks), 'check')} found nothing"


def _asked(checks: tuple[str, ...]) -> str:
    """Say of how many checks that is, where not of all: of the others nothing is known."""
    every = len(check_names())
    names = sorted(set(checks) - {UNREAD})
    if len(checks) >= every or not names:
        return ""
    named = f" ({', '.join(names)})" if len(names) <= MOST_NAMED else ""
    return f"; only {len(names)} of {every} checks were asked{named}"


def _healthy(picture: Picture | None, now_ms: int) -> Iterator[str]:
    if picture is None or picture.view is None:
        return
    yield _counted(len(picture.view.specs), "engine")
    yield _counted(len(picture.routes), "route")
    if picture.commit is not None:
        age_s = max(0, now_ms - picture.commit.tick_ms) / 1000
        yield f"snapshot {picture.commit.version} ({picture.commit.status}) {age_s:.1f} s old"


def _counted(number: int, noun: str) -> str:
    return f"{number} {noun}" if number == 1 else f"{number} {noun}s"
