"""How many examples a property is tried on: a few in every run, a thousand where HEADRACE_THOROUGH=1 is set."""

import os
from typing import Final

THOROUGH: Final = os.environ.get("HEADRACE_THOROUGH", "") not in ("", "0")


def examples(usual: int, thorough: int = 1_000) -> int:
    """Give hypothesis its `max_examples`."""
    return thorough if THOROUGH else usual
