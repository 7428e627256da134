"""Profiles as the file that `headrace fleet apply` reads: one `[[profiles]]` table each, in the record's own words."""

import json
from collections.abc import Iterable

from headrace.schemas.fleet import LatencyProfile
from headrace.schemas.plain import to_plain


def profiles_toml(profiles: Iterable[LatencyProfile]) -> str:
    """Give the TOML of profiles; fields that are null are left out."""
    return "\n".join(_table(profile) for profile in profiles)


def _table(profile: LatencyProfile) -> str:
    lines = ["[[profiles]]"]
    for name, value in to_plain(profile).items():
        if value is not None:
            # A JSON string, number or list of numbers is a TOML one, but for DEL, which TOML wants escaped.
            lines.append(f"{name} = {json.dumps(value, ensure_ascii=False)}".replace("\x7f", "\\u007f"))
    return "\n".join(lines) + "\n"
