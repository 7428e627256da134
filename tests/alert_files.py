"""What infra/ ships for Prometheus and Grafana, read once: alert rules and the panels' expressions, by name."""

import json
from pathlib import Path
from typing import Any

import yaml

INFRA = Path(__file__).parents[1] / "infra"
RULES = INFRA / "prometheus/alerts.yaml"
ALERTS: dict[str, dict[str, Any]] = {
    rule["alert"]: rule for group in yaml.safe_load(RULES.read_text("utf-8"))["groups"] for rule in group["rules"]
}
BOARDS = sorted((INFRA / "grafana/dashboards").glob("*.json"))
PANELS: dict[str, str] = {
    f"{board.stem}: {panel['title']} {target['refId']}": target["expr"]
    for board in BOARDS
    for panel in json.loads(board.read_text("utf-8"))["panels"]
    for target in panel["targets"]
}
