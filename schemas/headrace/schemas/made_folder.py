"""A folder that somebody named, made with all above it, or refused in the words of whoever named it."""

import tempfile
from pathlib import Path

from headrace.schemas.errors import InvalidInputError


def made_folder(path: Path, name: str) -> Path:
    """Make a folder unless it is there, and try whether it takes a file; `name` is the flag or setting that says it.

    Raises:
        InvalidInputError: it cannot be made, or nothing can be written into it.
    """
    try:
        path.mkdir(parents=True, exist_ok=True)
        with tempfile.TemporaryFile(dir=path):
            pass
    except (OSError, ValueError) as error:
        reason = (error.strerror or error) if isinstance(error, OSError) else error
        raise InvalidInputError(name, (f"{name} is {str(path)!r}; a folder that can be written: {reason}",)) from error
    return path
