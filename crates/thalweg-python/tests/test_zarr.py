"""HDF5 files as stores of zarr, and their chunks for VirtualiZarr."""

import asyncio
import os
import pickle
import subprocess
import sys
import warnings

import numpy as np
import pytest
import thalweg

h5py = pytest.importorskip("h5py")
zarr = pytest.importorskip("zarr")
xr = pytest.importorskip("xarray")
netCDF4 = pytest.importorskip("netCDF4")
pytest.importorskip("thalweg.zarr")


@pytest.fixture(scope="module")
def written(tmp_path_factory):
    """A file with many types and filters."""
    path = tmp_path_factory.mktemp("zarr") / "a.h5"
    values = np.arange(7 * 10).reshape(7, 10)
    with h5py.File(path, "w") as file:
        for name, options in {
            "plain": {},
            "chunks": {"chunks": (3, 4)},
            "gzip": {"chunks": (3, 4), "compression": "gzip", "shuffle": True, "fletcher32": True},
            "lzf": {"chunks": (3, 4), "compression": "lzf"},
        }.items():
            for kind in ["<i2", ">i4", "<f8", "u1"]:
                file.create_dataset(f"{name}/{kind[-2:]}", data=values.astype(kind), **options)
        file["types/complex"] = np.array([1 + 2j, 3])
        file["types/bool"] = [True, False, True]
        file["types/one"] = 5.5
        file["types/array"] = np.zeros((2, 3))
        file.create_dataset("types/inner", (2,), np.dtype(("<i4", (3,))))[...] = np.arange(6).reshape(2, 3)
        file.create_dataset("types/unwritten", (5, 3), "f4", fillvalue=2.5, chunks=(2, 2))
        file.create_dataset("types/empty", (0, 3), "f4", maxshape=(None, 3))
        file["text/words"] = np.array([["a", "größer"], ["", "d"], ["e", "f"]], object)
        file["text/word"] = "one"
        file["text/fixed"] = np.array([b"ab", b"c"])
        file["gzip"].attrs.update({"units": "K", "numbers": [1, 2], "nan": np.nan})
    return path


def compare(group, theirs):
    count = 0
    for name, array in group.arrays():
        expected = theirs[name]
        values = expected[()] if h5py.check_string_dtype(expected.dtype) is None else None
        if values is None:
            length = h5py.check_string_dtype(expected.dtype).length
            values = expected[()] if length else np.asarray(expected.asstr()[()], object)
        found = array[...]
        assert np.shape(found) == np.shape(values), name
        assert np.array_equal(found, values), name
        count += 1
    for name, below in group.groups():
        count += compare(below, theirs[name])
    return count


def test_all_arrays_are_those_of_h5py(written):
    import thalweg.zarr

    group = thalweg.zarr.open(written)
    assert group.metadata.consolidated_metadata is not None
    with h5py.File(written) as theirs:
        assert compare(group, theirs) == 26
        assert sorted(group.group_keys()) == sorted(theirs)
        assert dict(group["gzip"].attrs) | {"nan": 0} == {"units": "K", "numbers": [1, 2], "nan": 0}
        chunks = group["chunks/i4"]
        assert chunks.chunks == (3, 4) and np.array_equal(chunks[2:5, 3:9], theirs["chunks/i4"][2:5, 3:9])
        assert group["types/unwritten"].fill_value == 2.5


def test_events_are_those_of_h5py(files):
    import thalweg.zarr

    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        group = thalweg.zarr.open(files / "run.nxs")
    with h5py.File(files / "run.nxs") as theirs:
        for bank in range(1, 5):
            path = f"entry/bank{bank}_events/event_id"
            assert np.array_equal(group[path][...], theirs[path][...])
        assert group["entry"].attrs["NX_class"] == "NXentry"


def test_the_store_is_one_of_zarr(written):
    from thalweg.zarr import Store
    from zarr.abc.store import OffsetByteRequest, RangeByteRequest, SuffixByteRequest

    store = Store(written)
    assert store.read_only and not store.supports_writes and store == pickle.loads(pickle.dumps(store))

    async def listed(keys):
        return sorted([key async for key in keys])

    async def questions():
        keys = await listed(store.list())
        assert "chunks/i4/c/2/1" in keys and "types/one/c" in keys and "gzip/zarr.json" in keys
        assert all([await store.exists(key) for key in keys])
        for key in ["chunks/i4/c/3/0", "chunks/i4/c/0", "none/zarr.json", "chunks/i4/c/a/b", "chunks/c/0/0"]:
            assert not await store.exists(key) and await store.get(key) is None, key
        assert await listed(store.list_dir("")) == ["chunks", "gzip", "lzf", "plain", "text", "types", "zarr.json"]
        assert await listed(store.list_dir("chunks/i4")) == ["c", "zarr.json"]
        assert await listed(store.list_prefix("types/one")) == ["types/one/c", "types/one/zarr.json"]
        whole = (await store.get("chunks/i4/c/2/2")).to_bytes()
        assert len(whole) == 3 * 4 * 4 and whole[:8] == np.array([68, 69], "<i4").tobytes()
        parts = [RangeByteRequest(2, 6), OffsetByteRequest(40), SuffixByteRequest(3)]
        for wanted, expected in zip(parts, [whole[2:6], whole[40:], whole[-3:]]):
            assert (await store.get("chunks/i4/c/2/2", byte_range=wanted)).to_bytes() == expected
        with pytest.raises((thalweg.UnsupportedError, ValueError)):
            await store.set("a", None)

    asyncio.run(questions())


def test_what_zarr_has_no_type_for_is_named(tmp_path):
    from thalweg.zarr import Store

    with h5py.File(tmp_path / "a.h5", "w") as file:
        file["reference"] = file.ref
        file["good"] = [1, 2]
    with pytest.warns(UserWarning, match="/reference is left out"):
        store = Store(tmp_path / "a.h5")
    assert list(zarr.open_group(store, mode="r").array_keys()) == ["good"]


@pytest.fixture(scope="module")
def weather(tmp_path_factory):
    """A netCDF-4 file."""
    path = tmp_path_factory.mktemp("nc") / "weather.nc"
    rng = np.random.default_rng(1)
    ds = xr.Dataset(
        {
            "temperature": (("time", "lat"), rng.normal(280, 5, (20, 9))),
            "packed": (("time", "lat"), rng.normal(0, 1, (20, 9)).astype("f4")),
        },
        {"time": np.arange(20), "lat": ("lat", np.linspace(-4, 4, 9), {"units": "degrees_north"})},
        {"title": "a test", "numbers": [1, 2, 3]},
    )
    encoding = {
        "temperature": {"zlib": True, "shuffle": True, "chunksizes": (7, 4)},
        "packed": {"dtype": "i2", "scale_factor": 0.01, "_FillValue": -9999},
    }
    ds.to_netcdf(path, engine="netcdf4", encoding=encoding)
    with netCDF4.Dataset(path, "a") as file:
        file.createDimension("bare", 3)
        file.createVariable("unwritten", "f8", ("bare", "lat"), chunksizes=(2, 9), zlib=True)
        group = file.createGroup("inner")
        group.createVariable("v", "i8", ("lat",), zlib=True, complevel=9)[:] = np.arange(9)
        group.units = "K"
    return path


def test_stores_open_in_xarray(weather):
    from thalweg.zarr import Store

    theirs = xr.open_dataset(weather, engine="netcdf4")
    ours = xr.open_zarr(Store(weather), consolidated=True)
    xr.testing.assert_identical(ours.load(), theirs.load())
    inner = xr.open_zarr(Store(weather), group="inner")
    assert np.array_equal(inner.v.values, np.arange(9)) and inner.attrs == {"units": "K"}


@pytest.fixture
def registry(weather):
    pytest.importorskip("virtualizarr")
    obstore = pytest.importorskip("obstore.store")
    from obspec_utils.registry import ObjectStoreRegistry

    return ObjectStoreRegistry({"file://": obstore.LocalStore()})


def test_the_parser_finds_what_virtualizarr_finds(weather, registry):
    from thalweg.virtualizarr import Parser
    from virtualizarr.parsers import HDFParser
    from virtualizarr.parsers.typing import Parser as Protocol

    url = weather.as_uri()
    assert isinstance(Parser(), Protocol)
    for group in None, "inner":
        ours, theirs = Parser(group=group)(url, registry)._group, HDFParser(group=group)(url, registry)._group
        same_groups(ours, theirs)
    store = Parser()(url, registry)
    with xr.open_zarr(store, consolidated=False, zarr_format=3) as found:
        xr.testing.assert_identical(found.load(), xr.open_dataset(weather, engine="netcdf4").load())
    with store.to_virtual_dataset() as virtual:
        assert set(virtual.variables) == {"temperature", "packed", "time", "lat", "unwritten"}
    dropped = Parser(drop_variables=["packed", "inner"])(url, registry)._group
    assert "packed" not in dropped.arrays and not dropped.groups


def same_groups(ours, theirs):
    assert set(ours.arrays) == set(theirs.arrays) and set(ours.groups) == set(theirs.groups)
    assert ours.metadata.attributes == theirs.metadata.attributes
    for name, array in ours.arrays.items():
        other = theirs.arrays[name]
        assert array.manifest.dict() == other.manifest.dict(), name
        assert array.metadata.codecs == other.metadata.codecs, name
        assert array.metadata.to_dict() == other.metadata.to_dict(), name
    for name in ours.groups:
        same_groups(ours.groups[name], theirs.groups[name])


def test_values_behind_the_parser_are_those_of_h5py(written, registry):
    from thalweg.virtualizarr import Parser

    parser = Parser(drop_variables=["lzf", "text"])
    group = zarr.open_group(parser(written.as_uri(), registry), mode="r", zarr_format=3)
    with h5py.File(written) as theirs:
        for name in ["plain", "chunks", "gzip"]:
            for kind, values in theirs[name].items():
                assert np.array_equal(group[f"{name}/{kind}"][...], values[...]), (name, kind)
        for name in ["complex", "bool", "one", "array", "inner", "unwritten", "empty"]:
            assert np.array_equal(group[f"types/{name}"][...], theirs[f"types/{name}"][...]), name


@pytest.mark.parametrize("name", ["zstd", "blosc", "bzip2"])
def test_filters_of_plugins_are_parsed(tmp_path, registry, name):
    pytest.importorskip("hdf5plugin")
    from thalweg.virtualizarr import Parser

    # In a process of its own: netCDF4 brings plugins that are not for the libhdf5 of h5py.
    write = f"""
import h5py, hdf5plugin, numpy
filters = {{"zstd": hdf5plugin.Zstd(5), "blosc": hdf5plugin.Blosc("lz4", 5, 1), "bzip2": hdf5plugin.BZip2()}}
with h5py.File({str(tmp_path / "a.h5")!r}, "w") as file:
    values = numpy.arange(1000).reshape(100, 10)
    file.create_dataset("a", data=values, chunks=(30, 10), **filters[{name!r}])
"""
    environment = {name: value for name, value in os.environ.items() if name != "HDF5_PLUGIN_PATH"}
    subprocess.run([sys.executable, "-c", write], check=True, env=environment)
    group = zarr.open_group(Parser()((tmp_path / "a.h5").as_uri(), registry), mode="r", zarr_format=3)
    assert np.array_equal(group["a"][...], np.arange(1000).reshape(100, 10))


def test_what_has_no_codec_is_an_error(written, registry, tmp_path):
    from thalweg.virtualizarr import Parser

    with pytest.raises(thalweg.UnsupportedError, match="lzf"):
        Parser(group="lzf")(written.as_uri(), registry)
    with pytest.raises(thalweg.UnsupportedError, match="strings"):
        Parser(group="text")(written.as_uri(), registry)
    with netCDF4.Dataset(tmp_path / "a.nc", "w") as file:
        file.createDimension("x", 5)
        file.createVariable("v", "i4", ("x",), zlib=True, shuffle=True, fletcher32=True)[:] = np.arange(5)
    with pytest.raises(thalweg.UnsupportedError, match="checksum"):
        Parser()((tmp_path / "a.nc").as_uri(), registry)
    with h5py.File(tmp_path / "a.h5", "w") as file:
        layout = h5py.VirtualLayout((10,), "i4")
        layout[:] = h5py.VirtualSource(written, "plain/i4", (7, 10))[0]
        file.create_virtual_dataset("v", layout)
    with pytest.raises(thalweg.UnsupportedError, match="not in chunks"):
        Parser()((tmp_path / "a.h5").as_uri(), registry)


def test_groups_may_be_called_c(tmp_path):
    with h5py.File(tmp_path / "a.h5", "w") as file:
        file["c/x"] = 5.5
        file["g/c/y"] = 7
        file["g/c/c"] = np.arange(3)
    group = thalweg.zarr.open(tmp_path / "a.h5")
    assert group["c/x"][()] == 5.5 and group["g/c/y"][()] == 7 and group["g/c/c"][...].tolist() == [0, 1, 2]
    with h5py.File(tmp_path / "b.h5", "w") as file:
        file["c"] = 2.5
    assert thalweg.zarr.open(tmp_path / "b.h5")["c"][()] == 2.5
