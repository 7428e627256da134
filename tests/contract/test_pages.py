"""What the pages name is there: commands with what they take, files, links, settings, checks, targets of make."""

import re
from fnmatch import fnmatch
from pathlib import Path

import pytest

from headrace.infra.configuration.config import Config, load_with_origins
from headrace.infra.doctor.core.checks import check_names
from headrace.infra.traces import trace_formats
from headrace.streams.core.decode.edge import carriers
from headrace.streams.core.mapping.parse import preset_names
from written_commands import refused, written_commands

ROOT = Path(__file__).parents[2]
PLACES = ("*.md", "infra/docs/**/*.md", "infra/deploy/*.md", "infra/examples/*.md")
PAGES = {
    str(page.relative_to(ROOT)): page.read_text("utf-8")
    for place in PLACES
    for page in ROOT.glob(place)
    if page.name != "CHANGELOG.md"  # it says what was
}
ROOMS = ("schemas", "streams", "solver", "infra", "tests")
FILES = [f"/{file.relative_to(ROOT)}" for room in ROOMS for file in (ROOT / room).rglob("*") if file.is_file()] + [
    f"/{file.name}" for file in ROOT.iterdir() if file.is_file()
]
PATH = re.compile(r"[\w*][\w.*<>-]*(?:/[\w.*<>-]+)+/?|[\w*]+\.(?:py|avsc|yaml|md)")
NOT_HERE = {"report/report.html", "deployment/headrace-gateway"}
"""What a command writes, and a name in a cluster."""
SETTING = re.compile(rf"\b({'|'.join(Config.__dataclass_fields__)})\.(?!(?:md|py|toml)\b)([a-z_]+(?:\.[a-z_]+)*)\b")


def prose(page: str) -> str:
    return re.sub(r"^```.*?^```$", "", PAGES[page], flags=re.MULTILINE | re.DOTALL)


@pytest.mark.parametrize("page", sorted(PAGES))
def test_a_command_of_a_page_takes_what_is_written(page: str) -> None:
    found = [refused(words, whole=whole) for words, whole in written_commands(PAGES[page])]
    assert [each for each in found if each is not None] == []


@pytest.mark.parametrize("page", sorted(PAGES))
def test_a_file_that_a_page_names_or_links_to_is_there(page: str) -> None:
    words = {word for quoted in re.findall(r"`([^`]+)`", prose(page)) for word in quoted.split()}
    named = {word for word in words if PATH.fullmatch(word)} - NOT_HERE
    # A page may leave out where a file lies, not what it is called.
    tails = {name: "*/" + re.sub(r"<\w+>", "*", name).strip("/") for name in named}
    ways = {name: (tail, f"{tail}/*") for name, tail in tails.items()}
    assert {name for name, way in ways.items() if not any(fnmatch(f, w) for f in FILES for w in way)} == set()
    links = {link.partition("#")[0] for link in re.findall(r"\]\(([^)\s]+)\)", PAGES[page]) if "://" not in link}
    assert {link for link in links if not (ROOT / page).parent.joinpath(link).exists()} == set()


@pytest.mark.parametrize("page", sorted(PAGES))
def test_a_setting_that_a_page_names_is_there_and_its_toml_is_taken(page: str, tmp_path: Path) -> None:
    for section, path in SETTING.findall(prose(page)):
        at = getattr(Config(), section)
        for part in path.split("."):
            if isinstance(at, dict):  # what it has, its keys, is the user's
                break
            assert hasattr(at, part), f"{section}.{path}"
            at = getattr(at, part)
    for number, block in enumerate(re.findall(r"^```toml\n(.*?)^```$", PAGES[page], re.MULTILINE | re.DOTALL)):
        file = tmp_path / f"{number}.toml"
        file.write_text(block, "utf-8")
        load_with_origins(file, {}, {})


@pytest.mark.parametrize("page", sorted(PAGES))
def test_a_target_of_make_that_a_page_names_is_there(page: str) -> None:
    named = set(re.findall(r"(?:^|`)make ([a-z]+)", PAGES[page], re.MULTILINE))
    assert named - set(re.findall(r"^([a-z]+):", (ROOT / "Makefile").read_text("utf-8"), re.MULTILINE)) == set()


@pytest.mark.parametrize(
    ("page", "after", "there"),
    [
        ("infra/docs/operators.md", "| looks at | checks |", check_names()),
        ("infra/docs/telemetry.md", "| carrier | written by |", carriers()),
        ("infra/docs/telemetry.md", "## Presets", preset_names()),
        ("infra/docs/replay.md", "| `--trace FORMAT --file FILE` |", trace_formats()),
    ],
)
def test_a_list_of_a_page_has_all_that_there_is(page: str, after: str, there: tuple[str, ...]) -> None:
    part = PAGES[page].partition(after)[2].partition("\n\n" if after[0] == "|" else ". ")[0]
    assert set(re.findall(r"`([a-z][a-z0-9_]*)`", part)) >= set(there)
