"""A mapping's YAML -> TelemetryMapping, or InvalidInputError with everything that is wrong at once.

A file names a `preset` and overrides it section by section: `identity`, `values`, `unmapped`, `fields`, `limits` and
`labels` name by name, the rest as a whole. An unknown key is an error that names the nearest.
"""

import difflib
import re
from collections.abc import Iterable, Mapping
from importlib import resources
from typing import Any, Final, cast

import orjson
import xxhash

from headrace.schemas.errors import InvalidInputError
from headrace.schemas.signals import Vantage
from headrace.streams.core.mapping import parse_fields, strict_yaml
from headrace.streams.core.mapping.model import (
    IDENTITIES,
    DocumentRules,
    IdentityRule,
    Path,
    TelemetryMapping,
    Unmapped,
)
from headrace.streams.core.mapping.problems import Problems
from headrace.streams.core.mapping.templates import Template, parse_template

DEFAULT_MAX_SERIES: Final = 1_024
_KEYS: Final = (
    "preset",
    "name",
    "carrier",
    "vantage",
    "where",
    "labels",
    "drop_labels",
    "python",
    "identity",
    "values",
    "unmapped",
    "fields",
    "document",
    "limits",
)
_BY_NAME: Final = ("labels", "identity", "values", "unmapped", "fields", "limits")
_ENTRY_POINT = re.compile(r"[A-Za-z_][\w.]*:[A-Za-z_]\w*")
_PRESETS = resources.files("headrace.streams.core.mapping") / "presets"


def preset_names() -> tuple[str, ...]:
    """Give the names of the presets that ship."""
    return tuple(sorted(f.name.removesuffix(".yaml") for f in _PRESETS.iterdir() if f.name.endswith(".yaml")))


def preset_text(name: str) -> str:
    """Give a preset's own YAML: what someone copies who needs more than an override.

    Raises:
        InvalidInputError: there is none of that name.
    """
    if name not in preset_names():
        nearest = nearest_name(name, preset_names())
        raise InvalidInputError("preset", (f"preset is {name!r};{nearest} there are {', '.join(preset_names())}",))
    return (_PRESETS / f"{name}.yaml").read_text("utf-8")


def load_preset(name: str) -> TelemetryMapping:
    """Give a preset as a mapping.

    Raises:
        InvalidInputError: there is none of that name.
    """
    return parse_mapping(f"preset: {name}", name)


def parse_mapping(document: str, name: str = "mapping") -> TelemetryMapping:
    """Read a mapping; `name` is what an error, and a mapping without a name, is called.

    Raises:
        InvalidInputError: it is no strict YAML, or anything in it is not of this form.
    """
    found = strict_yaml.load(document, name)
    if not isinstance(found, dict):
        raise InvalidInputError(name, ("expected keys and values, such as `preset: vllm_v1`",))
    written = cast("dict[str, Any]", found)
    problems = Problems()
    problems.unknown_keys("", written, _KEYS)
    merged = _over_preset(written, problems)
    fields: object = written.get("fields")
    own = frozenset(cast("dict[str, Any]", fields)) if isinstance(fields, dict) else frozenset[str]()
    mapping = _build(merged, own, name, problems)
    if problems.found or mapping is None:
        raise InvalidInputError(name, tuple(problems.found))
    return mapping


def nearest_name(name: str, names: Iterable[str]) -> str:
    """Give ` did you mean x?`, or nothing where no name is near."""
    near = difflib.get_close_matches(name, list(names), n=1, cutoff=0.6)
    return f" did you mean {near[0]!r}?" if near else ""


def _over_preset(written: dict[str, Any], problems: Problems) -> dict[str, Any]:
    preset = written.get("preset")
    if preset is None:
        return written
    if not isinstance(preset, str) or preset not in preset_names():
        nearest = nearest_name(str(preset), preset_names())
        problems.add("preset", f"is {preset!r};{nearest} there are {', '.join(preset_names())}")
        return written
    base = cast("dict[str, Any]", strict_yaml.load(preset_text(preset), preset))
    for key, value in written.items():
        if key in _BY_NAME and isinstance(value, dict) and isinstance(base.get(key), dict):
            base[key] = {**base[key], **value}
        else:
            base[key] = value
    base.setdefault("name", preset)
    return base


def _build(merged: dict[str, Any], own: frozenset[str], name: str, problems: Problems) -> TelemetryMapping | None:
    document = _document(merged.get("document"), problems)
    rules = parse_fields.rules(merged.get("fields"), own, document is not None, problems)
    identities = _identities(merged, problems)
    vantage = problems.word("vantage", merged.get("vantage", "ENGINE"), Vantage)
    where = problems.path("where", merged["where"]) if "where" in merged else None
    labels = problems.texts("labels", merged.get("labels", {}))
    drop = problems.list_of_texts("drop_labels", merged.get("drop_labels", []))
    python = merged.get("python")
    if python is not None and (not isinstance(python, str) or not _ENTRY_POINT.fullmatch(python)):
        problems.add("python", f"is {python!r:.60}; expected package.module:function")
    carrier, called = merged.get("carrier"), merged.get("name", name)
    if carrier is not None and not isinstance(carrier, str):
        problems.add("carrier", f"is {carrier!r}; expected a carrier's name")
    if not isinstance(called, str):
        problems.add("name", f"is {called!r}; expected a text")
    limits = problems.section("limits", merged.get("limits", {}), ("max_series",))
    max_series = problems.whole("limits.max_series", limits.get("max_series", DEFAULT_MAX_SERIES), 1, 100_000)
    if problems.found or vantage is None:
        return None
    return TelemetryMapping(
        name=str(called),
        hash=content_hash(merged),
        carrier=carrier,
        vantage=vantage,
        where=where,
        labels=tuple(sorted(labels.items())),
        drop_labels=frozenset(drop),
        identities=identities,
        rules=rules,
        document=document,
        max_series=max_series,
        python=python,
    )


def content_hash(merged: Mapping[str, Any]) -> str:
    """Give 16 hex digits of what a mapping says, its preset filled in; names and order of keys do not count."""
    content = {key: value for key, value in merged.items() if key not in ("name", "preset")}
    return xxhash.xxh3_64_hexdigest(orjson.dumps(content, option=orjson.OPT_SORT_KEYS))


def _identities(merged: Mapping[str, Any], problems: Problems) -> tuple[tuple[str, IdentityRule], ...]:
    templates = problems.section("identity", merged.get("identity", {}), IDENTITIES)
    values = problems.section("values", merged.get("values", {}), IDENTITIES)
    unmapped = problems.section("unmapped", merged.get("unmapped", {}), IDENTITIES)
    for needed in ("engine", "model"):
        if needed not in templates:
            example = '["{service.instance.id}", "{instance}"]' if needed == "engine" else '["{model_name}"]'
            problems.add(f"identity.{needed}", f"is missing; write for example {needed}: {example}")
    found: list[tuple[str, IdentityRule]] = []
    for name in IDENTITIES:
        at = f"identity.{name}"
        named = problems.texts(f"values.{name}", values.get(name, {}))
        otherwise = problems.word(f"unmapped.{name}", unmapped.get(name, "keep"), Unmapped)
        found.append(
            (
                name,
                IdentityRule(
                    templates=_templates(at, templates.get(name, []), problems),
                    values=tuple(sorted(named.items())),
                    unmapped=otherwise or Unmapped.KEEP,
                ),
            )
        )
    return tuple(found)


def _templates(at: str, written: object, problems: Problems) -> tuple[Template, ...]:
    found: list[Template] = []
    for text in problems.list_of_texts(at, [written] if isinstance(written, str) else written):
        template = parse_template(text)
        if isinstance(template, str):
            problems.add(at, template)
        else:
            found.append(template)
    return tuple(found)


def _document(written: object, problems: Problems) -> DocumentRules | None:
    if written is None:
        return None
    section = problems.section("document", written, ("labels", "time", "start"))
    labels = problems.texts("document.labels", section.get("labels", {}))
    paths = [(name, problems.path(f"document.labels.{name}", text)) for name, text in sorted(labels.items())]
    known: list[tuple[str, Path]] = [(name, path) for name, path in paths if path is not None]
    time = problems.path("document.time", section["time"]) if "time" in section else None
    start = problems.path("document.start", section["start"]) if "start" in section else None
    return DocumentRules(tuple(known), time, start)
