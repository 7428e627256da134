"""Names in a problem's network that are nobody's: a mistyped one is refused, one that may be meant is told.

the nearest name has no link there     this row is that link, mistyped: refused, since it would leave a hole
all else                               told: a table of a whole network may have sites without engines today
"""

from collections.abc import Collection, Iterable, Iterator, Mapping
from difflib import get_close_matches

SHOWN = 10
"""How many names are told of each kind."""


def mistyped(link: tuple[str, str], links: Collection[tuple[str, str]], known: tuple[Collection[str], ...]) -> str:
    """Say what is wrong with a link (cluster, site), by the field's name; nothing where it may be meant.

    Args:
        link: the one in question.
        links: all of the network's.
        known: the clusters that ask for something, and the sites with an engine; empty where they could not be read.
    """
    told: list[str] = []
    meant = list(link)
    for i, names in enumerate(known):
        if not names or not link[i] or link[i] in names:
            continue
        near = get_close_matches(link[i], sorted(names), n=1)
        if not near:
            return ""
        meant[i] = near[0]
        told.append(f"{_FIELDS[i]} is {link[i]!r}, {_NOBODY[i]}; did you mean {near[0]!r}?")
    return "" if tuple(meant) in links else "; ".join(told)


def told_names(links: Iterable[tuple[str, str]], known: tuple[Collection[str], ...]) -> Iterator[str]:
    """Say which clusters and sites of a network are nobody's, a sentence each, with the nearest name that is."""
    pairs = list(links)
    for i, names in enumerate(known):
        unknown = sorted({pair[i] for pair in pairs if pair[i] not in names}) if names else []
        if unknown:
            shown = ", ".join(with_nearest(name, names) for name in unknown[:SHOWN])
            more = f" and {len(unknown) - SHOWN} more" if len(unknown) > SHOWN else ""
            yield f"network[].{_FIELDS[i]} names {_NOBODY[i]}: {shown}{more}"


def with_nearest(name: str, known: Collection[str]) -> str:
    """Give a name in quotes, with the known one that is like it, if any is."""
    near = get_close_matches(name, sorted(known), n=1)
    return f"{name!r} (nearest: {near[0]!r})" if near else repr(name)


_FIELDS = ("from_cluster", "to_site")
_NOBODY: Mapping[int, str] = {0: "a cluster that asks for nothing", 1: "a site that no engine is at"}
