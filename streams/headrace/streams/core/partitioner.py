"""Which partition a key belongs to: (murmur2(key) & 0x7fffffff) mod partitions, as Kafka's Java clients have it.

Every producer of ours is set to it; a key that lies elsewhere came from a producer with another partitioner, and its
state would be folded by a worker that does not own it.

Source: Apache Kafka, `org.apache.kafka.common.utils.Utils.murmur2`, and Appleby's public-domain MurmurHash2.
"""

from functools import lru_cache

_M = 0x5BD1E995
_SEED = 0x9747B28C
_MASK = 0xFFFFFFFF


def murmur2(key: bytes) -> int:
    """Give the 32-bit MurmurHash2 of a key with Kafka's seed, unsigned."""
    length = len(key)
    h = _SEED ^ length
    whole = length & ~3
    for i in range(0, whole, 4):
        k = int.from_bytes(key[i : i + 4], "little") * _M & _MASK
        k = (k ^ k >> 24) * _M & _MASK
        h = h * _M & _MASK ^ k
    if length & 3:
        h = (h ^ int.from_bytes(key[whole:], "little")) * _M & _MASK
    h = (h ^ h >> 13) * _M & _MASK
    return h ^ h >> 15


@lru_cache(maxsize=65_536)
def partition_of(key: bytes, partitions: int) -> int:
    """Give the partition that a key belongs to; the cache holds the keys of the largest fleet we plan for."""
    return (murmur2(key) & 0x7FFFFFFF) % partitions
