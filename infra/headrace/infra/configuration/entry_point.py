"""A mapping's own Python, `package.module:function`, loaded: the one way out where YAML does not reach."""

import importlib
from typing import TYPE_CHECKING, cast

from headrace.schemas.errors import InvalidInputError

if TYPE_CHECKING:
    from headrace.streams.core.mapping.apply import Rewrite


def load_rewrite(entry_point: str) -> "Rewrite":
    """Import the module and give the function.

    Raises:
        InvalidInputError: there is no such module, or no such function in it.
    """
    module_name, _, name = entry_point.partition(":")
    try:
        module = importlib.import_module(module_name)
    except ImportError as error:
        raise InvalidInputError("python", (f"python is {entry_point!r}; {error}",)) from error
    function: object = getattr(module, name, None)
    if not callable(function):
        raise InvalidInputError("python", (f"python is {entry_point!r}; {module_name} has no function {name}",))
    return cast("Rewrite", function)
