"""A report for people: one line where all is well; else each finding with its meaning and the commands that mend it.

FAULT    topics  headrace.weights: cleanup.policy is delete; it should be compact
         delete forgets what stays as it is, ...
         $ headrace topics apply
"""

from collections.abc import Iterator
from textwrap import wrap

from headrace.infra.doctor.core.contract import Finding
from headrace.infra.doctor.core.diagnosis import Report

WIDTH = 118
_INDENT = " " * 9


def report_lines(report: Report) -> Iterator[str]:
    """Give the report's lines."""
    for finding in report.findings:
        yield from _finding(finding)
    yield report.summary


def _finding(finding: Finding) -> Iterator[str]:
    head = f"{finding.severity:<9}{finding.check}: {_printable(finding.sentence)}"
    yield from wrap(head, WIDTH, subsequent_indent=_INDENT, break_on_hyphens=False, break_long_words=False)
    cause = "" if finding.follows_from is None else f"may follow from `{finding.follows_from}`: "
    yield from wrap(
        f"{cause}{finding.meaning}",
        WIDTH,
        initial_indent=_INDENT,
        subsequent_indent=_INDENT,
        break_on_hyphens=False,
        break_long_words=False,
    )
    for command in finding.mend:
        yield f"{_INDENT}$ {_printable(command)}"


def _printable(text: str) -> str:
    """Nothing that was read from a topic moves a terminal's cursor."""
    return "".join(c if c.isprintable() else "." for c in text)
