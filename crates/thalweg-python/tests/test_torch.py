"""A data set of PyTorch. PyTorch is no part of the test environment: it brings gigabytes."""

import numpy as np
import pytest
import thalweg

torch = pytest.importorskip("torch", reason="PyTorch is not installed: its tests are skipped")
import thalweg.torch


def loaded(data, **how):
    return list(torch.utils.data.DataLoader(data, batch_size=None, **how))


@pytest.mark.parametrize("workers", [0, 1, 3])
def test_workers_share_the_reads(files, workers):
    reads = {read.id: np.array(read.signal) for read in thalweg.open(files / "reads.blow5")}
    data = thalweg.torch.Reads(files / "reads.blow5", block=8)
    found = loaded(data, num_workers=workers)
    assert len(data) == len(found) == len(reads)
    assert all(np.array_equal(read["signal"].numpy(), reads[read["read_id"]]) for read in found)
    if workers == 0:
        assert [read["read_id"] for read in found] == list(reads)


def test_ranks_share_the_reads(files):
    ids = thalweg.open(files / "reads.pod5").ids
    found = []
    for rank in range(2):
        data = thalweg.torch.Reads(files / "reads.pod5", rank=rank, ranks=2, block=4, transform=lambda read: read.id)
        found += loaded(data, num_workers=2)
    assert sorted(found) == sorted(ids)


def test_epochs_have_another_order(files):
    data = thalweg.torch.Reads(files / "reads.pod5", shuffle=True, block=4, transform=lambda read: read.id)
    orders = []
    for epoch in [0, 0, 1]:
        data.set_epoch(epoch)
        orders.append(loaded(data))
    assert orders[0] == orders[1] != orders[2] and sorted(orders[0]) == sorted(orders[2]) == sorted(data.reads.ids)
    assert orders[0] != data.reads.ids


def test_some_reads_as_batches(files):
    data = thalweg.torch.Reads(
        files / "reads.pod5",
        where="samples > 50000",
        transform=lambda read: torch.from_numpy(read.signal_pa[:4000]),
    )
    batches = list(torch.utils.data.DataLoader(data, batch_size=4))
    assert all(batch.shape[1] == 4000 for batch in batches) and sum(map(len, batches)) == len(data) > 4
