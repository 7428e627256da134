"""A verification as JSON, as JUnit XML for a nightly job, and in sentences."""

from collections.abc import Iterator, Mapping
from typing import Any
from xml.etree import ElementTree as ET

from headrace.replay.core.instants import instant
from headrace.replay.runs.verification import MINUTE_MS, Verification
from headrace.replay.sources.manifest import plain_finding

OTHER_BUILD = (
    "verify it with the build and on the machine that recorded it; what the change does to the weights, "
    "`headrace replay run --policy recorded` shows"
)
"""What to do where the inputs are proved and the result is another."""


def as_json(result: Verification) -> Mapping[str, Any]:
    """Give a verification as JSON's types."""
    return {
        "holds": result.holds,
        "from_ms": result.span.from_ms,
        "to_ms": result.span.to_ms,
        "ticks": result.ticks,
        "identical": result.identical,
        "proved": result.proved,
        "differing": result.differing,
        "unverifiable": result.unverifiable,
        "stopped": result.stopped,
        "differences": [
            {
                "version": each.version,
                "tick_ms": each.tick_ms,
                "input": each.input,
                "term": each.term,
                "weight": each.weight,
                "same_bytes": each.same_bytes,
                "policy_hash": each.policy_hash,
                "policy_hash_now": each.policy_hash_now,
                "proved": each.proved,
            }
            for each in result.differences
        ],
        "reasons": [{"version": r.version, "tick_ms": r.tick_ms, "reason": r.reason} for r in result.reasons],
        "findings": [plain_finding(each) for each in result.findings],
    }


def as_junit(result: Verification) -> bytes:
    """Give a verification as JUnit XML: a test case a minute, which fails by the first tick that is not identical."""
    bad = sum(not_identical > 0 for _, not_identical in result.by_minute.values())
    suite = ET.Element(
        "testsuite", name="headrace replay verify", tests=str(max(1, len(result.by_minute))), failures=str(bad)
    )
    for minute, (ticks, not_identical) in sorted(result.by_minute.items()):
        case = ET.SubElement(suite, "testcase", classname="headrace.replay.verify", name=instant(minute))
        if not_identical:
            first = next(_told(result, minute), "see the minutes before")
            failure = ET.SubElement(case, "failure", message=f"{not_identical} of {ticks} snapshots are not identical")
            failure.text = first
    if not result.by_minute:
        case = ET.SubElement(suite, "testcase", classname="headrace.replay.verify", name="range")
        ET.SubElement(case, "skipped", message="no snapshot lies in the range")
    text: bytes = ET.tostring(suite, encoding="utf-8", xml_declaration=True)
    return text


def as_lines(result: Verification) -> Iterator[str]:
    """Say what a verification came to."""
    span = f"{instant(result.span.from_ms)} to {instant(result.span.to_ms)}"
    proved = f"{result.proved} of them from proved inputs"
    yield f"{result.identical} of {result.ticks} snapshots are identical, {proved}; {span}"
    for each in result.differences[:3]:
        same = " (the weights are the same)" if each.same_bytes else ""
        yield f"version {each.version}, {instant(each.tick_ms)}: {each.sentence}{same}"
    if result.differing > len(result.differences[:3]):
        yield f"and {result.differing - len(result.differences[:3])} more differ"
    yield from _advice(result)
    for reason in result.reasons[:1]:
        yield f"{result.unverifiable} cannot be verified, from version {reason.version}: {reason.reason}"
    for finding in result.findings:
        yield str(finding)
    if result.stopped:
        yield "stopped before the end"


def _advice(result: Verification) -> Iterator[str]:
    """Say what to do about differences that no input explains, by the first of them."""
    for each in result.differences:
        if each.proved:
            yield f"{each.rules}; {OTHER_BUILD}"
            return


def _told(result: Verification, minute: int) -> Iterator[str]:
    for each in result.differences:
        if minute <= each.tick_ms < minute + MINUTE_MS:
            why = f"; {each.rules}; {OTHER_BUILD}" if each.proved else ""
            yield f"version {each.version}: {each.sentence}{why}"
    for reason in result.reasons:
        if minute <= reason.tick_ms < minute + MINUTE_MS:
            yield f"version {reason.version}: {reason.reason}"
