"""The three standard streams as they are given: one that is closed is empty, and one that is full is said to be."""

import errno
import os
import sys

_STREAMS = (("stdin", "r"), ("stdout", "w"), ("stderr", "w"))
_NO_ROOM = (errno.ENOSPC, errno.EDQUOT, errno.EFBIG, errno.EIO, errno.EROFS)


def open_closed() -> None:
    """Give each stream that was closed (`<&-`, `>&-`) the null device, at its own number where that is still free.

    Python has None there, which nobody asks for; and the next socket to be opened would be standard output.
    """
    for number, (name, mode) in enumerate(_STREAMS):
        if getattr(sys, name) is not None:
            continue
        opened = os.open(os.devnull, os.O_RDONLY if mode == "r" else os.O_WRONLY)
        if opened != number and not _is_open(number):
            os.dup2(opened, number)
            os.close(opened)
            opened = number
        setattr(sys, name, os.fdopen(opened, mode, encoding="utf-8"))


def why_unwritten(error: BaseException) -> str | None:
    """Say that nothing can be written, and why; None where the error is another.

    What standard output still holds goes nowhere then: Python would try once more at its end, and complain in its way.
    """
    if not isinstance(error, OSError) or error.errno not in _NO_ROOM:
        return None
    if error.filename is not None:
        return f"{error.filename} cannot be written: {error.strerror}"
    null = os.open(os.devnull, os.O_WRONLY)
    os.dup2(null, sys.stdout.fileno())
    os.close(null)
    return f"the output cannot be written: {error.strerror}"


def _is_open(number: int) -> bool:
    try:
        os.fstat(number)
    except OSError:
        return False
    return True
