"""The content security policy: nothing but the console's own files, no inline script, nothing from elsewhere.

The charting library puts two style sheets into the page by script: an empty one, whose rules it then adds one by one,
and one for maps, which it adds whether there is a map or not. Both are let in by the hash of their text, and no other
inline style is.
"""

import base64
import hashlib
import re

_INLINED = re.compile(r"\.textContent='((?:[^'\\]|\\.)*)'")
_ESCAPED = re.compile(r"\\(.)")
_MEANT = {"n": "\n", "t": "\t"}


def policy(library: str) -> str:
    """Give the header's value; `library` is the charting library's text."""
    styles = " ".join(f"'{_hash(text)}'" for text in ("", *_inlined(library)))
    return (
        f"default-src 'none'; script-src 'self'; style-src 'self' {styles}; img-src 'self' data:; "
        "connect-src 'self'; form-action 'self'; base-uri 'none'; frame-ancestors 'none'"
    )


def _inlined(library: str) -> list[str]:
    """Give the texts of the style sheets that the library puts into the page."""
    texts = (_ESCAPED.sub(lambda found: _MEANT.get(found[1], found[1]), text) for text in _INLINED.findall(library))
    return [text for text in texts if "{" in text]


def _hash(text: str) -> str:
    return f"sha256-{base64.b64encode(hashlib.sha256(text.encode()).digest()).decode()}"
