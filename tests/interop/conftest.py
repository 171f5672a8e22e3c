"""What every interop test stands on: the built programs, the real files, and slow5lib's view of a file."""

import os
import pathlib
import zlib

import pytest

import browser
from nanopore import HERE, ONE_OF, REPOSITORY, SHARED, run


def pytest_configure(config):
    config.addinivalue_line("markers", "long: one of ONE_OF cases is tried; all of them with THOROUGH=1")


def pytest_collection_modifyitems(config, items):
    """Leaves out most cases of long tests. Which ones stay follows from their names, so that every worker agrees."""
    left_out = {item for item in items if item.get_closest_marker("long") and zlib.crc32(item.nodeid.encode()) % ONE_OF}
    config.hook.pytest_deselected(items=list(left_out))
    items[:] = [item for item in items if item not in left_out]


def required(path: pathlib.Path, what: str) -> pathlib.Path:
    """Skips where something is missing, but never in CI: there a skip would be a hole."""
    if path.exists():
        return path
    message = f"{what} is missing: {path}"
    if os.environ.get("CI"):
        pytest.fail(message)
    pytest.skip(message)


@pytest.fixture(scope="session", autouse=True)
def own_cache(tmp_path_factory):
    """What the user's cache folder holds must not matter, nor change."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("XDG_CACHE_HOME", str(tmp_path_factory.mktemp("cache")))
        yield


@pytest.fixture(scope="session")
def shared() -> pathlib.Path:
    return required(SHARED, "the folder of real nanopore files (THALWEG_SHARED overrides its place)")


@pytest.fixture(scope="session")
def peer() -> pathlib.Path:
    return required(REPOSITORY / "target/peers/slow5_peer", "slow5_peer (make peers)")


@pytest.fixture(scope="session")
def slow5_tools() -> pathlib.Path:
    return required(REPOSITORY / "target/peers/slow5_tools", "slow5_tools (make peers)")


@pytest.fixture(scope="session")
def pod5_peer() -> pathlib.Path:
    return required(REPOSITORY / "target/peers/pod5_peer", "pod5_peer (make peers)")


@pytest.fixture(scope="session")
def reference() -> pathlib.Path:
    return required(REPOSITORY / "target/peers/slow5_reference", "slow5_reference (make peers)")


@pytest.fixture(scope="session")
def chromium() -> str:
    found = browser.find()
    return str(required(pathlib.Path(found or "chromium-headless-shell"), "a headless Chromium (make system)"))


@pytest.fixture(scope="session")
def thalweg_binary() -> pathlib.Path:
    named = os.environ.get("THALWEG_BIN")
    return required(pathlib.Path(named) if named else REPOSITORY / "target/debug/thalweg", "thalweg (cargo build)")


@pytest.fixture
def thalweg(thalweg_binary):
    """Runs one verb of thalweg."""

    def call(verb, *arguments, check=True, **options):
        return run(thalweg_binary, verb, *arguments, check=check, **options)

    return call


@pytest.fixture(scope="session")
def view(reference):
    """Rewrites a file with slow5lib alone."""

    def call(source, target, record="none", signal="none"):
        run(reference, "view", source, target, "--record", record, "--signal", signal)
        return target

    return call


@pytest.fixture
def canonical(view, tmp_path):
    """All that slow5lib sees in a file, as the bytes of an uncompressed BLOW5: equal bytes, equal header attributes,
    field types and values, to the last bit of every float."""
    count = 0

    def call(path) -> bytes:
        nonlocal count
        count += 1
        return view(path, tmp_path / f"canonical{count}.blow5").read_bytes()

    return call


@pytest.fixture(scope="session")
def pyslow5_rows():
    """Every field of every read as pyslow5 gives it. In its own process: slow5lib may exit on errors."""

    def call(path) -> str:
        import sys

        return run(sys.executable, HERE / "pyslow5_rows.py", path).stdout

    return call


@pytest.fixture(scope="session")
def writable(shared, tmp_path_factory):
    """Copies of real files, in a folder of their own: index files must not land beside the originals."""
    folder = tmp_path_factory.mktemp("copies")

    def call(name: str) -> pathlib.Path:
        copy = folder / name.replace("/", "_")
        if not copy.exists():
            copy.write_bytes((shared / name).read_bytes())
        return copy

    return call


