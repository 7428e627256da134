"""Sparse arrays: coordinates -> compressed rows, and the connected components of a graph given by its edges.

Components by hooking and pointer jumping: Shiloach and Vishkin, "An O(log n) parallel connectivity algorithm", 1982.
"""

from typing import Any, TypeAlias

import numpy as np
import numpy.typing as npt
from scipy.sparse import csr_array  # type: ignore[import-untyped]  # scipy ships no types

Floats = npt.NDArray[np.float64]
Ints = npt.NDArray[np.int64]
Indices = npt.NDArray[np.int32]
Matrix: TypeAlias = Any
"""A scipy.sparse array; scipy ships no types."""


def compressed_rows(row: Ints, column: Ints, value: Floats, rows: int) -> tuple[Indices, Indices, Floats]:
    """Give row starts (rows + 1,), columns and values of a matrix with no place named twice; columns rise in a row."""
    order = np.lexsort((column, row))
    start = np.searchsorted(row[order], np.arange(rows + 1))
    return start.astype(np.int32), column[order].astype(np.int32), value[order]


def compressed_arcs(tail: Ints, head: Ints, nodes: int) -> tuple[Indices, Indices, Floats]:
    """Give the balance of a network's nodes: +1 where an arc leaves one, -1 where it enters; head -1 is outside."""
    inner = np.flatnonzero(head >= 0)
    column = np.concatenate((np.arange(len(tail)), inner))
    node = np.concatenate((tail, head[inner]))
    # An arc leaves one node and enters another, so that no place is named twice.
    order = np.argsort(node * max(len(tail), 1) + column, kind="stable")
    start = np.append(0, np.cumsum(np.bincount(node, minlength=nodes)))
    value = np.where(order < len(tail), 1.0, -1.0)
    return start.astype(np.int32), column[order].astype(np.int32), value


def rising_matrix(row: Ints, column: Ints, value: Floats, shape: tuple[int, int]) -> Matrix:
    """Give a sparse matrix to multiply with, of entries that come by row, then column; no place is named twice."""
    start = np.append(0, np.cumsum(np.bincount(row, minlength=shape[0])))
    return csr_array((value, column, start), shape=shape)


def component_labels(start: npt.NDArray[np.integer[Any]], end: npt.NDArray[np.integer[Any]], size: int) -> Ints:
    """Give each of `size` nodes the number of its connected component, by its lowest node; edges go either way.

    Every root takes the lowest root beside it, and all that hang below it follow, until no edge joins two. The same as
    scipy's `csgraph`, which loads the whole of scipy's linear algebra: a sixth of what a solver holds.
    """
    root = np.arange(size)
    while True:
        one, other = root[start], root[end]
        low, high = np.minimum(one, other), np.maximum(one, other)
        if bool((low == high).all()):
            return np.asarray((np.cumsum(root == np.arange(size)) - 1)[root], dtype=np.int64)
        np.minimum.at(root, high, low)
        while bool(((higher := root[root]) != root).any()):
            root = higher
