"""thalweg.pod5 gives what the library pod5 gives."""

import dataclasses
import datetime
import enum
import math
import uuid
import warnings

import numpy as np
import pytest
import thalweg
from conftest import real
from thalweg import pod5 as ours

pod5 = pytest.importorskip("pod5")
repack = pytest.importorskip("pod5.repack")
pytestmark = pytest.mark.filterwarnings("ignore:.*Scaling fields:DeprecationWarning")

# What a record has in pod5, besides its places in tables. Its values are compared with equal types.
PROPERTIES = [name for name, value in vars(pod5.ReadRecord).items() if isinstance(value, property)]
PROPERTIES.remove("signal_rows")
# What depends on how the tables were written: see the module.
OF_TABLES = {"end_reason_index", "byte_count"}
OF_READERS = """path file_identifier file_version file_version_pre_migration logical_file_version original_file_version
 reads_table_version logical_read_table_version
 writing_software is_vbz_compressed signal_batch_row_count batch_count num_reads read_ids read_ids_raw""".split()


def plain(value):
    """A value that can be compared, with its type, whichever library it is from."""
    if isinstance(value, np.ndarray):
        return value.dtype, value.tobytes(), value.flags.writeable
    if isinstance(value, enum.Enum):
        return type(value).__name__, value.name, value.value
    if dataclasses.is_dataclass(value):
        return type(value).__name__, {one.name: plain(getattr(value, one.name)) for one in dataclasses.fields(value)}
    if isinstance(value, float) and math.isnan(value):
        return float, "nan"
    return type(value), value


def rows(records, names=PROPERTIES):
    return [{name: plain(getattr(record, name)) for name in names} for record in records]


def check(path, skipped=frozenset()):
    names = [name for name in PROPERTIES if name not in skipped]
    with ours.Reader(path) as reader, pod5.Reader(path) as other:
        for name in OF_READERS:
            assert getattr(reader, name) == getattr(other, name), name
        assert rows(reader.reads(), names) == rows(other.reads(), names)
        assert [plain(read.to_read()) for read in reader] == [plain(read.to_read()) for read in other]


def run_info(**changes):
    values = dict.fromkeys([one.name for one in dataclasses.fields(pod5.RunInfo)], "")
    start = datetime.datetime(2024, 2, 29, 23, 59, 59, 678000, datetime.timezone.utc)
    values |= {"acquisition_id": "run", "acquisition_start_time": start, "protocol_start_time": start}
    values |= {"sample_rate": 5000, "adc_min": -4096, "adc_max": 4095}
    values |= {"context_tags": {"b": "2", "a": ""}, "tracking_id": {}}
    return pod5.RunInfo(**values | changes)


@pytest.fixture(scope="module")
def extremes(tmp_path_factory):
    """A POD5 file with the least and largest values, two runs, and signals of none, some and many samples."""
    path = tmp_path_factory.mktemp("extremes") / "extremes.pod5"
    random = np.random.default_rng(1)
    runs = [run_info(), run_info(acquisition_id="other", adc_min=0, adc_max=2047, system_name="a\tb")]
    with pod5.Writer(path) as writer:
        for number, samples in enumerate([1000, 0, 1, 250_000, 77] * 3):
            most = number % 2
            writer.add_read(
                pod5.Read(
                    read_id=uuid.UUID(int=number + 1),
                    pore=pod5.Pore(65_535 if most else 1, 255 if most else 1, ["not_set", "R10.4.1"][most]),
                    calibration=pod5.Calibration(float(random.normal(0, 100)), float(random.uniform(0.1, 1))),
                    read_number=2**32 - 1 if most else 0,
                    start_sample=2**64 - 1 if most else 0,
                    median_before=math.nan if most else 201.7,
                    end_reason=pod5.EndReason(list(pod5.EndReasonEnum)[number % 10], bool(most)),
                    run_info=runs[number % 3 == 0],
                    num_minknow_events=2**64 - 1 if most else 7,
                    tracked_scaling=pod5.pod5_types.ShiftScalePair(*[math.nan, 0.1] if most else [1.5, 2.5]),
                    predicted_scaling=pod5.pod5_types.ShiftScalePair(-1.25, 2.5),
                    num_reads_since_mux_change=2**32 - 1 if most else 3,
                    time_since_mux_change=0.25,
                    open_pore_level=math.nan if most else 190.1,
                    signal=random.integers(-(2**15), 2**15, samples).astype(np.int16),
                )
            )
    return path


def test_all_values_are_pod5s(files, extremes):
    check(files / "reads.pod5", skipped={"end_reason_index"})
    check(extremes, skipped={"end_reason_index"})


@pytest.mark.parametrize("name", real("pod5/*.pod5"))
def test_all_values_of_real_files_are_pod5s(copy, name):
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        check(copy(name), OF_TABLES if "v0" in name or "uncompressed" in name else set())


def test_selections_are_pod5s(extremes):
    ids = ours.Reader(extremes).read_ids
    unknown, invalid = str(uuid.UUID(int=2**80)), "r1"
    selections = [[], ids[5:6], [ids[9], ids[2], ids[9]], [ids[3].upper(), uuid.UUID(ids[1]).hex], [uuid.UUID(ids[4])]]
    selections += [[unknown], [ids[7], unknown, ids[0]], [invalid]]
    with ours.Reader(extremes) as reader, pod5.Reader(extremes) as other:
        for selection in selections:
            found = rows(other.reads(selection, missing_ok=True), ["read_id", "signal"])
            assert rows(reader.reads(selection, missing_ok=True), ["read_id", "signal"]) == found
            if len(found) == len(selection):
                assert rows(reader.reads(iter(selection)), ["read_id", "signal"]) == found
                continue
            for either in (reader, other):
                with pytest.raises(RuntimeError):
                    list(either.reads(selection))
        with pytest.raises(thalweg.NotFoundError, match=f"extremes.pod5.* 1 of 3 .*{unknown}.*missing_ok"):
            list(reader.reads([ids[7], unknown, ids[0]]))


@pytest.fixture(scope="module")
def many(tmp_path_factory, command):
    """A POD5 file of many small reads in three batches, and the same reads in BLOW5."""
    path = tmp_path_factory.mktemp("many") / "many.pod5"
    calibration, reason = pod5.Calibration(0.0, 1.0), pod5.EndReason(pod5.EndReasonEnum.UNKNOWN, False)
    with pod5.Writer(path) as writer:
        for number in range(2345):
            signal = np.full(number % 500, number, np.int16)
            read_id = uuid.UUID(int=number * 2**64 + 1)
            pore = pod5.Pore(1, 1, "p")
            writer.add_read(pod5.Read(read_id, pore, calibration, number, 0, 0.0, reason, run_info(), signal=signal))
    command("convert", path, path.with_suffix(".blow5"))
    return path


@pytest.mark.parametrize("suffix", [".pod5", ".blow5"])
@pytest.mark.parametrize("take", [lambda place: place == 2000, lambda place: place % 7 == 0, lambda place: place > 500])
def test_signals_may_be_taken_in_any_order(many, suffix, take):
    # While the program goes on, then later, and backwards.
    kept = []
    for place, read in enumerate(ours.Reader(many.with_suffix(suffix))):
        kept.append(read)
        if take(place):
            assert np.array_equal(read.signal, np.full(place % 500, place))
    for place in [*range(0, len(kept), 5), *range(len(kept) - 1, 0, -90)]:
        assert np.array_equal(kept[place].signal, np.full(place % 500, place))
        assert kept[place].num_samples == place % 500


def test_fields_and_signals_may_lie_in_different_orders(files, tmp_path):
    path = tmp_path / "repacked.pod5"
    with pod5.Reader(files / "reads.pod5") as reader, pod5.Writer(path) as writer:
        ids = reader.read_ids
        repacker = repack.Repacker()
        output = repacker.add_output(writer, False)
        repacker.add_selected_reads_to_output(output, reader, ids)
        repacker.set_output_finished(output)
        repacker.finish()
    check(path, skipped={"end_reason_index"})
    with ours.Reader(path) as reader, pod5.Reader(path) as other:
        names = ["read_id", "signal"]
        assert rows(reader.reads(ids[::3]), names) == rows(other.reads(ids[::3]), names)


def test_preloaded_reads_say_so(files):
    with ours.Reader(files / "reads.pod5") as reader, pod5.Reader(files / "reads.pod5") as other:
        for preload in [{"samples"}, {"sample_count"}, {"samples", "sample_count"}, set(), None]:
            names = ["read_id", "has_cached_signal", "signal"]
            assert rows(reader.reads(preload=preload), names) == rows(other.reads(preload=preload), names)


def test_batches_are_pod5s(many):
    def batch(one):
        columns = one.read_id_column.to_pylist(), one.read_number_column.to_pylist(), one.read_number_column.type
        return one.num_reads, columns, rows([one.get_read(1)], ["read_id", "signal"]), len(list(one.reads()))

    with ours.Reader(many) as reader, pod5.Reader(many) as other:
        assert reader.batch_count == other.batch_count == 3
        assert list(map(batch, reader.read_batches())) == list(map(batch, other.read_batches()))
        assert batch(reader.get_batch(1)) == batch(other.get_batch(1))
        some = {"batch_selection": [2, 0]}
        assert list(map(batch, reader.read_batches(**some))) == list(map(batch, other.read_batches(**some)))
        cached = [one for each in other.read_batches(preload={"samples"}) for one in each.cached_samples_column]
        found = [one for each in reader.read_batches() for one in each.cached_samples_column]
        assert len(found) == 2345 and all(map(np.array_equal, found, cached))
        ids = reader.read_ids[2100:900:-1]
        found = [[read.read_number for read in one.reads()] for one in reader.read_batches(ids)]
        assert found == [list(range(901, 1000)), list(range(1000, 2000)), list(range(2000, 2101))]
        with pytest.raises(ValueError):
            reader.get_batch(3)


def test_calibration_is_pod5s(extremes):
    with ours.Reader(extremes) as reader, pod5.Reader(extremes) as other:
        one, its = next(reader.reads()), next(other.reads())
        for array in [np.arange(-5, 5, dtype=np.int16), [1, 2], np.array([], np.int16)]:
            assert plain(one.calibrate_signal_array(array)) == plain(its.calibrate_signal_array(array))


def test_names_are_pod5s(many):
    for name in pod5.__all__:
        assert (name in ours.__all__) != (name in ours._NOT_HERE), name
    for name in ours._NOT_HERE:
        assert hasattr(pod5, name), name
        with pytest.raises(AttributeError, match=f"no {name}, which pod5 has; help"):
            getattr(ours, name)
    assert not hasattr(ours, "nothing")
    for kind, its in [(ours.Reader, pod5.Reader), (ours.ReadRecord, pod5.ReadRecord)]:
        lacking = {name for name in dir(its) if not name.startswith("_")} - set(dir(kind))
        assert all(f"`{name}`" in ours.__doc__ for name in lacking), lacking
    lacking = {name for name in dir(pod5.ReadRecordBatch) if name[0] != "_"} - set(dir(ours.ReadRecordBatch))
    assert lacking == {"columns", "set_cached_signal"}


def test_functions_are_pod5s(many):
    ids = ours.Reader(many).read_ids[:5]
    packed = ours.pack_read_ids(ids)
    assert plain(packed) == plain(pod5.pack_read_ids(ids)) and packed.shape == (5, 16)
    assert plain(ours.pack_read_ids(["x", ids[0]], invalid_ok=True)) == plain(pod5.pack_read_ids(["x", ids[0]], True))
    raw = ours.Reader(many).read_ids_raw.chunk(0)[:5]
    for form in [packed, packed.ravel(), raw]:
        assert ours.format_read_ids(form) == pod5.format_read_ids(form)[:5] == ids
    assert ours.format_read_id_to_str(packed) == pod5.format_read_id_to_str(packed)
    arrays = np.zeros((4, 16), np.uint8), np.zeros((4, 16), np.uint8)
    for either, array in zip((ours, pod5), arrays):
        assert either.load_read_id_iterable(iter([ids[0], "x", ids[1]]), array) == 2
    assert np.array_equal(*arrays)
    for either in (ours, pod5):
        for wrong in [lambda: either.load_read_id_iterable(ids, arrays[0]), lambda: either.pack_read_ids(["x"])]:
            with pytest.raises(RuntimeError):
                wrong()
    for one, its in zip(ours.EndReasonEnum, pod5.EndReasonEnum):
        reason = ours.EndReason.from_reason_with_default_forced(one)
        assert plain(reason) == plain(pod5.EndReason.from_reason_with_default_forced(its))
    with ours.Reader(many) as reader, pod5.Reader(many) as other:
        found = []
        for batch in (reader.get_batch(1), other.get_batch(1)):
            batch.set_selected_batch_rows([7, 3])
            numbers = batch.read_number_column.to_pylist()
            found.append((batch.num_reads, numbers, [str(read.read_id) for read in batch.reads()]))
        assert found[0] == found[1] and len(found[0][2]) == 2


def test_datasets_are_pod5s(files, command, tmp_path):
    command("split", files / "reads.pod5", "--out", tmp_path / "parts", "--reads", "20", "--to", "pod5")
    (tmp_path / "parts" / "deep").mkdir()
    command("convert", files / "reads.blow5", tmp_path / "parts" / "deep" / "more.pod5")
    (tmp_path / "parts" / "notes.txt").write_text("no reads")
    (tmp_path / "elsewhere").mkdir()
    (tmp_path / "parts" / "part-00001.pod5").rename(tmp_path / "elsewhere" / "last.pod5")
    (tmp_path / "parts" / "deep" / "link").symlink_to(tmp_path / "elsewhere")
    for arguments in [{}, {"recursive": True}, {"pattern": "m*.p*5", "recursive": True}]:
        with ours.DatasetReader(tmp_path / "parts", **arguments) as reader:
            other = pod5.DatasetReader(tmp_path / "parts", warn_duplicate_indexing=False, **arguments)
            assert reader.paths == other.paths
            assert len(reader) == reader.num_reads == len(other)
            ids = sorted(other.read_ids)
            assert sorted(reader.read_ids) == ids == sorted(str(read.read_id) for read in reader)
            reader.warn_duplicate_indexing = False
            assert reader.has_duplicate() == other.has_duplicate() == ("recursive" in arguments and len(arguments) == 1)
            wanted = [*ids[:7:3], "unknown"]
            key = ["read_id", "signal"]
            assert sorted(map(str, rows(reader.reads(wanted), key))) == sorted(map(str, rows(other.reads(wanted), key)))
            assert reader.get_read("unknown") is reader.get_path("unknown") is None
            if not reader.has_duplicate():
                assert reader.get_path(ids[4]) == other.get_path(ids[4])
            assert rows([reader.get_read(ids[4])], key) == rows([other.get_read(ids[4])], key)


def test_ids_in_two_files_make_a_warning(files, tmp_path):
    for name in ["a.pod5", "b.pod5"]:
        (tmp_path / name).write_bytes((files / "reads.pod5").read_bytes())
    reader = ours.DatasetReader([tmp_path])
    one = next(reader.read_ids)
    with pytest.warns(UserWarning, match="several files"):
        assert reader.get_path(one) == tmp_path / "b.pod5"
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        assert ours.DatasetReader(tmp_path, warn_duplicate_indexing=False).get_read(one) is not None
    assert len(list(reader.reads([one]))) == 2


def test_other_formats_have_the_same_reads(files):
    names = """read_id read_number start_sample num_samples median_before calibration calibration_digitisation
     end_reason run_info signal signal_pa""".split()
    with ours.Reader(files / "reads.pod5") as reader:
        expected = rows(reader, names)
        pores = [(read.pore.channel, read.pore.well) for read in reader]
    for suffix in ["blow5", "slow5"]:
        with ours.Reader(files / f"reads.{suffix}") as reader:
            for read, one, pore in zip(reader, expected, pores, strict=True):
                found = rows([read], names)[0]
                # SLOW5 has neither of these.
                reason, run = found.pop("end_reason"), found.pop("run_info")
                assert reason[1]["reason"] == one["end_reason"][1]["reason"]
                assert run[1]["acquisition_id"] == one["run_info"][1]["acquisition_id"]
                assert found == {name: one[name] for name in found}
                assert (read.pore.channel, read.pore.well) == pore
                assert read.byte_count > 0
            assert read.open_pore_level is None and read.to_read().read_id == read.read_id
            assert reader.file_identifier is reader.file_version is reader.is_vbz_compressed is None
    assert [path.name for path in ours.DatasetReader(files, pattern="reads.*5").paths] == [
        "reads.blow5",
        "reads.pod5",
        "reads.slow5",
    ]
    assert ours.DatasetReader(files / "reads.blow5").num_reads == len(expected)


def test_a_closed_reader_says_so(files):
    reader = ours.Reader(files / "reads.pod5")
    read = next(reader.reads())
    reader.close()
    for late in [lambda: reader.num_reads, lambda: list(reader.reads()), lambda: read.signal]:
        with pytest.raises(RuntimeError, match="closed"):
            late()


def test_what_is_not_there_says_so(files, tmp_path):
    with pytest.raises(FileNotFoundError, match="none.pod5"):
        ours.Reader(tmp_path / "none.pod5")
    with pytest.raises(thalweg.UnsupportedError, match="run.nxs.*file of reads"):
        ours.Reader(files / "run.nxs")
    for either in (ours, pod5):
        with pytest.raises(FileNotFoundError):
            either.Reader(tmp_path)
    with pytest.raises(thalweg.NoFileError, match="found a folder, expected a file; a DatasetReader"):
        ours.Reader(tmp_path)
    with pytest.raises(thalweg.UnsupportedError, match="thalweg.convert"):
        ours.Writer(tmp_path / "new.pod5")
    with pytest.raises(TypeError):
        ours.DatasetReader(3)
