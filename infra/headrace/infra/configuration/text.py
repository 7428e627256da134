"""A configuration as TOML: what `--print-config` shows, readable again by `--config`. Secrets are masked."""

import dataclasses
import json
import re
from collections.abc import Iterator, Mapping, Sequence
from typing import Any, cast

from headrace.infra.configuration.tree import Path, dotted

MASK = "***"
_PASSWORD_IN_ADDRESS = re.compile(r"(://[^/:@\s]*:)[^@/\s]+@")
_SECRET_ENDINGS = ("password", "secret", "token", "pem", "jaas.config", "oauthbearer.config", "user.info")


def to_toml(config: object, origins: Mapping[Path, str]) -> str:
    """Give every setting in TOML, with a comment that says where it came from: a source, or `default`.

    Args:
        config: a dataclass of dataclasses.
        origins: where a value came from, by path, for those that were set.
    """
    return "\n".join(_table(_plain(config), (), (), origins)).strip() + "\n"


def masked(name: str, value: str) -> str:
    """Give the value, or MASK where the name says that it is a secret: `sasl.password`, but not `secret_header`.

    The password inside an address (`https://user:password@registry`) is masked alone; nothing is no secret.
    """
    return MASK if value and name.lower().endswith(_SECRET_ENDINGS) else _PASSWORD_IN_ADDRESS.sub(rf"\1{MASK}@", value)


def _plain(value: Any) -> Any:  # noqa: ANN401 - any setting
    if dataclasses.is_dataclass(value):
        return {field.name: _plain(getattr(value, field.name)) for field in dataclasses.fields(value)}
    if isinstance(value, Mapping):
        return {name: _plain(inner) for name, inner in cast("Mapping[str, Any]", value).items()}
    if isinstance(value, list | tuple):
        return [_plain(inner) for inner in cast("Sequence[Any]", value)]
    return value


def _table(tree: Mapping[str, Any], at: Path, place: Path, origins: Mapping[Path, str]) -> Iterator[str]:
    """Give a table's lines; `place` is `at` with the indices of list items, as origins have it."""
    tables = {name: value for name, value in tree.items() if _is_table(value)}
    for name, value in tree.items():
        if name in tables or value is None:
            continue
        shown = masked(name, value) if isinstance(value, str) else value
        yield f"{dotted((name,))} = {_inline(shown)}  # {_origin((*place, name), origins)}"
    for name, value in tables.items():
        path, inner = (*at, name), (*place, name)
        yield ""
        if isinstance(value, list):
            for i, item in enumerate(cast("list[Mapping[str, Any]]", value)):
                yield f"[[{dotted(path)}]]"
                yield from _table(item, path, (*inner, str(i)), origins)
        else:
            yield f"[{dotted(path)}]"
            yield from _table(value, path, inner, origins)


def _origin(path: Path, origins: Mapping[Path, str]) -> str:
    """Give where a value came from; a list's items have their origins one by one."""
    return next((origin for place, origin in origins.items() if place[: len(path)] == path), "default")


def _is_table(value: Any) -> bool:  # noqa: ANN401 - any plain value
    if isinstance(value, list):
        items = cast("list[Any]", value)
        return bool(items) and all(isinstance(item, dict) for item in items)
    return isinstance(value, dict)


def _inline(value: Any) -> str:  # noqa: ANN401 - any plain value
    if isinstance(value, list):
        return f"[{', '.join(_inline(item) for item in cast('list[Any]', value))}]"
    return json.dumps(value, ensure_ascii=False)
