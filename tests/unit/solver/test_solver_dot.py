"""A sum that decides nothing by how many cores a machine has."""

import os
import subprocess
import sys

import numpy as np
import pytest

from headrace.solver.core.program.dot import BLOCK, dot

LONG = """
import numpy as np
from headrace.solver.core.program.dot import dot
dice = np.random.default_rng(1)
print(dot(dice.random(400_000), dice.random(400_000)).hex())
"""


def test_a_long_sum_has_the_same_bits_whatever_threads_there_are_for_it() -> None:
    def bits(threads: int) -> str:
        env = os.environ | {"OPENBLAS_NUM_THREADS": str(threads)}
        return subprocess.run((sys.executable, "-c", LONG), check=True, env=env, capture_output=True, text=True).stdout

    assert bits(1) == bits(2) == bits(4)


@pytest.mark.parametrize("size", [0, 1, BLOCK, BLOCK + 1, 3 * BLOCK])
def test_every_product_is_in_it_once(size: int) -> None:
    numbers = np.arange(size, dtype=np.float64)
    assert dot(numbers, np.full(size, 2.0)) == size * (size - 1)
