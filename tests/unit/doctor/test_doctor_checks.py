"""Each planted fault is found, by the check that is for it, with its numbers and the command that mends it."""

import pytest

from doctor_faults import PLANTED
from doctor_planted import Planted
from doctor_system import healthy
from headrace.infra.doctor.core.checks import check_names
from headrace.infra.doctor.core.contract import Severity
from headrace.infra.doctor.core.lines import report_lines


def test_a_healthy_system_is_one_line_and_exit_status_0() -> None:
    report = healthy().report()
    assert (report.healthy, report.status, report.findings) == (True, 0, ())
    assert list(report_lines(report)) == [
        f"healthy: 3 engines, 3 routes, snapshot 51 (OPTIMAL) 0.5 s old; {len(check_names())} checks found nothing"
    ]


@pytest.mark.parametrize("planted", PLANTED, ids=lambda planted: planted.name)
def test_a_planted_fault_is_found_with_its_mend(planted: Planted) -> None:
    system = healthy()
    planted.plant(system)
    report = system.report()
    (found,) = [each for each in report.findings if each.check == planted.check and planted.says in each.sentence]
    assert found.severity is planted.severity
    assert any(planted.mend in command for command in found.mend), found.mend
    assert found.meaning
    assert report.healthy is (planted.severity is Severity.NOTE)
    assert report.status == (2 if system.unreachable else int(planted.severity is not Severity.NOTE))
    # It is the only thing wrong: whatever else is found is said to follow from it.
    others = [each for each in report.findings if each.check != planted.check]
    assert [(each.check, each.sentence) for each in others if each.follows_from is None] == []


def test_every_check_is_tried_by_a_planted_fault() -> None:
    tried = {planted.check for planted in PLANTED}
    assert set(check_names()) - tried == {"registry", "unread"}
