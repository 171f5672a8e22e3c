"""HDF5 files on a server whose values lie in other files: what is read is what is read of the files."""

import email.utils
import http.server
import json
import pathlib
import threading
import urllib.parse

import h5py
import numpy as np
import pytest


class Files(http.server.BaseHTTPRequestHandler):
    """Gives ranges of the files of a folder."""

    protocol_version = "HTTP/1.1"

    def do_GET(self):
        name = urllib.parse.unquote(self.path.split("?")[0])
        self.server.asked.append(name)
        path = pathlib.Path(f"{self.server.folder}{name}")
        if not path.is_file():
            self.send_response(404)
            self.send_header("Content-Length", "0")
            return self.end_headers()
        data = path.read_bytes()
        first, last = self.headers["Range"].removeprefix("bytes=").split("-")
        part = data[int(first) : int(last) + 1]
        self.send_response(206 if part else 416)
        self.send_header("Content-Length", str(len(part)))
        self.send_header("ETag", f'"{hash(data):x}"')
        self.send_header("Last-Modified", email.utils.formatdate(path.stat().st_mtime, usegmt=True))
        self.send_header("Content-Range", f"bytes {first}-{int(first) + len(part) - 1}/{len(data)}")
        self.end_headers()
        self.wfile.write(part)

    def log_message(self, *_):
        pass


@pytest.fixture
def served(tmp_path):
    """The URL of a folder, the folder, and the names that were asked for."""
    with http.server.ThreadingHTTPServer(("127.0.0.1", 0), Files) as server:
        server.folder, server.asked = tmp_path, []
        thread = threading.Thread(target=server.serve_forever)
        thread.start()
        (tmp_path / "home/below").mkdir(parents=True)
        (tmp_path / "far").mkdir()
        yield f"http://127.0.0.1:{server.server_port}", tmp_path, server.asked
        server.shutdown()
        thread.join()


def test_values_in_other_objects(thalweg, served):
    url, folder, _ = served
    data = np.arange(50_000, dtype="<f8")
    (folder / "home/first #%?é").write_bytes(data.tobytes()[:12_345])
    (folder / "home/below/second").write_bytes(b"." * 100 + data.tobytes()[12_345:])
    with h5py.File(folder / "home/source.h5", "w") as file:
        file.create_dataset("data", data=data.reshape(500, 100), chunks=(7, 30), compression="gzip")
    with h5py.File(folder / "home/f.h5", "w", libver="latest") as file:
        pieces = [("first #%?é", 0, 12_345), ("below/second", 100, 1 << 20)]
        file.create_dataset("pieces", data.shape, "<f8", external=pieces)
        layout = h5py.VirtualLayout((2, 500, 100), "<f8")
        layout[0] = h5py.VirtualSource("source.h5", "data", (500, 100))
        layout[1] = h5py.VirtualSource("none.h5", "data", (500, 100))
        file.create_virtual_dataset("virtual", layout, fillvalue=-9)
    expected = thalweg("read", folder / "home/f.h5", "--digest").stdout
    assert len(expected.splitlines()) == 2
    assert thalweg("read", f"{url}/home/f.h5", "--digest").stdout == expected
    assert thalweg("read", f"{url}/home/f.h5?key=1", "--digest").stdout == expected


def test_values_in_other_objects_stay_on_the_server(thalweg, served, tmp_path_factory):
    url, folder, asked = served
    secret = tmp_path_factory.mktemp("secret") / "secret"
    secret.write_bytes(b"x" * 100)
    (folder / "far/there").write_bytes(b"y" * 100)
    named = {
        "absolute": str(secret),
        "up": "../far/there",
        "out": "../../../there",
        "other": "http://127.0.0.1:1/there",
        "missing": "none",
    }
    with h5py.File(folder / "home/f.h5", "w") as file:
        file["good"] = np.arange(3)
        for name, other in named.items():
            file.create_dataset(name, (100,), "u1", external=[(other, 0, 100)])
    result = thalweg("read", f"{url}/home/f.h5", "--digest", cwd=folder)
    assert [row.split("\t")[0] for row in result.stdout.splitlines()] == ["/good"]
    assert f"/absolute: not read: values in another file, {secret}, that is not there" in result.stderr
    assert "/up: not read: " in result.stderr and "outside the folder of this one" in result.stderr
    assert "/out: not read: " in result.stderr and "outside the bucket" in result.stderr
    assert f"/missing: not read: values in another file, {url}/home/none, that is not there" in result.stderr
    assert f"/other: not read: values in another file, {url}/home/" in result.stderr
    assert not any("secret" in name or "far" in name for name in asked)
    trusted = thalweg("read", f"{url}/home/f.h5", "--digest", "--trusted").stdout
    assert [row.split("\t")[0] for row in trusted.splitlines()] == ["/good", "/up"]
    # Nor does a file on this machine lead to a server.
    with h5py.File(folder / "home/local.h5", "w") as file:
        file.create_dataset("there", (100,), "u1", external=[(f"{url}/far/there", 0, 100)])
    before = len(asked)
    local = thalweg("read", folder / "home/local.h5", "--digest", "--trusted", cwd=folder)
    assert not local.stdout and "that is not there" in local.stderr and len(asked) == before


def test_references_to_an_object(thalweg, served):
    url, folder, _ = served
    with h5py.File(folder / "home/f.h5", "w") as file:
        file.create_dataset("data", data=np.arange(1000).reshape(10, 100), chunks=(5, 50), compression="gzip")
    thalweg("index", f"{url}/home/f.h5?key=secret", "--kerchunk", folder / "set.json")
    thalweg("index", folder / "home/f.h5", "--kerchunk", folder / "local.json")
    text = (folder / "set.json").read_text()
    assert "secret" not in text
    path = str((folder / "home/f.h5").resolve())
    assert json.loads(text) == json.loads((folder / "local.json").read_text().replace(path, f"{url}/home/f.h5"))


def test_the_index_beside_an_object(thalweg, served, monkeypatch, tmp_path):
    """It is used if it was made of this very object; one that was made of a file may be of an earlier state of it."""
    url, folder, asked = served
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    path, address = folder / "home/f.h5", f"{url}/home/f.h5"

    def write(offset):
        with h5py.File(path, "w") as file:
            for number in range(12):
                data = np.random.default_rng(number).integers(0, 1 << 60, (200, 300)) + offset
                file.create_dataset(f"data{number}", data=data, chunks=(10, 10))

    def read():
        """The digests of the object, without an index in the cache folder, and whether one was used."""
        for kept in (tmp_path / "cache").rglob("*.idx"):
            kept.unlink()
        rows = thalweg("read", address, "--digest").stdout
        assert rows == thalweg("read", path, "--digest", "--no-index").stdout
        return any((tmp_path / "cache").rglob("*.idx"))

    write(0)
    assert not read() and asked.count("/home/f.h5.idx") == 1
    thalweg("index", path)
    assert not read()
    thalweg("index", address, "--output", folder / "home/f.h5.idx", "--force")
    assert read()
    write(1)
    assert not read()
    # The index is newer now, and of an object of the same size.
    (folder / "home/f.h5.idx").touch()
    assert not read()
