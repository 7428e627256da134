"""infra/docs/metrics.md as a table: what each process is said to show."""

import re
from pathlib import Path

PAGE = Path(__file__).parents[1] / "infra/docs/metrics.md"
_HEAD = re.compile(r"^## .*`headrace_(\w+)_`")
_ROW = re.compile(r"^\| `([a-z_0-9]+)` \| (counter|gauge|histogram) \| ([^|]*)\| (.*) \|$")


def documented() -> dict[str, dict[str, tuple[str, tuple[str, ...], str]]]:
    """Give by process and name: kind, labels, and what it says."""
    found: dict[str, dict[str, tuple[str, tuple[str, ...], str]]] = {}
    part = ""
    for line in PAGE.read_text("utf-8").splitlines():
        head, row = _HEAD.match(line), _ROW.match(line)
        if head:
            part = head[1]
            found[part] = {}
        elif row:
            labels = tuple(re.findall(r"`(\w+)`", row[3]))
            found[part][row[1]] = (row[2], labels, row[4])
    return found
