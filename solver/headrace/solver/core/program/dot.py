"""a . b in blocks, one after the other: the same bits on a machine with one core and on one with many.

A BLAS splits long sums over as many threads as there are cores, and the sum's last bits are then the machine's; its
threads wait for each other busily, too, which on a machine that has other things to do costs more than the sum.
"""

from headrace.solver.core.linear import Floats

BLOCK = 8192
"""Below the length from which OpenBLAS splits a sum, 10,000."""


def dot(a: Floats, b: Floats) -> float:
    """Give the sum of a[i] b[i]; of nothing it is 0.0."""
    total = 0.0
    for i in range(0, len(a), BLOCK):
        total += float(a[i : i + BLOCK] @ b[i : i + BLOCK])
    return total
