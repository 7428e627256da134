"""A folder that somebody named, made with all above it, or refused in the words of whoever named it; empty if asked."""

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


def empty_folder(path: Path, name: str, *, force: bool | None = None) -> Path:
    """Make a folder as `made_folder` does, and refuse one that holds something, unless that is what `force` is for.

    Args:
        path: the folder.
        name: the flag that says it.
        force: what `--force` says; None where there is no such flag.

    Raises:
        InvalidInputError: it holds something, cannot be made, or nothing can be written into it.
    """
    made_folder(path, name)
    if not force and any(path.iterdir()):
        other = "" if force is None else ", or --force, to write over what it holds by the same names"
        raise InvalidInputError(
            name, (f"{name} is {str(path)!r}, which is not empty; a folder that is empty or new{other}",)
        )
    return path
