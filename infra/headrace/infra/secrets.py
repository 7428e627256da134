"""The secrets of a configuration, and texts without them. What is logged or told goes through here.

Secret are: options and settings that are named so (`sasl.password`, `ssl.key.password`, `basic.auth.user.info`), the
passwords inside of them and inside of addresses (`https://user:password@registry`), and what the gateway's credential
files and variables hold. Words of fewer than SHORTEST characters are not looked for in other texts: they are in most.
"""

import os
import re
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import asdict
from pathlib import Path
from typing import Any, Final, cast

from headrace.infra.configuration.text import MASK, masked
from headrace.infra.configuration.tree import leaves

SHORTEST: Final = 4
MAX_FILE_BYTES: Final = 65_536
_IN_ADDRESS = re.compile(r"://[^/:@\s]*:([^@/\s]+)@")
_IN_OPTION = re.compile(r"""password\s*=\s*["']?([^"';\s]+)""", re.IGNORECASE)
_FILES = ("auth_file", "bearer_file", "secret_file", "token_file")


def secrets_of(config: object, env: Mapping[str, str] = os.environ) -> tuple[str, ...]:
    """Give every secret of a configuration (a dataclass of dataclasses), the longest first."""
    found: set[str] = set()
    for path, value in leaves(asdict(cast("Any", config))):
        if isinstance(value, str) and value:
            found.update(_of_setting(path[-1], value, env))
    return tuple(sorted((secret for secret in found if len(secret) >= SHORTEST), key=lambda s: (-len(s), s)))


def without_secrets(text: str, secrets: Iterable[str]) -> str:
    """Give the text with every secret in it masked."""
    for secret in secrets:
        text = text.replace(secret, MASK)
    return text


def fields_without_secrets(value: Any, secrets: tuple[str, ...]) -> Any:  # noqa: ANN401 - whatever was logged
    """Give a value to be logged, in plain types, with every secret in it masked, and whatever is named as one."""
    if value is None or isinstance(value, bool | int | float):
        return value
    if isinstance(value, Mapping):
        return {
            without_secrets(str(name), secrets): masked(str(name), inner)
            if isinstance(inner, str) and masked(str(name), inner) == MASK
            else fields_without_secrets(inner, secrets)
            for name, inner in cast("Mapping[Any, Any]", value).items()
        }
    if isinstance(value, list | tuple | set | frozenset):
        return [fields_without_secrets(inner, secrets) for inner in cast("Iterable[Any]", value)]
    return without_secrets(str(value), secrets)


def _of_setting(name: str, value: str, env: Mapping[str, str]) -> Iterator[str]:
    if name in _FILES:
        yield from _words_of(Path(value))
    elif name == "auth_env":
        yield env.get(value, "")
    elif masked(name, value) == MASK:
        yield value
        yield from _IN_OPTION.findall(value)
        yield value.rpartition(":")[2]
    yield from _IN_ADDRESS.findall(value)


def _words_of(path: Path) -> Iterator[str]:
    """Give the last word of each line: credentials stand behind the name that they belong to."""
    try:
        text = path.read_bytes()[:MAX_FILE_BYTES].decode("utf-8", "replace")
    except OSError:
        return  # whoever needs it says that it cannot be read
    for line in text.splitlines():
        yield line.split()[-1] if line.split() else ""
