"""The order of findings, what each command is given, which checks run, and what is printed."""

from contextlib import suppress
from dataclasses import replace

import click
import pytest

from doctor_faults import PLANTED
from doctor_planted import Planted
from doctor_system import NOW_MS, System, healthy
from headrace.infra.doctor.command_line import resolved, takes_configuration, words_of
from headrace.infra.doctor.core.checks import check_named, check_names, chosen
from headrace.infra.doctor.core.contract import Finding, Severity, fault, note, warning
from headrace.infra.doctor.core.diagnosis import diagnose, report_of
from headrace.infra.doctor.core.lines import report_lines
from headrace.infra.doctor.core.picture import Unread
from headrace.infra.doctor.core.slices import Appetite, Slice, earlier_slice, newest_slice
from headrace.infra.doctor.core.with_flags import with_flags, without
from headrace.infra.doctor.core.words import duration, some
from headrace.schemas.errors import InvalidInputError
from headrace.schemas.overrides import Override, OverrideKind


def planted(name: str) -> System:
    system = healthy()
    next(each for each in PLANTED if each.name == name).plant(system)
    return system


def test_what_follows_from_another_fault_comes_after_it_and_says_so() -> None:
    found = planted("no worker").findings()
    assert found[0].check == "workers"
    assert {each.follows_from for each in found[1:]} == {"workers"}


def test_faults_come_before_warnings_and_warnings_before_notes() -> None:
    findings = (note("a", "n", ""), warning("a", "w", ""), fault("a", "f", ""))
    report = report_of(healthy().picture(), NOW_MS, ("x",), findings)
    assert [each.severity for each in report.findings] == [Severity.FAULT, Severity.WARNING, Severity.NOTE]
    assert report.summary == f"1 fault, 1 warning, 1 note; only 1 of {len(check_names())} checks were asked (x)"


def test_of_a_healthy_system_a_part_of_the_checks_says_no_more_than_that() -> None:
    picture, some_of_them = healthy().picture(), chosen(("topics", "permissions"), ())
    (line,) = report_lines(diagnose(picture, NOW_MS, some_of_them))
    assert line == (
        f"nothing found; only 2 of {len(check_names())} checks were asked (permissions, topics): this does not say "
        "that the system is healthy"
    )


def test_a_broker_that_dies_while_it_is_looked_at_is_one_that_does_not_answer() -> None:
    unread = (Unread("records of headrace.signals.engine", "Connection refused"),)
    picture = replace(healthy().picture(), unreachable="it answered, and no longer does: refused", unread=unread)
    report = diagnose(picture, NOW_MS, [check_named("unread")])
    assert report.status == 2
    assert [(each.check, each.severity, each.follows_from) for each in report.findings] == [
        ("brokers", Severity.FAULT, None),
        ("unread", Severity.WARNING, "brokers"),
    ]


def test_a_registry_that_does_not_answer_is_found() -> None:
    system = healthy()
    system.setup = replace(system.setup, registry_url="http://registry:8081")
    picture = replace(system.picture(), registry_problem="Connection refused")
    (found,) = diagnose(picture, NOW_MS, [check_named("registry")]).findings
    assert found.sentence == "registry.url is http://registry:8081, which cannot be asked: Connection refused"
    assert found.mend == ("curl -fsS http://registry:8081/subjects",)


def test_what_could_not_be_read_is_no_good_news() -> None:
    picture = replace(healthy().picture(), unread=(Unread("records of x", "late"), Unread("records of y", "late")))
    (found,) = diagnose(picture, NOW_MS, [check_named("unread")]).findings
    assert found.sentence == "not looked at: records of x, records of y: late"


def test_nothing_is_judged_of_what_was_not_gathered() -> None:
    picture = replace(
        planted("a stale engine").picture(), view=None, signals=None, written=None, decisions=None, letters=None
    )
    assert diagnose(picture, NOW_MS, [check_named(name) for name in check_names()]).findings == ()


def test_checks_are_chosen_by_name_and_every_wrong_name_is_told() -> None:
    assert [check.name for check in chosen(("topics", "lag"), ("lag",))] == ["topics", "unread"]
    assert [check.name for check in chosen(("topics",), ("unread",))] == ["topics"]
    assert len(chosen((), ("lag",))) == len(check_names()) - 1
    with pytest.raises(InvalidInputError) as raised:
        chosen(("topic",), ("nonsense",))
    first, second = raised.value.problems
    assert first == "--only is 'topic'; the nearest is topics"
    assert second.startswith("--skip is 'nonsense'; ")


def test_a_check_follows_only_from_checks_that_there_are() -> None:
    for name in check_names():
        assert set(check_named(name).follows_from) <= set(check_names()) - {name}


def flagged(command: str, **params: object) -> str:
    report = report_of(None, NOW_MS, (), (Finding(Severity.FAULT, "a", "s", "m", (command,)),))
    return with_flags(report, params, takes_configuration).findings[0].mend[0]


def test_commands_reach_the_same_configuration_as_the_doctor() -> None:
    given = {"config_file": "my headrace.toml", "bootstrap": "k:9092", "settings": ("topics.prefix=x.",)}
    flags = "--config 'my headrace.toml' --bootstrap k:9092 --set topics.prefix=x."
    assert flagged("headrace topics apply", **given) == f"headrace topics apply {flags}"
    assert flagged("headrace tail --json | jq .a", **given) == f"headrace tail --json {flags} | jq .a"
    assert flagged("headrace solver --set a.b=1", **given) == f"headrace solver {flags} --set a.b=1"
    assert flagged("headrace fleet apply --form > f", **given) == "headrace fleet apply --form > f"
    assert flagged("headrace map presets", **given) == "headrace map presets"
    assert flagged("kafka-topics --list", **given) == "kafka-topics --list"


@pytest.mark.parametrize("fault_", PLANTED, ids=lambda each: each.name)
def test_every_command_of_headrace_that_is_named_is_one_with_these_options(fault_: Planted) -> None:
    system = planted(fault_.name)
    report = with_flags(system.report(), {"bootstrap": "k:9092", "settings": ("a.b=c",)}, takes_configuration)
    for command in {command for each in report.findings for command in each.mend}:
        words = words_of(command)
        if words:
            parsed, left = resolved(words)
            with suppress(click.exceptions.Exit):  # --form and --print-config end there
                parsed.make_context("headrace", left)
        else:
            assert command.split()[0] in ("chronyc", "curl") or command.startswith("kafka-"), command


def test_a_secret_is_printed_neither_with_the_flags_nor_where_a_broker_repeats_it() -> None:
    given = flagged("headrace solver", settings=("kafka.options.sasl.password=hush", "a.b=c"))
    assert given == "headrace solver --set 'kafka.options.sasl.password=***' --set a.b=c"
    report = report_of(None, NOW_MS, (), (fault("hush", "no hush", "hush!", "x hush", value="hush"),))
    assert "hush" not in str(without(report, lambda text: text.replace("hush", "***")))


def test_what_was_read_from_a_topic_moves_no_cursor() -> None:
    report = report_of(healthy().picture(), NOW_MS, (), (fault("a", "bad \x1b[2J\x07 end", "means", "x\x1by"),))
    assert all(line.isprintable() for line in report_lines(report))


@pytest.mark.parametrize(
    ("at_since", "slice_"),
    [
        (None, Slice("t", 0, 90, 100)),  # by number where the time is not known
        (95, Slice("t", 0, 90, 100)),  # at least ten
        (60, Slice("t", 0, 60, 100)),
        (2, Slice("t", 0, 50, 100)),  # at most fifty
    ],
)
def test_of_a_partition_the_newest_are_read_within_bounds(at_since: int | None, slice_: Slice) -> None:
    assert newest_slice("t", 0, 0, 100, at_since, Appetite(1_000, 10, 50)) == slice_


def test_of_a_while_ago_a_few_are_read_that_the_newest_do_not_hold() -> None:
    newest, appetite = Slice("t", 0, 60, 100), Appetite(1_000, 10, 50, 9_000, 5)
    assert earlier_slice(newest, 0, 20, appetite) == Slice("t", 0, 20, 25)
    assert earlier_slice(newest, 0, 58, appetite) == Slice("t", 0, 58, 60)
    assert earlier_slice(newest, 0, 60, appetite) is None
    assert earlier_slice(newest, 0, None, appetite) is None
    assert newest_slice("t", 0, 7, 7, None, appetite) is None


def test_words_are_short() -> None:
    assert [duration(ms) for ms in (350, 4_200, 60_000, 720_000, 12_600_000, 604_800_000)] == [
        "350 ms",
        "4.2 s",
        "60 s",
        "12 min",
        "3.5 h",
        "7 d",
    ]
    assert some(map(str, range(7))) == "0, 1, 2, 3, 4 and 2 more"


def test_of_a_short_drain_only_the_last_quarter_is_soon() -> None:
    for left_s, soon in ((290, False), (60, True)):
        system = healthy()
        until_ms = NOW_MS + 1_000 * left_s
        system.overrides.append(Override(OverrideKind.DRAIN, "engine-b", "ann", "x", until_ms - 300_000, until_ms))
        assert [each.check for each in system.findings()] == (["overrides"] if soon else [])


def test_while_requests_are_refused_an_engine_that_is_out_is_the_fault_that_they_follow_from() -> None:
    system = planted("a stale engine")
    next(each for each in PLANTED if each.name == "more demand than capacity").plant(system)
    found = [(each.check, each.severity, each.follows_from) for each in system.findings()]
    assert found == [("engines", Severity.FAULT, None), ("capacity", Severity.FAULT, "engines")]


def test_topics_that_are_missing_are_one_finding() -> None:
    system = healthy()
    system.missing = {"shadow", "dead-letters"}
    (found,) = system.findings()
    assert found.sentence == "2 of 14 topics are missing: headrace.dead-letters, headrace.shadow"
