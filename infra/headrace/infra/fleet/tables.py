"""Rows of a measured table in `headrace.infra.data`, whose SOURCES.md says where each is from."""

import csv
import gzip
import io
from functools import cache
from importlib import resources


@cache
def rows(name: str) -> tuple[dict[str, str], ...]:
    """Give the rows of `<name>.csv.gz` in file order, each as {column: text}.

    Raises:
        FileNotFoundError: no such table ships.
    """
    packed = (resources.files("headrace.infra.data") / f"{name}.csv.gz").read_bytes()
    return tuple(csv.DictReader(io.StringIO(gzip.decompress(packed).decode("utf-8"))))
