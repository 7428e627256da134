"""The cores are pure: read from their syntax trees, so that a wall clock put into one fails before it ever runs."""

import ast
from collections.abc import Iterator
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]

CORES = (
    *sorted((ROOT / "streams/headrace/streams/core").rglob("*.py")),
    *sorted((ROOT / "solver/headrace/solver/core").rglob("*.py")),
    *sorted((ROOT / "solver/headrace/replay/core").rglob("*.py")),
    *sorted((ROOT / "solver/headrace/replay/score").rglob("*.py")),
    *sorted((ROOT / "infra/headrace/infra/fleet").rglob("*.py")),
    *sorted((ROOT / "infra/headrace/infra/gateway/core").rglob("*.py")),
    *sorted((ROOT / "infra/headrace/infra/console/core").rglob("*.py")),
    *sorted((ROOT / "infra/headrace/infra/doctor/core").rglob("*.py")),
    *sorted((ROOT / "infra/headrace/infra/overrides/rules").rglob("*.py")),
    ROOT / "infra/headrace/infra/redaction/redact.py",
    *sorted((ROOT / "schemas/headrace/schemas").glob("*.py")),
    *sorted(p for p in (ROOT / "streams/headrace/dataplane").rglob("*.py") if p.name not in ("feed.py", "reporter.py")),
)
"""Every file of a pure core. The data plane's two adapters (its threads) are the only files left out of a folder."""

FORBIDDEN_MODULES = {
    "time": "time is an argument, now_ms",
    "asyncio": "the cores are synchronous",
    "threading": "the cores own no thread",
    "multiprocessing": "the cores own no process",
    "concurrent": "the cores own no thread",
    "random": "dice are passed in as a seeded generator",
    "secrets": "dice are passed in as a seeded generator",
    "uuid": "identities are passed in",
    "logging": "the cores return outcomes, they do not log",
    "structlog": "the cores return outcomes, they do not log",
    "socket": "the cores do no I/O",
    "subprocess": "the cores do no I/O",
    "faust": "the transport is an adapter",
    "confluent_kafka": "the transport is an adapter",
    "ortools": "the solver is handed in",
}
FORBIDDEN_CALLS = {
    "now": ("datetime", "date"),
    "utcnow": ("datetime",),
    "today": ("datetime", "date"),
    "default_rng": (),  # allowed only with a seed, see below
}
FORBIDDEN_BUILTINS = {"hash": "differs between processes; use xxhash", "id": "differs between runs", "input": "I/O"}
FILE_READERS = {
    ROOT / "schemas/headrace/schemas/avro_schemas.py",  # reads the packaged schemas once
    ROOT / "schemas/headrace/schemas/snapshot_file.py",  # the file form of a snapshot
}


def violations(tree: ast.AST, path: Path) -> Iterator[str]:
    for node in ast.walk(tree):
        match node:
            case ast.Import(names=names):
                for alias in names:
                    yield from _module(alias.name, path, node.lineno)
            case ast.ImportFrom(module=str(module), level=0):
                yield from _module(module, path, node.lineno)
            case ast.Call(func=ast.Name(id=name)) if name in FORBIDDEN_BUILTINS:
                yield f"{path.name}:{node.lineno} calls {name}(): {FORBIDDEN_BUILTINS[name]}"
            case ast.Call(func=ast.Name(id="open")) if path not in FILE_READERS:
                yield f"{path.name}:{node.lineno} opens a file"
            case ast.Call(func=ast.Attribute(attr="default_rng"), args=[]):
                yield f"{path.name}:{node.lineno} makes a generator without a seed"
            case ast.Call(func=ast.Attribute(attr=attr, value=ast.Name(id=owner) | ast.Attribute(attr=owner))) if (
                owner in FORBIDDEN_CALLS.get(attr, ())
            ):
                yield f"{path.name}:{node.lineno} calls {owner}.{attr}(): time is an argument, now_ms"
            case ast.Attribute(attr="random", value=ast.Name(id="np" | "numpy")):
                continue
            case _:
                continue


def _module(name: str, path: Path, line: int) -> Iterator[str]:
    root = name.split(".", maxsplit=1)[0]
    if root in FORBIDDEN_MODULES:
        yield f"{path.name}:{line} imports {name}: {FORBIDDEN_MODULES[root]}"


@pytest.mark.parametrize("path", CORES, ids=lambda p: str(p.relative_to(ROOT)))
def test_a_core_has_no_clock_no_dice_and_no_io(path: Path) -> None:
    assert list(violations(ast.parse(path.read_text()), path)) == []


@pytest.mark.parametrize(
    "source",
    [
        "import time\nnow = time.time()",
        "from time import monotonic",
        "from datetime import datetime\nnow = datetime.now()",
        "import datetime\nnow = datetime.datetime.now()",
        "import random",
        "from random import choice",
        "slot = hash('key') % 7",
        "import numpy as np\nrng = np.random.default_rng()",
        "import asyncio",
        "import logging",
        "from confluent_kafka import Producer",
        "text = open('x').read()",
    ],
)
def test_the_rule_catches_what_it_is_for(source: str) -> None:
    assert list(violations(ast.parse(source), Path("core.py"))) != []


def test_no_folder_named_headrace_has_an_init_file_so_it_stays_a_namespace() -> None:
    assert [
        str(p)
        for root in ("schemas", "streams", "solver", "infra")
        for p in [ROOT / root / "headrace/__init__.py"]
        if p.exists()
    ] == []
