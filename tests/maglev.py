"""A weighted Maglev table in plain Python, to hold the slot table against.

Source: Eisenbud et al., "Maglev", NSDI 2016, section 3.4; with weights as its authors suggest: turns in proportion.
"""

import xxhash


def maglev(ppm: dict[str, int], size: int) -> list[str]:
    """Give a weighted Maglev table: engines take turns, as often as their weight over the largest."""
    hashes = {e: xxhash.xxh3_128_intdigest(e.encode()) for e in ppm}
    skip = {e: 1 + (h >> 64) % (size - 1) for e, h in hashes.items()}
    slot = {e: (h & 0xFFFF_FFFF_FFFF_FFFF) % size for e, h in hashes.items()}
    table: list[str] = [""] * size
    credit, largest, filled = dict.fromkeys(ppm, 0.0), max(ppm.values()), 0
    while True:
        for engine, weight in ppm.items():
            credit[engine] += weight / largest
            if credit[engine] < 1.0:
                continue
            credit[engine] -= 1.0
            at = slot[engine]
            while table[at]:
                at = (at + skip[engine]) % size
            table[at] = engine
            slot[engine] = (at + skip[engine]) % size
            filled += 1
            if filled == size:
                return table
