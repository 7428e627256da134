"""Where settings come from: a TOML file, `HEADRACE_*` variables and flags, each read into a tree of raw values.

    headrace.toml   [solver] period_ms = 250
    environment     HEADRACE_SOLVER__PERIOD_MS=250              `__` goes one level down, case does not matter
                    HEADRACE_KAFKA__OPTIONS__SECURITY_PROTOCOL=SSL     in Kafka's options `_` stands for a dot
    flags           --set solver.period_ms=250

A value from the environment or a flag that begins with `[` or `{` is read as JSON, else it is text, which the setting's
type then reads.
"""

from collections.abc import Mapping
from pathlib import Path
from typing import Any, cast

from headrace.infra.configuration.document_text import read_json, read_toml
from headrace.infra.configuration.expected import why_unreadable
from headrace.infra.configuration.tree import Tree, merged

PREFIX = "HEADRACE_"
FILE_VARIABLE = "HEADRACE_CONFIG"
DEFAULT_FILE = Path("headrace.toml")
_NOT_SETTINGS = (FILE_VARIABLE,)


def find_file(path: Path | None, env: Mapping[str, str]) -> Path | None:
    """Give the file to read: the one asked for, $HEADRACE_CONFIG, or ./headrace.toml where that exists; else None."""
    if path is not None:
        return path
    if env.get(FILE_VARIABLE):
        return Path(env[FILE_VARIABLE])
    return DEFAULT_FILE if DEFAULT_FILE.exists() else None


def read_file(path: Path | None, problems: list[str]) -> Tree:
    """Read a TOML file; empty where there is none to read."""
    if path is None:
        return {}
    try:
        return read_toml(path.read_text("utf-8"))
    except (OSError, UnicodeDecodeError) as error:
        problems.append(f"{path} {why_unreadable(error)}")
    except ValueError as error:
        problems.append(f"{path} is no TOML: {error}")
    return {}


def read_env(env: Mapping[str, str], problems: list[str]) -> dict[str, Tree]:
    """Read every `HEADRACE_*` variable into a tree of its own, by the variable's name, sorted."""
    trees: dict[str, Tree] = {}
    for name in sorted(env):
        if not name.startswith(PREFIX) or name in _NOT_SETTINGS:
            continue
        parts = name.removeprefix(PREFIX).lower().split("__")
        if parts[:2] == ["kafka", "options"] and len(parts) > 2:
            parts = ["kafka", "options", ".".join(parts[2:]).replace("_", ".")]
        trees[name] = _nested(parts, _value(name, env[name], problems))
    return trees


def read_flags(overrides: Mapping[str, str], problems: list[str]) -> dict[str, Tree]:
    """Read each `KEY=VALUE`, the key written as in TOML (`solver.classes."my class".tier`), by the key."""
    trees: dict[str, Tree] = {}
    for key, text in overrides.items():
        try:
            holder = read_toml(f"{key} = 0")
        except ValueError:
            problems.append(f"--set {key}: the key is not a TOML key such as solver.period_ms")
            continue
        trees[f"--set {key}"] = _filled(holder, _value(f"--set {key}", text, problems))
    return trees


def overlaid(trees: Mapping[str, Tree]) -> Tree:
    """Give all trees in one, later ones over earlier ones."""
    out: Tree = {}
    for tree in trees.values():
        out = merged(out, tree)
    return out


def _value(name: str, text: str, problems: list[str]) -> Any:  # noqa: ANN401 - JSON of any shape
    if not text.lstrip().startswith(("[", "{")):
        return text
    try:
        return read_json(text)
    except ValueError as error:
        problems.append(f"{name} begins like JSON and is none: {error}")
        return text


def _nested(parts: list[str], value: Any) -> Tree:  # noqa: ANN401 - JSON of any shape
    for part in reversed(parts):
        value = {part: value}
    return cast("Tree", value)


def _filled(holder: Tree, value: Any) -> Tree:  # noqa: ANN401 - JSON of any shape
    return {k: _filled(cast("Tree", inner), value) if isinstance(inner, dict) else value for k, inner in holder.items()}
