"""The commands of a report, made to reach the same configuration as the doctor that gave it."""

import shlex
from collections.abc import Callable, Iterator, Mapping
from dataclasses import replace
from typing import cast

from headrace.infra.configuration.text import masked
from headrace.infra.doctor.core.diagnosis import Report


def with_flags(report: Report, params: Mapping[str, object], takes: Callable[[str], bool]) -> Report:
    """Give the report with `--config`, `--bootstrap` and `--set` as they were given, in each command that `takes` them.

    A secret is masked: whoever gave it knows it.
    """
    flags = " ".join(_flags(params))
    if not flags:
        return report
    findings = tuple(
        replace(each, mend=tuple(_with(command, flags) if takes(command) else command for command in each.mend))
        for each in report.findings
    )
    return replace(report, findings=findings)


def without(report: Report, hidden: Callable[[str], str]) -> Report:
    """Give the report with every text as `hidden` gives it: what was read from a broker may repeat a password."""

    def of(text: str | None) -> str | None:
        return None if text is None else hidden(text)

    findings = tuple(
        replace(
            each,
            subject=hidden(each.subject),
            sentence=hidden(each.sentence),
            meaning=hidden(each.meaning),
            mend=tuple(map(hidden, each.mend)),
            value=of(each.value),
            bound=of(each.bound),
        )
        for each in report.findings
    )
    return replace(report, findings=findings)


def _with(command: str, flags: str) -> str:
    """Put flags behind a command of headrace, before what its output goes to."""
    ends = [at for mark in (" | ", " > ", "  #") if (at := command.find(mark)) >= 0]
    end = min(ends, default=len(command))
    given = command[:end]
    # A setting that the command itself names stands last, so that it wins.
    head, mark, own = given.partition(" --set ")
    return f"{head} {flags}{mark}{own}{command[end:]}"


def _flags(params: Mapping[str, object]) -> Iterator[str]:
    if params.get("config_file") is not None:
        yield f"--config {shlex.quote(str(params['config_file']))}"
    if params.get("bootstrap") is not None:
        yield f"--bootstrap {shlex.quote(str(params['bootstrap']))}"
    for text in cast("tuple[str, ...]", params.get("settings") or ()):
        name, _, value = text.partition("=")
        yield f"--set {shlex.quote(f'{name}={masked(name, value)}')}"
