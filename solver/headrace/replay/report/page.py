"""The document as one HTML file: works offline, in light and dark, on paper. Plotly travels inside it.

A content security policy forbids the page every request, so that what it shows cannot depend on anything but itself.
"""

import json
import re
from collections.abc import Mapping, Sequence
from datetime import UTC, datetime
from importlib import resources
from typing import Any

from headrace.replay.report.farthest import differs_most
from headrace.replay.report.tables import (
    all_numbers_table,
    calibration_table,
    differences,
    esc,
    groups_table,
    legend_table,
    trust_table,
    variants_table,
)

_POLICY = (
    "default-src 'none'; script-src 'unsafe-inline'; style-src 'unsafe-inline'; img-src data: blob:; font-src data:"
)


def html_page(document: Mapping[str, Any], plotly_js: str) -> str:
    """Give the page of a document; `plotly_js` is the library's own bundle."""
    return "".join(
        (
            '<!doctype html>\n<html lang="en"><head><meta charset="utf-8">',
            '<meta name="viewport" content="width=device-width, initial-scale=1">',
            f'<meta http-equiv="Content-Security-Policy" content="{_POLICY}">',
            '<link rel="icon" href="data:,">',
            f"<title>{esc(document['title'])}</title><style>{_text('page.css')}</style></head><body>",
            _head(document),
            _overview(document),
            _pair(document),
            _rest(document),
            f'<script type="application/json" id="document">{_embedded(document)}</script>',
            f"<script>{plotly_js}</script><script>{_text('page.js')}</script></body></html>\n",
        )
    )


def _head(document: Mapping[str, Any]) -> str:
    incomplete = (
        "" if document["complete"] else "<p class=warning>This run was interrupted: it covers part of its range.</p>"
    )
    sentences = "".join(f"<p>{esc(sentence)}</p>" for sentence in document["verdict"])
    return (
        f"<header><div><h1>{esc(document['title'])}</h1><p class=soft>{esc(document['source'])}; "
        f"{_range(document)}</p></div><button id=theme type=button>Light / dark</button></header>"
        f"{incomplete}<section class=verdict aria-label=verdict>{sentences}{_cautions(document)}</section>"
    )


def _cautions(document: Mapping[str, Any]) -> str:
    sentences = document.get("cautions", ())  # an older build has none
    told = "".join(f"<li>{_with_commands(sentence)}</li>" for sentence in sentences)
    return f"<p><b>Before you believe it</b></p><ul>{told}</ul>" if told else ""


def _with_commands(sentence: str) -> str:
    return re.sub("`(.+?)`", r"<code>\1</code>", esc(sentence))


def _overview(document: Mapping[str, Any]) -> str:
    return (
        f"<h2>Variants</h2>{variants_table(document)}"
        f"{_legend(document)}"
        "<details><summary>Every number</summary>" + all_numbers_table(document) + "</details>"
        "<h2>Over time</h2><div class=pair>"
        + _figure("latency", _latency_caption(document))
        + _figure(
            "moved", "Each step is traffic sent elsewhere by a change of weights. A steep line is an oscillation."
        )
        + _figure("ecdf", "Requests by end-to-end latency.")
        + _figure("unserved", "Requests shed by the weights, or refused by full or dead engines.")
        + "</div>"
    )


def _legend(document: Mapping[str, Any]) -> str:
    """Give which number is which, open; nothing where there is one kind alone."""
    rows = document.get("legend", ())  # an older build has none
    if len(rows) < 2:
        return ""
    return (
        f"<details open><summary>Which number is which, by the mean of {esc(document['recorded'])}</summary>"
        f"{legend_table(rows)}</details>"
    )


def _latency_caption(document: Mapping[str, Any]) -> str:
    if document["closed_loop"]:
        return "What simulated users waited, by when they sent."
    return "What a request is expected to take, network and engine."


def _pair(document: Mapping[str, Any]) -> str:
    others = [v["name"] for v in document["variants"] if v["name"] != document["recorded"]]
    chosen = differs_most(document)
    routes = sorted({route for variant in document["variants"] for route in variant["series"]["weights"]})
    choose = ""
    if others:
        options = "".join(f"<option{' selected' if n == chosen else ''}>{esc(n)}</option>" for n in others)
        choose += f"<label>Variant <select id=variant>{options}</select></label>"
    if routes:
        options = "".join(f"<option>{esc(route)}</option>" for route in routes)
        choose += f"<label>Route <select id=route>{options}</select></label>"
    sides = ("a", "b") if others else ("a",)
    figures = "".join(
        _figure(f"{what}-{side}", f"<b data-name={side}></b>: {told}")
        for what, told in (
            ("load", "load of the engines with the most requests, 1 is the wall."),
            ("weights", "where the chosen route's traffic goes; what is empty is shed."),
            ("moved", "traffic that changed its engine."),
            ("flow", "cluster to engine, whole run."),
        )
        if routes or what != "weights"
        for side in sides
    )
    beside = esc(document["recorded"]) if document["closed_loop"] else "the recorded policy"
    title = f"Beside {beside}" if others else "In detail"
    columns = " style='grid-template-columns:1fr'" if not others else ""
    return f"<h2>{title}</h2><div class=choose>{choose}</div><div class=pair{columns}>{figures}</div>"


def _rest(document: Mapping[str, Any]) -> str:
    notes = "".join(f"<li>{esc(note)}</li>" for note in (*document["notes"], *document["cannot_tell"]))
    groups = "".join(
        f"<details{' open' if kind == 'cluster' else ''}><summary>By {kind.replace('request_', '')}</summary>"
        f"{groups_table(document, kind)}</details>"
        for kind in ("cluster", "model", "request_class")
    )
    configured = "".join(_configured(variant, document["variants"]) for variant in document["variants"])
    return (
        f"<h2>What changed, and why</h2>{differences(document)}"
        f"<h2>How far to believe it</h2>{calibration_table(document)}{trust_table(document)}"
        f"<h2>Who fared how</h2>{groups}"
        f"<h2>What this cannot tell</h2><ul>{notes}</ul><h2>Configuration</h2><ul>{configured}</ul>"
    )


def _configured(variant: Mapping[str, Any], variants: Sequence[Mapping[str, Any]]) -> str:
    """Give a variant's settings; where all of them are told, only those in which variants differ."""
    settings: Mapping[str, Any] = variant["configuration"]
    told = [f"policy {variant['policy']}"]
    for name, value in settings.items():
        alike = len(variants) > 1 and all(v["configuration"].get(name) == value for v in variants)
        if name != "policy" and not alike:
            told.append(f"{name} = {value}")
    return f"<li><b>{esc(variant['name'])}</b>: {esc(', '.join(told))}</li>"


def _figure(name: str, caption: str) -> str:
    chart = f"<div class=chart id={name} role=img aria-label='chart'></div>"
    return f"<figure>{chart}<figcaption>{caption}</figcaption></figure>"


def _range(document: Mapping[str, Any]) -> str:
    seconds = (document["to_ms"] - document["from_ms"]) / 1000.0
    ticks = document["variants"][0]["ticks"]
    if document["closed_loop"]:
        return f"{seconds:,.0f} s of simulated time, {ticks:,} ticks"
    begins, ends = (datetime.fromtimestamp(document[k] / 1000.0, UTC) for k in ("from_ms", "to_ms"))
    return f"{begins:%Y-%m-%d %H:%M:%S} to {ends:%Y-%m-%d %H:%M:%S} UTC, {ticks:,} ticks"


def _embedded(document: Mapping[str, Any]) -> str:
    # Inside a script element only "</" can end it; "<!--" can open an older kind of comment.
    return json.dumps(document, allow_nan=False, separators=(",", ":")).replace("<", "\\u003c")


def _text(name: str) -> str:
    return (resources.files(__package__ or "") / name).read_text(encoding="utf-8")
