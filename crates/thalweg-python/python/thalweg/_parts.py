"""Parts of a whole, for processes that share a read."""

from __future__ import annotations

import random
from collections.abc import Sequence

from thalweg.errors import UsageError


def bounds(length: int, rank: int, size: int) -> tuple[int, int]:
    """Where part `rank` of `size` parts begins and ends. Parts are as equal as they can be."""
    if not 0 <= rank < size:
        raise UsageError(f"part {rank} of {size}: expected a number from 0 on, and below that of the parts")
    return length * rank // size, length * (rank + 1) // size


def blocks(ids: Sequence[str], block: int, shard: int, shards: int, seed: str | int | None) -> list[list[str]]:
    """The blocks of ids that one of several readers reads, in its order.

    A block is reads that follow each other, so that they are read together. With a seed, the blocks are shuffled, the
    same way for all readers, and then the reads within each. Each id is in the blocks of exactly one reader.
    """
    numbers = list(range(-(-len(ids) // block)))
    if seed is not None:
        random.Random(seed).shuffle(numbers)
    mine = []
    for number in numbers[shard::shards]:
        one = list(ids[number * block : (number + 1) * block])
        if seed is not None:
            random.Random(f"{seed}/{number}").shuffle(one)
        mine.append(one)
    return mine
