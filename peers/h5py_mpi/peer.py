"""h5py on several ranks, as the published loader of neutron events did it: rank r of n reads the slabs r, r + n, r + 2n, ... of
2,097,152 elements of each dataset, each rank with a file handle of its own.

    peer.py FILE PATH.. --ranks N

The clock runs between two barriers on every rank: opening the file and the datasets lies outside, as it did there, and is reported
beside it. Each rank sums the words of a slab as soon as it has it; the digest, which every value of every slab enters, is made after
the clock has stopped."""

import os
import sys
import time

begin_import = time.perf_counter()
sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "../common"))
SLAB = 2_097_152


def launch(ranks):
    """Goes on as `ranks` processes under the mpiexec that came with the library."""
    mpiexec = os.path.join(os.path.dirname(sys.executable), "mpiexec")
    rest = [word for i, word in enumerate(sys.argv[1:], 1) if word != "--ranks" and sys.argv[i - 1] != "--ranks"]
    os.environ["THALWEG_RANKS"] = ranks
    os.execv(mpiexec, [mpiexec, "-n", ranks, sys.executable, os.path.abspath(__file__), *rest])


if __name__ == "__main__" and "--ranks" in sys.argv:
    launch(sys.argv[sys.argv.index("--ranks") + 1])

import h5py  # noqa: E402
from array_peer import MASK, checksum, digest, in_file, parse, report, stored_bytes, total  # noqa: E402
from mpi4py import MPI  # noqa: E402


def read(datasets, rank, ranks):
    """This rank's slabs: for each, its dataset, its first word and its values."""
    for number, dataset in enumerate(datasets):
        for first in range(rank * SLAB, dataset.shape[0], ranks * SLAB):
            values = dataset[first : first + SLAB]
            yield number, first * dataset.dtype.itemsize // 8, values


def main():
    import_s = time.perf_counter() - begin_import
    world = MPI.COMM_WORLD
    rank, ranks = world.Get_rank(), world.Get_size()
    if str(ranks) != os.environ.get("THALWEG_RANKS", str(ranks)):
        sys.exit(f"error: {ranks} ranks were started, not {os.environ['THALWEG_RANKS']}")
    args = parse()
    begin = time.perf_counter()
    file = h5py.File(args.file, "r")
    paths = in_file(file, args.paths)
    datasets = [file[path] for path in paths]
    open_s = time.perf_counter() - begin
    if any(dataset.ndim != 1 for dataset in datasets):
        sys.exit("error: slabs are of datasets of one dimension")

    held, sums = [], 0
    world.Barrier()
    begin, cpu = time.perf_counter(), time.process_time()
    for slab in read(datasets, rank, ranks):
        sums += total(slab[2])
        held.append(slab)
    cpu_s = time.process_time() - cpu
    world.Barrier()
    seconds = time.perf_counter() - begin

    checksums = [0] * len(datasets)
    for number, first, values in held:
        checksums[number] = (checksums[number] + checksum(values, first)) & MASK
    decoded = sum(values.nbytes for _, _, values in held)
    told = world.gather((seconds, cpu_s, open_s, sums, decoded, checksums))
    if rank == 0:
        seconds, cpus, opens, sums, decoded, checksums = zip(*told)
        report(
            "h5py",
            f"as published, HDF5 {h5py.version.hdf5_version}, MPI {MPI.Get_library_version().split()[2]}",
            workload="h5py-mpi-arrays",
            open_to_last_s=max(seconds),
            cpu_s=sum(cpus),
            open_s=max(opens),
            ranks=ranks,
            threads=ranks,
            datasets=len(datasets),
            bytes_decoded=sum(decoded),
            sum=sum(sums) & MASK,
            digest=digest([sum(parts) & MASK for parts in zip(*checksums)]),
            stages={},
            import_s=import_s,
            needed_bytes=stored_bytes(args.file, args.paths),
        )


if __name__ == "__main__":
    main()
