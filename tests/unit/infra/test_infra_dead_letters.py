"""What `headrace dead-letters` shows: which ones, on one line each, with their bytes."""

import base64
from dataclasses import replace

import orjson
import pytest

from headrace.infra.dead_letters.choice import Choice, parse_choice
from headrace.infra.dead_letters.lines import heading, json_line, preview, table_line
from headrace.infra.dead_letters.printer import LetterPrinter
from headrace.infra.dead_letters.summary import LetterGroup, LetterSummary, summary_lines
from headrace.schemas.codec import encode
from headrace.schemas.dead_letters import DeadLetter, RejectReason
from headrace.schemas.errors import InvalidInputError
from headrace.schemas.raw import RawRecord

LETTER = DeadLetter(
    topic="headrace.signals.engine",
    partition=3,
    offset=41,
    timestamp_ms=999_000,
    record_key=b"engine-x",
    record_value=b'{"ttft": NaN}\x00\n',
    reason=RejectReason.UNKNOWN_ENGINE,
    detail="engine_id is 'engine-x'; not in the fleet\nsecond",
    stage="streams",
)


def test_a_line_says_when_from_where_why_and_what_it_held() -> None:
    line = table_line(LETTER, 1_000_000)
    assert "\n" not in line
    cells = [cell for cell in line.split("  ") if cell.strip()]
    assert [cell.strip() for cell in cells] == [
        "1970-01-01 00:16:40.000",
        "headrace.signals.engine/3/41",
        "UNKNOWN_ENGINE",
        "engine-x",
        '{"ttft": NaN}..',
        "engine_id is 'engine-x'; not in the fleet.second",
    ]
    assert line.index("UNKNOWN_ENGINE") == heading().index("reason")


def test_a_line_of_json_holds_the_original_bytes() -> None:
    found = orjson.loads(json_line(LETTER, 1_000_000))
    assert base64.b64decode(found["value_base64"]) == LETTER.record_value
    assert base64.b64decode(found["key_base64"]) == b"engine-x"
    assert (found["topic"], found["partition"], found["offset"]) == ("headrace.signals.engine", 3, 41)
    assert (found["reason"], found["refused_ms"], found["stage"]) == ("UNKNOWN_ENGINE", 1_000_000, "streams")


def test_what_is_too_long_for_a_preview_ends_in_its_length() -> None:
    assert preview(b"a" * 100, 12) == "aaa... 100 B"
    assert preview(b"", 12) == ""
    assert preview(None, 12) == "-"


def test_those_are_shown_that_are_asked_for() -> None:
    assert Choice().takes(LETTER, 0)
    now_ms = 10_000_000
    by_reason = parse_choice((), ("unknown_engine",), None, now_ms)
    assert by_reason.takes(LETTER, 0)
    assert not parse_choice((), ("MALFORMED",), None, now_ms).takes(LETTER, 0)
    assert parse_choice(("headrace.signals.engine",), (), None, now_ms).takes(LETTER, 0)
    assert not parse_choice(("other",), (), None, now_ms).takes(LETTER, 0)
    young = parse_choice((), (), "5m", now_ms)
    assert young.takes(LETTER, now_ms - 300_000)
    assert not young.takes(LETTER, now_ms - 300_001)


def test_what_cannot_be_asked_for_is_refused_with_the_nearest() -> None:
    with pytest.raises(InvalidInputError) as caught:
        parse_choice((), ("UNKNOWN_ENGIN",), "812", 0)
    assert caught.value.problems == (
        "--reason is 'UNKNOWN_ENGIN'; the nearest is UNKNOWN_ENGINE",
        "--since is '812'; expected an age (30s, 5m, 2h, 1d) or an ISO 8601 instant",
    )
    with pytest.raises(InvalidInputError, match="dead-letters") as caught:
        parse_choice((), (), "yesterday", 0)
    assert caught.value.problems == (
        "--since is 'yesterday'; expected an age (30s, 5m, 2h, 1d) or an ISO 8601 instant",
    )


def test_where_none_is_wanted_the_reasons_that_there_are_are_named() -> None:
    said: list[str] = []
    show = LetterPrinter(parse_choice((), ("UNKNOWN",), None, 0), said.append, as_json=False)
    assert show.none_shown("letters") == "none of 0 in letters"
    for offset, reason in enumerate((RejectReason.NEGATIVE, RejectReason.UNKNOWN_ENGINE, RejectReason.UNKNOWN_ENGINE)):
        show(RawRecord("letters", 0, offset, 1_000, b"k", encode(replace(LETTER, reason=reason))))
    assert (show.shown, said) == (0, [])
    assert show.none_shown("letters") == "none of 3 in letters, which are 2 UNKNOWN_ENGINE, 1 NEGATIVE"
    later = LetterPrinter(parse_choice((), (), "5m", 600_000), said.append, as_json=False)
    assert later.none_shown("letters") == "none of 0 in letters since then"


def test_a_summary_counts_by_reason_and_source_and_shows_the_newest_of_each() -> None:
    said: list[str] = []
    summary = LetterSummary(parse_choice((), (), "5m", 600_000), said.append)
    unlike = replace(LETTER, topic="other", reason=RejectReason.NEGATIVE)
    dated = [(299_999, "old"), (300_000, "a"), (300_002, "newest\n"), (300_001, "c")]
    for offset, (at_ms, detail) in enumerate(dated):
        letter = replace(LETTER, detail=detail, offset=offset)
        summary(RawRecord("letters", 0, offset, at_ms, b"k", encode(letter)))
    summary(RawRecord("letters", 0, 9, 400_000, b"k", encode(unlike)))
    summary(RawRecord("letters", 0, 10, 400_000, b"k", b"no letter"))
    most, least = summary.groups()
    assert most == LetterGroup("UNKNOWN_ENGINE", LETTER.topic, "streams", 3, 300_002, 3, 2, "newest\n")
    assert (least.reason, least.topic, least.count) == ("NEGATIVE", "other", 1)
    assert len(said) == 1
    lines = summary_lines((most, least))
    assert lines[1].split() == (
        ["3", "UNKNOWN_ENGINE", f"{LETTER.topic},", "streams", "1970-01-01", "00:05:00.002", "newest."]
    )
    assert lines[0].index("reason") == lines[1].index("UNKNOWN_ENGINE")
    assert summary_lines(()) == ()
