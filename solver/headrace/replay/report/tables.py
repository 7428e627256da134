"""The tables of the page, as HTML that reads without a script. Every text that comes from a document is escaped."""

import html
from collections.abc import Iterable, Mapping, Sequence
from typing import Any

Document = Mapping[str, Any]
COLUMNS = (
    "mean_ms",
    "p50_ms",
    "p95_ms",
    "p99_ms",
    "ttft_ms",
    "ttft_p95_ms",
    "tbot_ms",
    "unserved_percent",
    "overload_s",
    "moved_percent_a_minute",
    "reversals_a_minute",
    "cold_percent",
    "retry_percent",
    "imbalance",
    "fairness",
)
"""Numbers that the first table shows; the second one shows all of them, turned round."""
MET_COLUMNS = (
    "met_mean_ms",
    "met_p50_ms",
    "met_p95_ms",
    "met_p99_ms",
    "met_failed_percent",
    "met_shed_percent",
    "moved_percent_a_minute",
    "reversals_a_minute",
    "cold_percent",
    "mean_ms",
    "overload_s",
    "imbalance",
    "fairness",
)
"""The same of a simulation."""


def variants_table(document: Document) -> str:
    """Give the table of variants against the recorded one, with intervals."""
    variants: Sequence[Mapping[str, Any]] = document["variants"]
    numbers = variants[0]["numbers"]
    columns = MET_COLUMNS if "met_mean_ms" in numbers else COLUMNS
    head = "".join(f"<th>{esc(numbers[c]['label'])}{_unit(numbers[c])}</th>" for c in columns)
    rows = "".join(
        f"<tr><td>{_name(variant, document)}</td>{''.join(_cell(variant['numbers'][c]) for c in columns)}</tr>"
        for variant in variants
    )
    return _table(_variants_caption(document), f"<th>variant</th>{head}", rows)


def _variants_caption(document: Document) -> str:
    blocks, against = document["blocks"], f"{_told_by(document)}, against {esc(document['recorded'])}"
    drawn = f"{blocks['count']} blocks of {blocks['seconds']:g} s"
    if all(number["low"] is None for variant in document["variants"] for number in variant["numbers"].values()):
        return (
            f"{against}: below each value the difference. There are no 95 % intervals, and so no colours: the run is "
            f"too short for them ({drawn})."
        )
    return (
        f"{against}: below each value its 95 % interval, then the difference with its own (block bootstrap, {drawn}). "
        "Green is better, orange worse; a difference whose interval holds 0 has no colour, and a number without blocks "
        "to draw has no interval."
    )


def _told_by(document: Document) -> str:
    if "met_mean_ms" in document["variants"][0]["numbers"]:
        return "Met by simulated users, or counted of weights and sessions; the last columns scored by load profiles"
    return "Scored by load profiles"


def trust_table(document: Document) -> str:
    """Give what the numbers rest on: sensitivity, extrapolation, off-policy estimates."""
    rows: list[str] = []
    for variant in document["variants"]:
        numbers, sensitivity, bounds = variant["numbers"], variant["sensitivity"], variant["extrapolation"]
        within = "-" if bounds is None else f"{_value(bounds['flat_ms'])} to {_value(bounds['steep_ms'])}"
        rows.append(
            f"<tr><td>{esc(variant['name'])}</td>"
            f"{_beside(numbers['mean_ms']['value'], numbers['unserved_percent']['value'])}"
            f"{_beside(sensitivity['faster_ms'], sensitivity.get('faster_unserved_percent'))}"
            f"{_beside(sensitivity['slower_ms'], sensitivity.get('slower_unserved_percent'))}"
            f"<td>{_value(numbers['unmeasured_percent']['value'])}</td><td>{within}</td>"
            f"<td>{_value(numbers['overload_s']['value'])}</td>"
            f"<td class=words>{_off_policy(variant['off_policy'], document['recorded'])}</td></tr>"
        )
    error = f"{100 * document['settings']['profile_error']:g} %"
    holds = "the same" if document["order_holds"] else "NOT the same"
    caption = (
        "Scored mean in ms of what is served, and below it what is not: a mean falls too where more is refused. "
        f"The order of the means is {holds} with profiles {error} faster or slower. An engine that is sent more than "
        "it can serve runs at load 1 with a computed queue before it: the last column says for how long."
    )
    head = (
        f"<th>variant</th><th>scored</th><th>profiles {error} faster</th><th>profiles {error} slower</th>"
        "<th>at loads never measured, %</th><th>bounds of what lies there</th><th>beyond the wall, engine seconds</th>"
        "<th class=words>estimated from single decisions</th>"
    )
    return _table(caption, head, "".join(rows))


def calibration_table(document: Document) -> str:
    """Give the score of the recorded policy, or of a simulation's first, against what its engines showed."""
    calibration = document["calibration"]
    rows = "".join(
        f"<tr><td>{esc(row['what'])}</td><td>{row['requests']:,}</td><td>{_value(row['measured_mean_ms'])}</td>"
        f"<td>{_value(row['scored_mean_ms'])}</td><td>{_percent(row['mean_off'])}</td>"
        f"<td>{_value(row['measured_p95_ms'])}</td><td>{_value(row['scored_p95_ms'])}</td>"
        f"<td>{_percent(row['p95_off'])}</td></tr>"
        for row in calibration["rows"][:40]
    )
    sentence = esc(calibration["sentence"])
    head = (
        "<th>engine latency, ms</th><th>requests</th><th>mean, measured</th><th>scored, engine alone</th><th>off</th>"
        "<th>p95, measured</th><th>scored</th><th>off</th>"
    )
    agreement = esc(calibration["agreement"])
    return f"<p class='{agreement}'>{sentence[:1].upper()}{sentence[1:]}.</p>" + _table(
        "Without the network, as engines tell it. Bounds: mean 10 %, p95 20 %, all engines together.", head, rows
    )


def legend_table(rows: Iterable[Mapping[str, Any]]) -> str:
    """Give which number is which."""
    body = "".join(
        f"<tr><td>{esc(row['name'])}</td><td>{_value(row['mean_ms'])}</td><td class=words>{esc(row['is'])}</td></tr>"
        for row in rows
    )
    return _table("", "<th>number</th><th>mean, ms</th><th class=words>is</th>", body)


def groups_table(document: Document, kind: str) -> str:
    """Give each cluster, model or class under each variant."""
    rows: list[str] = []
    for variant in document["variants"]:
        for group in variant["groups"][kind][:50]:
            cells = "".join(
                f"<td>{_value(group[c])}</td>"
                for c in ("mean_ms", "p50_ms", "p95_ms", "p99_ms", "ttft_ms", "ttft_p95_ms", "tbot_ms", "tbot_p95_ms")
            )
            rows.append(
                f"<tr><td>{esc(group['name'])}</td><td class=words>{esc(variant['name'])}</td>"
                f"<td>{group['requests']:,.0f}</td>{cells}<td>{_value(group['unserved_percent'])}</td></tr>"
            )
    head = (
        f"<th>{esc(kind.replace('request_', ''))}</th><th class=words>variant</th><th>requests</th><th>mean</th>"
        "<th>p50</th><th>p95</th><th>p99</th><th>TTFT mean</th><th>p95</th><th>TBOT mean</th><th>p95</th>"
        "<th>unserved, %</th>"
    )
    return _table("Milliseconds.", head, "".join(sorted(rows)))


def all_numbers_table(document: Document) -> str:
    """Give every number of every variant."""
    variants: Sequence[Mapping[str, Any]] = document["variants"]
    head = "<th>number</th>" + "".join(f"<th>{_name(v, document)}</th>" for v in variants)
    rows = "".join(
        f"<tr><td>{esc(number['label'])}{_unit(number)}</td>"
        + "".join(f"<td>{_value(v['numbers'][name]['value'])}</td>" for v in variants)
        + "</tr>"
        for name, number in variants[0]["numbers"].items()
    )
    return _table("", head, rows)


def differences(document: Document) -> str:
    """Give the largest differences from the recorded weights, with the reasons of both."""
    out: list[str] = []
    for each in document["differences"]:
        at_s = (each["at_ms"] - document["from_ms"]) / 1000.0
        out.append(
            f"<div class=why><h3>{esc(each['variant'])}: {esc(each['route'])} to {esc(each['engine_id'])}, "
            f"{100 * each['share']:.1f} % of all its requests instead of {100 * each['recorded_share']:.1f} % "
            f"({each['rps']:.3g} RPS) at {at_s:,.0f} s</h3><dl>"
            f"<dt>{esc(document['recorded'])}</dt><dd>{_sentences(each['recorded_because'])}</dd>"
            f"<dt>{esc(each['variant'])}</dt><dd>{_sentences(each['because'])}</dd></dl></div>"
        )
    return "".join(out) or f"<p>No variant differs from {esc(document['recorded'])}.</p>"


def esc(text: object) -> str:
    """Escape a text for HTML."""
    return html.escape(str(text), quote=True)


def _sentences(sentences: Iterable[str]) -> str:
    return "<br>".join(esc(sentence) for sentence in sentences)


def _name(variant: Mapping[str, Any], document: Document) -> str:
    marks = [
        word
        for word, name in ((_against(document), document["recorded"]), ("best", document["best"]))
        if name == variant["name"]
    ]
    shown = [mark for mark in marks if mark != variant["name"]]
    return esc(variant["name"]) + (f" <small>{', '.join(shown)}</small>" if shown else "")


def _against(document: Document) -> str:
    """Give what the variant is that the others are held against."""
    return "first" if document["closed_loop"] else "recorded"


def _cell(number: Mapping[str, Any]) -> str:
    parts = [f"<b>{_value(number['value'])}</b>"]
    if number["low"] is not None:
        parts.append(f"<small>{_value(number['low'])} to {_value(number['high'])}</small>")
    if number["difference"] is not None:
        between = "" if number["difference_low"] is None else _between(number)
        parts.append(f"<small class={number['word']}>{_signed(number['difference'])}{between}</small>")
    return f"<td>{''.join(parts)}</td>"


def _beside(mean_ms: float | None, unserved: float | None) -> str:
    """Give a mean with what it leaves out; a document of an older build does not know that."""
    left_out = "" if unserved is None else f"<small>{_value(unserved)} % unserved</small>"
    return f"<td>{_value(mean_ms)}{left_out}</td>"


def _between(number: Mapping[str, Any]) -> str:
    return f" ({_signed(number['difference_low'])} to {_signed(number['difference_high'])})"


def _off_policy(found: Mapping[str, Any] | None, recorded: str) -> str:
    if found is None:
        return "no propensities"
    if found["outcome"] == "REFUSED":
        return f"refused: {esc(found['reason'])}"
    against = found.get("difference_ms")
    beside = ""
    if against is not None:
        word = "; <b class=WORSE>contradicts the profiles</b>" if found["contradicts"] else ""
        between = f"{_signed(found['difference_low_ms'])} to {_signed(found['difference_high_ms'])}"
        beside = f"<small>less that of {esc(recorded)} {_signed(against)} ({between}){word}</small>"
    return (
        f"SNIPS {_value(found['snips_ms'])} (error {_value(found['error_ms'])}), DR {_value(found['dr_ms'])}, "
        f"IPS {_value(found['ips_ms'])}; effective {found['effective']:,.0f} of {found['choices']:,}{beside}"
    )


def _unit(number: Mapping[str, Any]) -> str:
    return f" <small>{esc(number['unit'])}</small>" if number["unit"] else ""


def _value(value: float | None) -> str:
    if value is None:
        return "-"
    if value == 0:
        return "0"
    if abs(value) >= 100:
        return f"{value:,.0f}"
    return f"{value:.1f}" if abs(value) >= 10 else f"{value:.2f}"


def _signed(value: float) -> str:
    return ("+" if value > 0 else "-" if value < 0 else "") + _value(abs(value))


def _percent(value: float | None) -> str:
    return "-" if value is None else f"{100 * value:+.1f} %"


def _table(caption: str, head: str, rows: str) -> str:
    told = f"<p class=soft>{caption}</p>" if caption else ""
    return f"{told}<div class=scroll><table><thead><tr>{head}</tr></thead><tbody>{rows}</tbody></table></div>"
