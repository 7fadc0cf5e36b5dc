"""A page in a headless Chromium, driven by its own protocol through a pipe: what it shows, what is clicked and typed, what it complains of."""

from __future__ import annotations

import json
import os
import select
import subprocess
import sys
import tempfile
import time
from base64 import b64decode
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any

from browser.chromium_files import browser_command, browser_environment, prepare

__all__ = ["Tab", "browsed"]

_LIMIT_S = 60
_KEYS = {"Enter": 13, "Escape": 27, "ArrowDown": 40, "ArrowUp": 38, "Home": 36, "End": 35, "Tab": 9}
_STARTS = """
import fcntl, os, sys
# It takes its descriptors by number; either may have the other's already.
reads, writes = (fcntl.fcntl(int(each), fcntl.F_DUPFD, 10) for each in sys.argv[1:3])
os.dup2(reads, 3)
os.dup2(writes, 4)
os.execv(sys.argv[3], sys.argv[3:])
"""


class BrowserFailed(AssertionError):
    """Chromium said no, or nothing."""


class _Pipe:
    """Messages that end with a zero byte."""

    def __init__(self, process: subprocess.Popen[bytes], reads: int, writes: int) -> None:
        self._process, self._reads, self._writes = process, reads, writes
        self._rest = b""
        self._number = 0
        self.events: list[dict[str, Any]] = []

    def ask(self, method: str, session: str | None = None, **parameters: Any) -> dict[str, Any]:
        self._number += 1
        asked = {"id": self._number, "method": method, "params": parameters}
        os.write(
            self._writes, json.dumps(asked if session is None else {**asked, "sessionId": session}).encode() + b"\0"
        )
        until_s = time.monotonic() + _LIMIT_S
        while True:
            message = self._next(until_s)
            if message.get("id") == self._number:
                if "error" in message:
                    raise BrowserFailed(f"{method}: {message['error']}")
                return message["result"]
            self.events.append(message)

    def _next(self, until_s: float) -> dict[str, Any]:
        while b"\0" not in self._rest:
            if not select.select([self._reads], [], [], max(0.0, until_s - time.monotonic()))[0]:
                raise BrowserFailed(f"Chromium did not answer in {_LIMIT_S} s")
            piece = os.read(self._reads, 1 << 20)
            if not piece:
                raise BrowserFailed(f"Chromium has ended with {self._process.wait()}")
            self._rest += piece
        message, _, self._rest = self._rest.partition(b"\0")
        found: dict[str, Any] = json.loads(message)
        return found


class Tab:
    """One page."""

    def __init__(self, pipe: _Pipe) -> None:
        self._pipe = pipe
        target = pipe.ask("Target.createTarget", url="about:blank")["targetId"]
        self._session = pipe.ask("Target.attachToTarget", targetId=target, flatten=True)["sessionId"]
        for domain in ("Page", "Runtime", "Log", "Network"):
            self._ask(f"{domain}.enable")

    def _ask(self, method: str, **parameters: Any) -> dict[str, Any]:
        return self._pipe.ask(method, self._session, **parameters)

    def open(self, url: str, **headers: str) -> None:
        """Loads *url* and waits until it has."""
        self._ask("Network.setExtraHTTPHeaders", headers=headers)
        failed = self._ask("Page.navigate", url=url).get("errorText")
        if failed:
            raise BrowserFailed(f"{url}: {failed}")
        self.until("document.readyState === 'complete'")

    def value(self, expression: str) -> Any:
        """What a JavaScript expression gives, as JSON's types; a promise is waited for."""
        found = self._ask("Runtime.evaluate", expression=expression, returnByValue=True, awaitPromise=True)
        if "exceptionDetails" in found:
            raise BrowserFailed(f"{expression}: {found['exceptionDetails']}")
        return found["result"].get("value")

    def until(self, condition: str) -> None:
        """Waits until *condition* is true."""
        until_s = time.monotonic() + _LIMIT_S
        while not self.value(f"Boolean({condition})"):
            if time.monotonic() > until_s:
                raise BrowserFailed(f"not in {_LIMIT_S} s: {condition}; the page has: {self.text('body')[:2000]}")
            time.sleep(0.02)

    def text(self, selector: str) -> str:
        """The text that an element shows; "" where there is none."""
        found: str = self.value(f"document.querySelector({json.dumps(selector)})?.innerText ?? ''")
        return found

    def click(self, selector: str, number: int = 0) -> None:
        """Presses the mouse in the middle of the element of that *number* which *selector* gives."""
        js = f"""(() => {{ const e = document.querySelectorAll({json.dumps(selector)})[{number}]; e.scrollIntoView({{block: 'nearest'}});
            const r = e.getBoundingClientRect(); return [r.x + r.width / 2, r.y + r.height / 2]; }})()"""
        x, y = self.value(js)
        for kind in ("mousePressed", "mouseReleased"):
            self._ask("Input.dispatchMouseEvent", type=kind, x=x, y=y, button="left", clickCount=1)

    def press(self, *keys: str) -> None:
        """Presses keys, by their names or characters."""
        for key in keys:
            code = {"key": key, "windowsVirtualKeyCode": _KEYS.get(key, 0)}
            text = "\r" if key == "Enter" else key if len(key) == 1 else ""
            self._ask("Input.dispatchKeyEvent", type="keyDown", **code, **({"text": text} if text else {}))
            self._ask("Input.dispatchKeyEvent", type="keyUp", **code)

    def write(self, text: str) -> None:
        """Types *text* where the focus is."""
        self._ask("Input.insertText", text=text)

    def show(self, width: int, height: int = 900, *, dark: bool = False) -> None:
        """Sets how large the page is seen, and in which colours."""
        self._ask("Emulation.setDeviceMetricsOverride", width=width, height=height, deviceScaleFactor=1, mobile=False)
        scheme = {"name": "prefers-color-scheme", "value": "dark" if dark else "light"}
        self._ask("Emulation.setEmulatedMedia", features=[scheme])

    def screenshot(self, file: Path) -> None:
        """Writes what is seen as PNG."""
        file.write_bytes(b64decode(self._ask("Page.captureScreenshot", format="png")["data"]))

    def complaints(self) -> list[str]:
        """Errors and warnings of the console so far, breaches of the policy and exceptions among them; and requests but for documents."""
        self.value("1")
        found = []
        for event in self._pipe.events:
            parameters = event.get("params", {})
            match event.get("method"):
                case "Log.entryAdded" if parameters["entry"]["level"] in ("error", "warning"):
                    found.append(parameters["entry"]["text"])
                case "Runtime.exceptionThrown":
                    found.append(str(parameters["exceptionDetails"]))
                case "Runtime.consoleAPICalled" if parameters["type"] in ("error", "warning", "assert"):
                    found.append(str(parameters["args"]))
                case "Network.requestWillBeSent" if parameters.get("type") != "Document" and not parameters["request"][
                    "url"
                ].startswith(("data:", "blob:")):
                    found.append(f"a request of {parameters['request']['url']}")
        return found


@contextmanager
def browsed() -> Iterator[Tab]:
    """A browser with one empty page; it is ended behind the ``with``."""
    root = prepare() / "root"
    with tempfile.TemporaryDirectory(prefix="historian-browser-", ignore_cleanup_errors=True) as profile:
        theirs_reads, writes = os.pipe()
        reads, theirs_writes = os.pipe()
        command = browser_command(Path(profile))
        process = subprocess.Popen(
            [sys.executable, "-c", _STARTS, str(theirs_reads), str(theirs_writes), *command],
            env=browser_environment(root, Path(profile)),
            pass_fds=(theirs_reads, theirs_writes),
            stdin=subprocess.DEVNULL,
            stdout=subprocess.DEVNULL,
            stderr=subprocess.DEVNULL,
        )
        os.close(theirs_reads)
        os.close(theirs_writes)
        pipe = _Pipe(process, reads, writes)
        try:
            yield Tab(pipe)
        finally:
            with suppress(BrowserFailed, OSError):
                pipe.ask("Browser.close")
            try:
                process.wait(10)
            except subprocess.TimeoutExpired:
                process.kill()
                process.wait()
            os.close(reads)
            os.close(writes)
