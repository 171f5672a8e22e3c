"""Writes a file with each library that keeps its own conventions in HDF5: `python foreign_writers.py FOLDER`. It runs with a Python
of its own (`.venv/writers`), as these libraries do not agree with the peers on the versions of others."""

import datetime
import pathlib
import sys

import numpy as np


def netcdf4(path):
    import netCDF4

    with netCDF4.Dataset(path, "w") as file:
        file.title = "a title"
        file.createDimension("time", None)
        file.createDimension("x", 30)
        file.createDimension("name_len", 5)
        for name, kind in {"t": "f8", "packed": "i2", "count": "u8"}.items():
            made = file.createVariable(name, kind, ("time", "x"), zlib=True, shuffle=True, fletcher32=name == "t", chunksizes=(7, 16), fill_value=9)
            made.units = "K"
            made.valid_range = np.array([0, 5], kind)
            made[:50] = np.arange(1500).reshape(50, 30) % 251
        words = file.createVariable("words", str, ("x",))
        words[:] = np.array([f"wörd {n}" * (n % 4) for n in range(30)], object)
        letters = file.createVariable("letters", "S1", ("x", "name_len"))
        letters[:] = netCDF4.stringtochar(np.array([f"n{n}" for n in range(30)], "S5"))
        file.createVLType(np.int32, "list_t")
        lists = file.createVariable("lists", file.vltypes["list_t"], ("x",))
        for n in range(30):
            lists[n] = np.arange(n % 6, dtype="i4")
        record = np.dtype([("a", "i4"), ("b", "f8", (2, 3))])
        records = file.createVariable("records", file.createCompoundType(record, "record_t"), ("x",))
        values = np.zeros(30, record)
        values["a"], values["b"] = np.arange(30), 1.5
        records[:] = values
        weather = file.createEnumType(np.int8, "weather_t", {"sun": 0, "rain": 1})
        file.createVariable("weather", weather, ("x",), fill_value=1)[:] = np.arange(30) % 2
        group = file.createGroup("deep/below")
        group.createVariable("scalar", "f4")[...] = 2.5


def pytables(path):
    import tables

    class Row(tables.IsDescription):
        name = tables.StringCol(16)
        number = tables.Int64Col()
        grid = tables.Float32Col(shape=(2, 3))

        class nested(tables.IsDescription):
            flag = tables.BoolCol()
            level = tables.EnumCol(tables.Enum({"low": 0, "high": 1}), "low", base="uint8")

    with tables.open_file(path, "w", title="a title") as file:
        for name, filters in {"zlib": ("zlib", True), "blosc": ("blosc", True), "lzo": ("zlib", False), "bitshuffle": ("blosc:lz4", None)}.items():
            library, shuffle = filters
            coded = tables.Filters(complevel=5, complib=library, shuffle=bool(shuffle), bitshuffle=shuffle is None, fletcher32=name == "zlib")
            array = file.create_earray(f"/arrays/{name}", "data", tables.Int32Atom(), (0, 40), filters=coded, createparents=True)
            array.append(np.arange(8000, dtype="i4").reshape(200, 40))
            file.create_carray(f"/arrays/{name}", "fixed", tables.Float64Atom(), (60, 50), filters=coded)[:] = np.linspace(0, 1, 3000).reshape(60, 50)
        table = file.create_table("/", "table", Row, "records", tables.Filters(5, "zlib"), expectedrows=1000)
        for number in range(300):
            table.row["name"], table.row["number"], table.row["grid"] = f"row {number}", number**3, np.full((2, 3), number)
            table.row["nested/flag"] = number % 2
            table.row.append()
        table.cols.number.create_csindex()
        lists = file.create_vlarray("/", "lists", tables.Int16Atom())
        for n in range(9):
            lists.append(np.arange(n))
        texts = file.create_vlarray("/", "texts", tables.VLUnicodeAtom())
        texts.append("über")
        file.create_vlarray("/", "objects", tables.ObjectAtom()).append({"a": (1, 2)})
        file.create_array("/", "plain", np.arange(20.0).reshape(4, 5), "plain")
        file.create_array("/", "string", b"a string")
        file.root._v_attrs.pickled = {"any": ["object", 1]}
        file.create_soft_link("/", "soft", "/plain")
        file.create_external_link("/", "outside", "other.h5:/x")


def anndata(path):
    import anndata
    import pandas
    import scipy.sparse

    count = 60
    obs = pandas.DataFrame({"kind": pandas.Categorical(["a", "b", "c"] * 20), "score": np.linspace(0, 1, count), "seen": [True, False] * 30}, index=[f"cell {n}" for n in range(count)])
    obs["maybe"] = pandas.array([1, None, 3] * 20, "Int64")
    obs["text"] = [f"note {n}" for n in range(count)]
    var = pandas.DataFrame(index=[f"gene {n}" for n in range(25)])
    sparse = scipy.sparse.random(count, 25, 0.2, "csr", np.float32, rng=np.random.default_rng(1))
    made = anndata.AnnData(sparse, obs, var, layers={"dense": np.arange(count * 25.0).reshape(count, 25)}, obsm={"pca": np.ones((count, 4), "f4")}, obsp={"near": scipy.sparse.eye(count, format="csc")})
    made.uns["settings"] = {"method": "leiden", "resolution": 1.5, "names": np.array(["x", "yy"]), "nothing": {}}
    made.uns["table"] = np.array([(1, "one"), (2, "two")], [("n", "i4"), ("word", "O")])
    made.raw = made
    made.write_h5ad(path, compression="gzip")


def nwb(path):
    import pynwb
    from pynwb import H5DataIO

    start = datetime.datetime(2026, 1, 2, tzinfo=datetime.timezone.utc)
    file = pynwb.NWBFile("a session", "identifier", start, experimenter=["A", "B"], keywords=["k1", "k2"])
    device = file.create_device("probe")
    group = file.create_electrode_group("shank", "a shank", "CA1", device)
    for n in range(6):
        file.add_electrode(x=1.0 * n, y=0.0, z=0.0, location="CA1", group=group)
    region = file.create_electrode_table_region([0, 2, 4], "some electrodes")
    signal = np.arange(3000, dtype="i2").reshape(1000, 3)
    file.add_acquisition(pynwb.ecephys.ElectricalSeries("raw", H5DataIO(signal, compression="gzip", shuffle=True, chunks=(100, 3)), region, rate=30000.0))
    file.add_acquisition(pynwb.TimeSeries("pulses", np.arange(50.0), unit="V", timestamps=np.arange(50) / 10))
    file.add_unit_column("quality", "a word")
    for n in range(5):
        file.add_unit(spike_times=np.sort(np.random.default_rng(n).random(20 + n)), quality="good" if n % 2 else "bad", electrodes=[n % 6])
    file.add_trial_column("choice", "left or right")
    for n in range(8):
        file.add_trial(start_time=1.0 * n, stop_time=n + 0.5, choice="left")
    behavior = file.create_processing_module("behavior", "a module")
    behavior.add(pynwb.behavior.Position(name="position", spatial_series=pynwb.behavior.SpatialSeries("track", np.ones((40, 2)), "the origin", rate=30.0)))
    file.add_scratch(np.arange(5), name="notes", description="scratch")
    with pynwb.NWBHDF5IO(path, "w") as out:
        out.write(file)


def matlab(path):
    import hdf5storage

    cell = np.empty((1, 3), object)
    cell[0] = [np.arange(4.0), np.str_("text"), np.array([[True, False]])]
    everything = {"matrix": np.arange(12.0).reshape(3, 4), "single": np.float32(1.5), "cell": cell, "words": np.str_("grün"), "complex": np.array([1 + 2j, 3j]), "empty": np.zeros((0, 3)), "structure": {"field": np.int8([1, 2]), "deeper": {"name": np.str_("x")}}, "big": np.arange(20000, dtype="u2").reshape(100, 200)}
    hdf5storage.savemat(str(path), everything, format="7.3", oned_as="column", store_python_metadata=False, matlab_compatible=True)


WRITERS = {"netcdf4.nc": netcdf4, "pytables.h5": pytables, "anndata.h5ad": anndata, "session.nwb": nwb, "matlab.mat": matlab}

if __name__ == "__main__":
    for name, write in WRITERS.items():
        write(pathlib.Path(sys.argv[1]) / name)
