"""Objects on real servers of the protocol of S3: each format is read as from a file. `make servers` installs the servers; those
that are not there are left out. What stores must do is tested in crates/thalweg-object/tests/servers.rs."""

import datetime
import hashlib
import hmac
import os
import pathlib
import shutil
import socket
import subprocess
import time
import urllib.request

import pytest

from nanopore import REPOSITORY, run

KEYS = {"AWS_ACCESS_KEY_ID": "thalweg", "AWS_SECRET_ACCESS_KEY": "thalweg-secret", "AWS_REGION": "us-east-1"}
SERVERS = {
    "versitygw": lambda port, folder: ["--port", f"127.0.0.1:{port}", "posix", folder],
    "moto_server": lambda port, _: ["-H", "127.0.0.1", "-p", str(port)],
}


def put(url: str, path: str, data: bytes = b"") -> None:
    """Makes a bucket or an object: a request that is signed as S3 wants it."""
    moment = datetime.datetime.now(datetime.timezone.utc).strftime("%Y%m%dT%H%M%SZ")
    host, digest = url.removeprefix("http://"), hashlib.sha256(data).hexdigest()
    scope = f"{moment[:8]}/{KEYS['AWS_REGION']}/s3/aws4_request"
    headers = {"host": host, "x-amz-content-sha256": digest, "x-amz-date": moment}
    names = ";".join(headers)
    lines = "".join(f"{name}:{value}\n" for name, value in headers.items())
    canonical = f"PUT\n{path}\n\n{lines}\n{names}\n{digest}"
    to_sign = f"AWS4-HMAC-SHA256\n{moment}\n{scope}\n{hashlib.sha256(canonical.encode()).hexdigest()}"
    key = b"AWS4" + KEYS["AWS_SECRET_ACCESS_KEY"].encode()
    for part in [*scope.split("/"), to_sign]:
        key = hmac.digest(key, part.encode(), "sha256")
    credential = f"AWS4-HMAC-SHA256 Credential={KEYS['AWS_ACCESS_KEY_ID']}/{scope}"
    del headers["host"]
    # moto takes the body for a form otherwise.
    headers["Content-Type"] = "application/octet-stream"
    headers["Authorization"] = f"{credential}, SignedHeaders={names}, Signature={key.hex()}"
    with urllib.request.urlopen(urllib.request.Request(url + path, data, headers, method="PUT")) as answer:
        assert answer.status == 200


@pytest.fixture(scope="module", params=SERVERS)
def server(request, tmp_path_factory):
    """The URL of a server with a bucket."""
    places = [REPOSITORY / "target/servers/bin", REPOSITORY / "target/servers/venv/bin", os.environ["PATH"]]
    program = shutil.which(request.param, path=os.pathsep.join(map(str, places)))
    if program is None:
        pytest.skip(f"{request.param} is not installed (make servers)")
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port = free.getsockname()[1]
    folder = tmp_path_factory.mktemp("server")
    environment = os.environ | {"ROOT_ACCESS_KEY": KEYS["AWS_ACCESS_KEY_ID"], "ROOT_SECRET_KEY": KEYS["AWS_SECRET_ACCESS_KEY"]}
    process = subprocess.Popen(
        [program, *SERVERS[request.param](port, str(folder))], env=environment, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL
    )
    try:
        while socket.socket().connect_ex(("127.0.0.1", port)) != 0:
            assert process.poll() is None, f"{request.param} ended with {process.returncode}"
            time.sleep(0.05)
        url = f"http://127.0.0.1:{port}"
        put(url, "/bucket")
        yield url
    finally:
        process.kill()
        process.wait()


@pytest.fixture(scope="module")
def files(thalweg_binary, tmp_path_factory) -> dict[str, pathlib.Path]:
    """A file of each format."""
    folder = tmp_path_factory.mktemp("files")
    names = {name: folder / name for name in ["r.blow5", "r.pod5", "r.slow5", "n.nxs"]}
    run(thalweg_binary, "synth", names["r.blow5"], "--samples", "1M")
    run(thalweg_binary, "convert", names["r.blow5"], names["r.pod5"], "--lossy")
    run(thalweg_binary, "convert", names["r.blow5"], names["r.slow5"])
    run(thalweg_binary, "synth", names["n.nxs"], "--size", "2MB")
    return names


@pytest.mark.parametrize("name", ["r.blow5", "r.pod5", "r.slow5", "n.nxs"])
def test_an_object_is_read_as_a_file_is(thalweg_binary, server, files, name):
    put(server, f"/bucket/{name}", files[name].read_bytes())
    environment = os.environ | KEYS | {"AWS_ENDPOINT_URL": server}

    def of_object(verb, *arguments, check=True):
        return run(thalweg_binary, verb, f"s3://bucket/{name}", *arguments, env=environment, check=check)

    wanted = run(thalweg_binary, "read", files[name], "--digest").stdout
    assert of_object("read", "--digest").stdout == wanted
    assert of_object("check").returncode == 0
    assert of_object("info").stdout

    refused = run(thalweg_binary, "info", f"s3://bucket/{name}x", env=environment, check=False)
    assert refused.returncode == 1 and "there is no such object" in refused.stderr
    wrong = environment | {"AWS_SECRET_ACCESS_KEY": "wrong"}
    refused = run(thalweg_binary, "info", f"s3://bucket/{name}", env=wrong, check=False)
    # moto does not check signatures.
    assert refused.returncode == 0 or "AWS_SECRET_ACCESS_KEY" in refused.stderr
