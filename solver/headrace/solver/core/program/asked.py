"""Rows as numbers: what each asks for, and from where. Most rows of a large fleet ask for the same as many others."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np
import numpy.typing as npt

from headrace.solver.core.problem import Row

Ints = npt.NDArray[np.int64]


class Wish(NamedTuple):
    """What an engine must be to serve a row: nothing else decides but the network."""

    model: str
    requires: tuple[str, ...]
    residency: tuple[str, ...]


@dataclass(frozen=True, slots=True, eq=False)
class Asked:
    """Of R rows (R,) which of the wishes each has, in the order in which they first come, and which of the clusters."""

    wishes: tuple[Wish, ...]
    wish: Ints
    clusters: tuple[str, ...]
    cluster: Ints


def asked_of(rows: Sequence[Row]) -> Asked:
    """Number the rows' wishes and clusters; clusters are sorted."""
    numbers: dict[tuple[str, tuple[str, ...], tuple[str, ...]], int] = {}
    wish = [numbers.setdefault((r.route.model, r.requires, r.residency), len(numbers)) for r in rows]
    names = [r.route.cluster for r in rows]
    clusters = sorted(set(names))
    number = {cluster: i for i, cluster in enumerate(clusters)}
    return Asked(
        tuple(Wish(*each) for each in numbers),
        np.array(wish, dtype=np.int64),
        tuple(clusters),
        np.array([number[name] for name in names], dtype=np.int64),
    )
