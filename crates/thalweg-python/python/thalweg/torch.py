"""Nanopore reads as a data set of PyTorch.

>>> import thalweg.torch
>>> data = thalweg.torch.Reads("run/", transform=lambda read: torch.tensor(read.signal[:4000]))
>>> loader = torch.utils.data.DataLoader(data, batch_size=None, num_workers=4)
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from typing import Any, Union

import numpy as np
import torch
from torch.utils.data import IterableDataset, get_worker_info

import thalweg
from thalweg._paths import Path
from thalweg._parts import blocks
from thalweg.errors import UsageError
from thalweg.reads import Read


def _tensors(read: Read) -> dict[str, Any]:
    return {"read_id": read.id, "signal": torch.from_numpy(np.array(read.signal))}


class Reads(IterableDataset):  # type: ignore[misc]
    """Reads for training, divided among the workers of a `DataLoader` and the ranks of `torch.distributed`.

    Args:
        paths: A file, a folder, a pattern, or a list of them.
        transform: From a `thalweg.Read` to what the loader collates; by default a dictionary with `read_id` and `signal`.
        shuffle: Whether blocks of reads, and the reads within them, come in another order in each epoch.
        block: How many reads, which follow each other in a file, are read together.
        seed: The seed of the order.
        rank, ranks: The rank of this process, and how many there are; those of `torch.distributed` by default, if it is initialised.
        threads: Threads that decode, in each worker.
        memory: What reading may use, in each worker.
        where: Only reads for which a condition holds, as `thalweg filter --where` has it.

    >>> data = thalweg.torch.Reads("run/", shuffle=True)
    >>> data.set_epoch(3)
    """

    def __init__(
        self,
        paths: Union[Path, Sequence[Path]],
        *,
        transform: Callable[[Read], Any] | None = None,
        shuffle: bool = False,
        block: int = 256,
        seed: int = 0,
        rank: int | None = None,
        ranks: int | None = None,
        threads: int | None = 1,
        memory: float | str | None = None,
        where: str | None = None,
    ) -> None:
        super().__init__()
        opened = thalweg.open(paths, threads=threads, memory=memory)
        if not isinstance(opened, thalweg.Reads):
            raise UsageError(f"{paths}: expected files of reads")
        if block < 1:
            raise UsageError(f"block={block}: expected at least one read")
        self.reads = opened.filter(where)
        self.transform = transform or _tensors
        self.shuffle = shuffle
        self.block = block
        self.seed = seed
        self.epoch = 0
        running = torch.distributed.is_available() and torch.distributed.is_initialized()
        self.rank = rank if rank is not None else torch.distributed.get_rank() if running else 0
        self.ranks = ranks if ranks is not None else torch.distributed.get_world_size() if running else 1
        # Workers need not find them again.
        self._ids = self.reads.ids

    def set_epoch(self, epoch: int) -> None:
        """Sets the epoch: the order of the reads depends on it."""
        self.epoch = epoch

    def __len__(self) -> int:
        """The number of reads of this rank, of all its workers. Ranks may differ by a block."""
        return sum(map(len, blocks(self._ids, self.block, self.rank, self.ranks, None)))

    def __iter__(self) -> Iterator[Any]:
        worker = get_worker_info()
        number, workers = (worker.id, worker.num_workers) if worker is not None else (0, 1)
        seed = f"{self.seed}/{self.epoch}" if self.shuffle else None
        of_rank = blocks(self._ids, self.block, self.rank, self.ranks, seed)
        # One list of ids is read in one pass: the next block is fetched while this one is used.
        ids = [read_id for one in of_rank[number::workers] for read_id in one]
        for read in self.reads.get(ids):
            yield self.transform(read)
