"""Readers of HDF5 files on object stores as benchmark peers for arrays:

    peer.py LIBRARY URL PATH..      LIBRARY: ros3, fsspec, s3fs, remfile, h5coro, virtualizarr

ros3 is libhdf5's own driver for object stores, under h5py. fsspec and s3fs give h5py a file with fsspec's read-ahead; remfile
gives it one with a cache of chunks; h5coro is a reader of its own; virtualizarr maps the file's chunks first and reads them through
zarr. Of SERVER/bucket/key, s3fs asks for bucket/key by the protocol of S3, the others by plain HTTP. Output:
../common/array_peer.py.
"""

import os
import sys
import time
from urllib.parse import urlsplit

begin_import = time.perf_counter()
here = os.path.dirname(os.path.abspath(__file__))
sys.path.insert(0, os.path.join(here, "../common"))
from array_peer import in_file, main  # noqa: E402

library = sys.argv.pop(1)


def of_h5py(opened, paths):
    import h5py

    with h5py.File(opened, "r") as file:
        for path in in_file(file, paths):
            yield path, file[path][()]


if library == "ros3":
    import h5py

    def arrays(args):
        with h5py.File(args.file, "r", driver="ros3") as file:
            for path in in_file(file, args.paths):
                yield path, file[path][()]

elif library == "fsspec":
    import aiohttp  # noqa: F401
    import fsspec
    import h5py  # noqa: F401

    def arrays(args):
        with fsspec.open(args.file, "rb") as opened:
            yield from of_h5py(opened, args.paths)

elif library == "s3fs":
    import h5py  # noqa: F401
    import s3fs

    def arrays(args):
        url = urlsplit(args.file)
        system = s3fs.S3FileSystem(anon=True, client_kwargs={"endpoint_url": f"{url.scheme}://{url.netloc}", "region_name": "us-east-1"})
        with system.open(url.path.lstrip("/"), "rb") as opened:
            yield from of_h5py(opened, args.paths)

elif library == "remfile":
    import h5py  # noqa: F401
    import remfile

    def arrays(args):
        yield from of_h5py(remfile.File(args.file), args.paths)

elif library == "h5coro":
    from h5coro import h5coro, webdriver

    def arrays(args):
        opened = h5coro.H5Coro(args.file, webdriver.HTTPDriver)
        read = opened.readDatasets(args.paths, block=True)
        for path in args.paths:
            yield path, read[path]

elif library == "virtualizarr":
    import obstore.store
    import zarr
    from obspec_utils.registry import ObjectStoreRegistry
    from virtualizarr.parsers import HDFParser

    def arrays(args):
        url = urlsplit(args.file)
        base = f"{url.scheme}://{url.netloc}"
        store = obstore.store.HTTPStore.from_url(base, client_options={"allow_http": True})
        registry = ObjectStoreRegistry({base: store})
        for path in args.paths:
            group, name = path.rsplit("/", 1)
            yield path, zarr.open_group(HDFParser(group=group)(args.file, registry), mode="r")[name][...]

else:
    sys.exit(f"error: no library {library}")

if __name__ == "__main__":
    main("h5py" if library == "ros3" else library, begin_import, arrays, flags="as published", threads=lambda _: None)
