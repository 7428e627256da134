"""Callers' credentials: a file of them, and whether a request carries one.

    # a line is `name credential`, or a credential alone
    team-search  sk-7f0c...

Kept as SHA-256 digests. A given credential is looked up by its digest, which tells nothing of how near a wrong one was,
and the digests are compared in constant time.
"""

import hashlib
import hmac
from collections.abc import Mapping
from typing import Final

from headrace.schemas.errors import InvalidInputError
from headrace.schemas.ids import identifier_problem

MAX_CREDENTIALS: Final = 100_000
MIN_CHARS: Final = 8
_SCHEME: Final = "bearer "

Credentials = Mapping[bytes, str]
"""The caller's name by the digest of its credential."""


def parse_credentials(text: str, name: str) -> Credentials:
    """Read a file of credentials; `name` is what errors call it. They never repeat a credential.

    Raises:
        InvalidInputError: it holds none, or a line is not of the form.
    """
    problems: list[str] = []
    found: dict[bytes, str] = {}
    for number, line in enumerate(text.splitlines(), 1):
        parts = line.split()
        if not parts or parts[0].startswith("#"):
            continue
        caller, credential = parts[0] if len(parts) == 2 else f"line-{number}", parts[-1]
        problem = identifier_problem(f"line {number}: the name", caller) if len(parts) == 2 else None
        if len(parts) > 2:
            problems.append(f"line {number} has {len(parts)} words; `name credential` or `credential`")
        elif problem is not None:
            problems.append(problem)
        elif len(credential) < MIN_CHARS:
            problems.append(f"line {number}: the credential has {len(credential)} characters; at least {MIN_CHARS}")
        elif digest_of(credential) in found:
            problems.append(f"line {number}: the credential was given before")
        else:
            found[digest_of(credential)] = caller
    if len(found) > MAX_CREDENTIALS:
        problems.append(f"{len(found)} credentials; at most {MAX_CREDENTIALS}")
    if not found and not problems:
        problems.append("holds no credential; without any, leave the setting out")
    if problems:
        raise InvalidInputError(name, tuple(problems))
    return found


def caller_of(authorization: str | None, credentials: Credentials) -> str | None:
    """Give the caller that an Authorization header proves; None where it proves none."""
    if authorization is None or authorization[: len(_SCHEME)].lower() != _SCHEME:
        return None
    digest = digest_of(authorization[len(_SCHEME) :].strip())
    caller = credentials.get(digest)
    # The look-up has compared already; this makes the comparison that decides one of constant time.
    known = digest if caller is not None else bytes(len(digest))
    return caller if hmac.compare_digest(known, digest) else None


def digest_of(credential: str) -> bytes:
    """Give a credential's SHA-256."""
    return hashlib.sha256(credential.encode("utf-8", "surrogateescape")).digest()
