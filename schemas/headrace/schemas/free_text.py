"""Free text that somebody wrote into a record: bounded, and text that UTF-8 can carry to whoever reads it."""

MAX_TEXT = 2_000


def text_problem(name: str, value: str) -> str | None:
    """Give the sentence that says why `value` is no free text, or None where it is.

    Refused are more than 2,000 characters, and halves of a surrogate pair: JSON can write one, no encoding can.
    """
    if len(value) > MAX_TEXT:
        return f"{name} has {len(value)} characters; at most {MAX_TEXT}"
    try:
        value.encode()
    except UnicodeEncodeError as error:
        half = value[error.start]
        return f"{name} is {value[:60]!r}; {half!r} at character {error.start} is half a character and cannot be sent"
    return None


def line_problem(name: str, value: str) -> str | None:
    """Give the sentence that says why `value` is no single line of free text, or None where it is one."""
    wrong = next((c for c in value[:MAX_TEXT] if not c.isprintable() and not "\ud800" <= c <= "\udfff"), None)
    if wrong is not None:
        return f"{name} is {value[:60]!r}; {wrong!r} has no place in one line of text"
    return text_problem(name, value)
