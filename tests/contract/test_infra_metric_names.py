"""Whatever an alert or a panel asks for is a series that a process shows, and whatever is shown is on a dashboard."""

import json
import re
from collections.abc import Iterator
from typing import Any

import promql_parser
import pytest

from alert_files import ALERTS, BOARDS, PANELS
from metric_page import documented

EVERYWHERE = {"job", "instance", "le"}
OTHERS = {"up": EVERYWHERE, "process_resident_memory_bytes": EVERYWHERE, "process_cpu_seconds_total": EVERYWHERE}
"""What Prometheus itself, and its client in every process, show."""


def labels_by_metric() -> dict[str, set[str]]:
    """Give every series that can be asked for, with its labels."""
    found = dict(OTHERS)
    for part, rows in documented().items():
        for name, (kind, labels, _) in rows.items():
            for end in ("_bucket", "_sum", "_count") if kind == "histogram" else ("",):
                found[f"headrace_{part}_{name}{end}"] = {*labels, *EVERYWHERE}
    return found


KNOWN = labels_by_metric()


@pytest.mark.parametrize("name", sorted({**ALERTS, **PANELS}))
def test_an_expression_names_metrics_and_labels_that_exist(name: str) -> None:
    expression = ALERTS[name]["expr"] if name in ALERTS else PANELS[name]
    parsed = promql_parser.parse(expression)
    asked, used = set[str](), set[str]()
    for node in selectors(parsed):
        asked.add(node.name)
        used |= {matcher.name for matcher in node.matchers.matchers}
    assert asked, "it asks for nothing"
    assert asked <= KNOWN.keys()
    grouped = {
        label for part in re.findall(r"\b(?:by|on|without) \(([^)]*)\)", expression) for label in part.split(", ")
    }
    assert used | grouped <= set().union(*(KNOWN[metric] for metric in asked))


def selectors(node: Any) -> Iterator[Any]:  # noqa: ANN401 - the parser ships no types
    """Give every selector of series below a node."""
    if isinstance(node, promql_parser.VectorSelector):
        yield node
        return
    if isinstance(node, promql_parser.MatrixSelector):
        yield from selectors(node.vector_selector)
        return
    for part in ("expr", "lhs", "rhs", "param"):
        below = getattr(node, part, None)
        if below is not None:
            yield from selectors(below)
    for below in getattr(node, "args", ()) or ():
        yield from selectors(below)


def test_every_metric_of_a_process_is_on_a_dashboard() -> None:
    """What nobody looks at should not be counted, and what is counted should be found."""
    shown = {node.name for expression in PANELS.values() for node in selectors(promql_parser.parse(expression))}
    missing = {name for name in KNOWN if not name.endswith(("_sum", "_count")) and name not in {*shown, "up"}}
    assert missing <= {"headrace_gateway_snapshot_epoch", "headrace_solver_snapshot_epoch"}


def test_dashboards_have_panels_with_a_word_for_each_and_ids_of_their_own() -> None:
    uids = [json.loads(board.read_text("utf-8"))["uid"] for board in BOARDS]
    assert uids == [board.stem for board in BOARDS]
    for board in BOARDS:
        panels = json.loads(board.read_text("utf-8"))["panels"]
        assert len({panel["id"] for panel in panels}) == len(panels)
        assert all(panel["title"] and panel["description"] for panel in panels)
