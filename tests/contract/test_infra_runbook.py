"""Every alert has its page in the runbook, every page its alert and something to run (`test_pages` holds what)."""

import re
from pathlib import Path

import pytest

from alert_files import ALERTS, INFRA
from written_commands import written_commands

PAGES = {page.stem: page.read_text("utf-8") for page in (INFRA / "docs/runbook").glob("*.md") if page.stem != "README"}


@pytest.mark.parametrize("alert", sorted(ALERTS))
def test_an_alert_says_how_grave_it_is_what_it_means_and_has_its_page(alert: str) -> None:
    rule = ALERTS[alert]
    assert rule["labels"]["severity"] in ("warning", "critical")
    assert rule["annotations"].keys() == {"summary", "description", "runbook_url"}
    page = Path(rule["annotations"]["runbook_url"])
    assert page.parent == Path("infra/docs/runbook")
    assert page.stem == re.sub(r"(?<=[a-z])(?=[A-Z])", "-", alert.removeprefix("Headrace")).lower()
    text = PAGES[page.stem]
    assert text.startswith(f"# {alert}\n")
    assert re.findall(r"^## (.+)$", text, re.MULTILINE) == ["What it means", "Look", "What mends it"]


def test_every_page_has_its_alert_and_the_index_names_all_of_them() -> None:
    assert PAGES.keys() == {Path(rule["annotations"]["runbook_url"]).stem for rule in ALERTS.values()}
    index = (INFRA / "docs/runbook/README.md").read_text("utf-8")
    for alert, rule in ALERTS.items():
        page = Path(rule["annotations"]["runbook_url"]).name
        assert f"| [{alert}]({page}) | {rule['labels']['severity']} |" in index


@pytest.mark.parametrize("page", ["README", *sorted(PAGES)])
def test_a_page_says_what_to_run(page: str) -> None:
    text = (INFRA / f"docs/runbook/{page}.md").read_text("utf-8")
    assert any(whole for _, whole in written_commands(text))
