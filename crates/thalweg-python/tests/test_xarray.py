"""The engine thalweg of xarray, against h5netcdf where it is installed, else against netCDF4."""

import importlib.util
import io
import os
import pickle
import warnings
from concurrent.futures import ThreadPoolExecutor
from importlib.metadata import entry_points
from pathlib import Path

import numpy as np
import pytest

xr = pytest.importorskip("xarray")
netCDF4 = pytest.importorskip("netCDF4")
pd = pytest.importorskip("pandas")
SHARED = Path(os.environ.get("THALWEG_SHARED", Path(__file__).parents[4] / "shared")) / "data/hdf5"
# Some files have datasets of gigabytes that nobody wrote.
MOST_BYTES = 1 << 28
H5NETCDF = importlib.util.find_spec("h5netcdf") is not None
PEER = "h5netcdf" if H5NETCDF else "netcdf4"
needs_h5netcdf = pytest.mark.skipif(not H5NETCDF, reason="h5netcdf, which names phony dimensions, is not installed")


@pytest.fixture(scope="module")
def engine():
    """The engine, registered as its entry point does for an installed package."""
    from thalweg.xarray import ThalwegBackend

    return ThalwegBackend


def both(path, engine, **options):
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        ours = xr.open_dataset(path, engine=engine, **options)
        theirs = xr.open_dataset(path, engine=PEER, **options)
    return ours, theirs


def assert_same(ours, theirs):
    xr.testing.assert_identical(ours.load(), theirs.load())
    for name, variable in theirs.variables.items():
        found = ours[name].variable
        assert found.dtype == variable.dtype or found.dtype == variable.dtype.newbyteorder("<"), name
        for what in ["chunksizes", "preferred_chunks", "original_shape", "zlib", "shuffle", "fletcher32", "_FillValue"]:
            assert np.array_equal(found.encoding.get(what), variable.encoding.get(what), equal_nan=False) or (
                found.encoding.get(what) != found.encoding.get(what)
            ), (name, what)
    assert ours.encoding["unlimited_dims"] == theirs.encoding["unlimited_dims"]


@pytest.fixture(scope="module")
def weather(tmp_path_factory):
    """A file that xarray writes, with all that CF has."""
    path = tmp_path_factory.mktemp("nc") / "weather.nc"
    rng = np.random.default_rng(1)
    ds = xr.Dataset(
        {
            "temperature": (("time", "lat", "lon"), rng.normal(280, 5, (20, 9, 12))),
            "packed": (("time", "lat"), rng.normal(0, 1, (20, 9)).astype("f4")),
            "name": ("station", np.array(["a", "größer", "ccc"], object)),
            "fixed": ("station", np.array([b"ab", b"c", b"def"])),
            "flag": ("lat", rng.integers(0, 2, 9).astype("i1"), {"flag_values": np.array([0, 1], "i1")}),
            "yes": ("lat", rng.integers(0, 2, 9).astype(bool)),
            "when": ("station", pd.to_timedelta([1, 2, 3], "h")),
            "single": 3.5,
        },
        {
            "time": pd.date_range("2020-01-01", periods=20, freq="6h"),
            "lat": ("lat", np.linspace(-4, 4, 9), {"units": "degrees_north"}),
            "lon": np.arange(12.0),
            "height": ("lat", np.arange(9)),
        },
        {"title": "a test", "numbers": [1, 2, 3], "one": 5, "words": ["a", "b"]},
    )
    ds.temperature.values[3, 4, 5] = np.nan
    encoding = {
        "temperature": {"zlib": True, "shuffle": True, "chunksizes": (7, 9, 4)},
        "packed": {"dtype": "i2", "scale_factor": 0.01, "add_offset": 5.0, "_FillValue": -9999},
        "fixed": {"char_dim_name": "letters"},
    }
    ds.to_netcdf(path, engine="netcdf4", encoding=encoding, unlimited_dims=["time"])
    return path


@pytest.fixture(scope="module")
def groups(tmp_path_factory):
    """A file that netCDF4 writes: groups that inherit dimensions, strings, and what was never written."""
    path = tmp_path_factory.mktemp("nc") / "groups.nc"
    with netCDF4.Dataset(path, "w") as file:
        file.createDimension("x", 4)
        file.createDimension("t", None)
        file.createDimension("empty", None)
        file.createVariable("x", ">f4", ("x",))[:] = [1, 2, 3, 4]
        file.createVariable("short", "i4", ("t", "x"), fill_value=-5)[:3] = np.arange(12).reshape(3, 4)
        file.createVariable("long", "f8", ("t",))[:6] = np.arange(6)
        file.createVariable("none", "f8", ("empty", "x"))
        file.createVariable("t2", "i4", ("t",))
        words = file.createVariable("words", str, ("x",))
        words[:] = np.array(["a", "bc", "d", "größer"], object)
        inner = file.createGroup("inner")
        inner.createDimension("y", 3)
        # Called like a dimension of another shape.
        inner.createVariable("y", "f4", ("y", "x"))[:] = np.ones((3, 4))
        inner.createVariable("z", "u1", ("y", "x"), chunksizes=(2, 2), fletcher32=True)[:] = np.arange(12).reshape(3, 4)
        deep = inner.createGroup("deep")
        deep.createVariable("v", "i8", ("x",), zlib=True, complevel=9)[:] = [1, 2, 3, 4]
        deep.units, file.title = "K", "with groups"
    return path


def test_files_of_xarray_are_identical(weather, engine):
    assert_same(*both(weather, engine))
    assert_same(*both(weather, engine, mask_and_scale=False, decode_times=False))
    assert_same(*both(weather, engine, decode_cf=False))
    assert_same(*both(weather, engine, drop_variables=["packed", "lat"]))


@pytest.mark.parametrize("group", [None, "/", "inner", "/inner/deep"])
def test_groups_of_netcdf4_are_identical(groups, engine, group):
    assert_same(*both(groups, engine, group=group))


def test_trees_are_identical(groups, weather, engine):
    for path in groups, weather:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            ours = xr.open_datatree(path, engine=engine)
            xr.testing.assert_identical(ours.load(), xr.open_datatree(path, engine=PEER).load())
    part = xr.open_datatree(groups, engine=engine, group="inner")
    xr.testing.assert_identical(part.load(), xr.open_datatree(groups, engine=PEER, group="inner").load())


def test_a_group_that_is_not_there_is_an_error(groups, engine):
    with pytest.raises(OSError, match="group not found"):
        xr.open_dataset(groups, engine=engine, group="none")


KEYS = [
    {"time": 3},
    {"time": slice(2, 15, 3), "lon": slice(None, None, 5)},
    {"time": [1, 5, 6], "lat": slice(2, 5)},
    {"time": slice(None, None, -2), "lat": -1},
    {"time": [7, 2, 2], "lat": [0, 8], "lon": 3},
    {"lon": []},
]


@pytest.mark.parametrize("key", KEYS)
def test_lazy_selections_are_identical(weather, engine, key):
    ours, theirs = both(weather, engine)
    xr.testing.assert_identical(ours.temperature.isel(key).load(), theirs.temperature.isel(key).load())
    found, expected = [each.packed.isel(key, missing_dims="ignore") for each in (ours, theirs)]
    xr.testing.assert_identical(found.load(), expected.load())
    points = {"time": xr.DataArray([3, 1], dims="p"), "lat": xr.DataArray([2, 8], dims="p")}
    xr.testing.assert_identical(ours.temperature[points].load(), theirs.temperature[points].load())


UNWRITTEN = [{"t": slice(2, 5)}, {"t": [0, 4]}, {"t": 5}, {"t": -1}, {"t": slice(None, None, 2), "x": 1}]


@pytest.mark.parametrize("key", UNWRITTEN)
def test_what_was_not_written_has_the_fill_value(groups, engine, key):
    ours = xr.open_dataset(groups, engine=engine)
    # Not h5netcdf, which in some versions cuts selections short.
    theirs = xr.open_dataset(groups, engine="netcdf4")
    xr.testing.assert_equal(ours.short.isel(key).load(), theirs.short.isel(key).load())


def test_nothing_is_read_before_it_is_used(weather, engine, monkeypatch):
    from thalweg.arrays import Array

    read = []
    values = Array._values
    monkeypatch.setattr(Array, "_values", lambda array, selection: read.append(array.name) or values(array, selection))
    # xarray itself looks at the first of strings.
    options = {"decode_times": False, "create_default_indexes": False, "drop_variables": "name"}
    ds = xr.open_dataset(weather, engine=engine, **options)
    assert read == []
    assert ds.temperature[2:4, 1].shape == (2, 12) and read == []
    ds.temperature.variable[2:4, 1].load()
    assert read == ["/temperature"]


def test_open_files_are_read(weather, engine):
    with open(weather, "rb") as file, io.BytesIO(weather.read_bytes()) as memory:
        for each in [file, memory]:
            assert_same(xr.open_dataset(each, engine=engine), xr.open_dataset(weather, engine=PEER))


def test_dask_has_the_chunks_of_the_file(weather, engine):
    dask = pytest.importorskip("dask")
    ours, theirs = both(weather, engine, chunks={})
    assert ours.temperature.chunks == theirs.temperature.chunks == ((7, 7, 6), (9,), (4, 4, 4))
    for scheduler in "threads", "synchronous":
        with dask.config.set(scheduler=scheduler):
            xr.testing.assert_identical(ours.compute(), theirs.compute())
    xr.testing.assert_identical(ours.temperature.mean("time").compute(), theirs.temperature.mean("time").compute())


def test_threads_and_processes_share_files(weather, engine):
    ours, theirs = both(weather, engine)
    expected = theirs.temperature.load()
    with ThreadPoolExecutor(8) as pool:
        for time, found in enumerate(pool.map(lambda time: ours.temperature[time].values, range(20))):
            assert np.array_equal(found, expected[time], equal_nan=True)
    again = pickle.loads(pickle.dumps(ours))
    xr.testing.assert_identical(again.load(), theirs.load())


def test_files_close(weather, engine):
    ds = xr.open_dataset(weather, engine=engine)
    ds.close()
    with pytest.raises(ValueError, match="closed"):
        ds.temperature.load()


def test_files_are_recognised(weather, engine, tmp_path):
    backend = engine()
    assert backend.guess_can_open(weather) and backend.guess_can_open(str(weather))
    assert backend.guess_can_open("s3://bucket/a.nc") and not backend.guess_can_open("s3://bucket/a.csv")
    (tmp_path / "a.nc").write_bytes(b"CDF\x01")
    for other in [tmp_path / "a.nc", tmp_path / "none.nc", 3]:
        assert not backend.guess_can_open(other)


@needs_h5netcdf
@pytest.mark.parametrize("phony", ["access", "sort"])
def test_nexus_files_are_identical(files, engine, phony):
    for group in ["/", "/entry", "/entry/bank1_events"]:
        ours, theirs = both(files / "run.nxs", engine, group=group, phony_dims=phony)
        xr.testing.assert_identical(ours.load(), theirs.load())
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        ours = xr.open_datatree(files / "run.nxs", engine=engine, phony_dims=phony)
        theirs = xr.open_datatree(files / "run.nxs", engine=PEER, phony_dims=phony)
    xr.testing.assert_identical(ours.load(), theirs.load())


@needs_h5netcdf
@pytest.mark.skipif(not SHARED.is_dir(), reason=f"there are no files of other programs at {SHARED}")
def test_files_of_other_programs_are_identical(engine):
    compared = 0
    for path in sorted(SHARED.rglob("*")):
        if path.suffix not in (".nc", ".nc4", ".nxs", ".hdf5", ".h5") or "cve" in path.parts:
            continue
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            try:
                theirs = xr.open_dataset(path, engine=PEER, phony_dims="sort")
                if theirs.nbytes > MOST_BYTES:
                    continue
                theirs.load()
            except Exception:
                # h5netcdf cannot show it.
                continue
            try:
                ours = xr.open_dataset(path, engine=engine, phony_dims="sort").load()
            except ValueError as error:
                assert "not read" in str(error), (path, error)
                continue
        xr.testing.assert_identical(ours, theirs)
        compared += 1
    assert compared > 20


def test_the_engine_has_an_entry_point():
    installed = {point.name: point.value for point in entry_points(group="xarray.backends")}
    assert installed.get("thalweg") == "thalweg.xarray:ThalwegBackend", "run `build.sh test`, which installs the wheel"


def test_a_dataset_without_a_value_is_left_out(tmp_path):
    h5py = pytest.importorskip("h5py")
    with h5py.File(tmp_path / "a.h5", "w") as file:
        file["empty"] = h5py.Empty("f4")
        file["full"] = [1, 2]
    with pytest.warns(UserWarning, match="/empty is left out: it has no value"):
        data = xr.open_dataset(tmp_path / "a.h5", engine="thalweg", phony_dims="sort")
    assert list(data.variables) == ["full"] and data["full"].values.tolist() == [1, 2]
