"""A headless Chromium, driven over a pipe in its own protocol: no driver, no library, no port."""

import base64
import fcntl
import itertools
import json
import os
import pathlib
import select
import shutil
import signal
import time


def find() -> str | None:
    """The browser: Debian's headless shell, or any Chromium."""
    names = ["chromium-headless-shell", "chromium", "chromium-browser", "google-chrome"]
    return os.environ.get("CHROMIUM") or next(filter(None, map(shutil.which, names)), None)


class Browser:
    """One browser with one page. `events` holds all that happened on it."""

    def __init__(self, program: str, profile: pathlib.Path, dark: bool = False, width: int = 1280, height: int = 900):
        # above the numbers that the browser wants: 3 to read commands from, 4 to answer on
        ends = [fcntl.fcntl(end, fcntl.F_DUPFD_CLOEXEC, 10) for end in (*os.pipe(), *os.pipe())]
        command_read, self._write, self._read, answer_write = ends
        # Root may only run it without its sandbox; what it opens is our own file.
        arguments = [program, "--headless", "--no-sandbox", "--remote-debugging-pipe", f"--user-data-dir={profile}"]
        arguments += ["--disable-gpu", "--disable-dev-shm-usage", "--no-first-run", "--disable-background-networking"]
        dup = os.POSIX_SPAWN_DUP2
        null = (os.POSIX_SPAWN_OPEN, 2, os.devnull, os.O_WRONLY, 0)
        self._process = os.posix_spawn(
            program, arguments, os.environ, file_actions=[(dup, command_read, 3), (dup, answer_write, 4), null]
        )
        os.close(command_read)
        os.close(answer_write)
        self._buffer = b""
        self._ids = itertools.count(1)
        self._session = None
        self.events: list[dict] = []
        target = self.call("Target.createTarget", url="about:blank")["targetId"]
        self._session = self.call("Target.attachToTarget", targetId=target, flatten=True)["sessionId"]
        for domain in ("Page", "Runtime", "Network", "Log"):
            self.call(f"{domain}.enable")
        scheme = {"name": "prefers-color-scheme", "value": "dark" if dark else "light"}
        self.call("Emulation.setEmulatedMedia", features=[scheme])
        self.size(width, height)

    def __enter__(self):
        return self

    def __exit__(self, *_):
        os.close(self._write)
        os.close(self._read)
        os.kill(self._process, signal.SIGKILL)
        os.waitpid(self._process, 0)

    def size(self, width: int, height: int) -> None:
        self.call("Emulation.setDeviceMetricsOverride", width=width, height=height, deviceScaleFactor=1, mobile=width < 600)

    def call(self, method: str, **parameters) -> dict:
        number = next(self._ids)
        message = {"id": number, "method": method, "params": parameters}
        if self._session:
            message["sessionId"] = self._session
        data = json.dumps(message).encode() + b"\0"
        while data:
            data = data[os.write(self._write, data) :]
        answer = self._until(lambda m: m.get("id") == number, method)
        if "error" in answer:
            raise RuntimeError(f"{method}: {answer['error']}")
        return answer["result"]

    def _until(self, wanted, what: str) -> dict:
        end = time.monotonic() + 600
        while True:
            while b"\0" in self._buffer:
                raw, self._buffer = self._buffer.split(b"\0", 1)
                message = json.loads(raw)
                if "method" in message:
                    self.events.append(message)
                if wanted(message):
                    return message
            if not select.select([self._read], [], [], max(0.0, end - time.monotonic()))[0]:
                raise TimeoutError(f"the browser did not answer: {what}")
            part = os.read(self._read, 1 << 20)
            if not part:
                raise RuntimeError(f"the browser ended: {what}")
            self._buffer += part

    def open(self, path: pathlib.Path) -> None:
        self.call("Page.navigate", url=path.resolve().as_uri())
        if not any(e["method"] == "Page.loadEventFired" for e in self.events):
            self._until(lambda m: m.get("method") == "Page.loadEventFired", f"opening {path}")

    def evaluate(self, expression: str):
        """The value of an expression; a promise is waited for."""
        answer = self.call("Runtime.evaluate", expression=expression, awaitPromise=True, returnByValue=True)
        if "exceptionDetails" in answer:
            raise RuntimeError(f"{expression}: {answer['exceptionDetails']}")
        return answer["result"].get("value")

    def screenshot(self, path: pathlib.Path, whole: bool = True) -> None:
        picture = self.call("Page.captureScreenshot", captureBeyondViewport=whole)
        path.write_bytes(base64.b64decode(picture["data"]))

    def pixels(self, picture: pathlib.Path, colours: list[str]) -> list[int]:
        """The numbers of pixels of a PNG that have these colours, as in "#d55e00"."""
        data = base64.b64encode(picture.read_bytes()).decode()
        return self.evaluate(
            f"""(async () => {{
              const picture = new Image();
              picture.src = "data:image/png;base64,{data}";
              await picture.decode();
              const canvas = new OffscreenCanvas(picture.width, picture.height).getContext("2d");
              canvas.drawImage(picture, 0, 0);
              const rgba = canvas.getImageData(0, 0, picture.width, picture.height).data;
              return {json.dumps(colours)}.map((colour) => {{
                const [r, g, b] = [1, 3, 5].map((at) => parseInt(colour.slice(at, at + 2), 16));
                let count = 0;
                for (let i = 0; i < rgba.length; i += 4) count += rgba[i] === r && rgba[i + 1] === g && rgba[i + 2] === b;
                return count;
              }});
            }})()"""
        )

    def pdf(self, path: pathlib.Path) -> None:
        answer = self.call("Page.printToPDF", printBackground=True, preferCSSPageSize=True)
        path.write_bytes(base64.b64decode(answer["data"]))

    def complaints(self) -> list[str]:
        """What a console shows in red or yellow, and every exception."""
        found = []
        for event in self.events:
            about = event["params"]
            if event["method"] == "Runtime.exceptionThrown":
                found.append(str(about["exceptionDetails"].get("exception", about)))
            elif event["method"] == "Runtime.consoleAPICalled" and about["type"] in ("error", "warning", "assert"):
                found.append(str([a.get("value", a.get("description")) for a in about["args"]]))
            elif event["method"] == "Log.entryAdded" and about["entry"]["level"] in ("error", "warning"):
                found.append(about["entry"]["text"])
        return found

    def requests(self) -> list[str]:
        """Addresses that the page asked for."""
        return [e["params"]["request"]["url"] for e in self.events if e["method"] == "Network.requestWillBeSent"]
