# SPDX-FileCopyrightText: 2026 The Switchfold Authors
# SPDX-License-Identifier: Apache-2.0
"""Headless Chromium, driven over the WebDriver protocol (W3C) of chromedriver."""

from __future__ import annotations

import base64
import json
import re
import shutil
import subprocess
import urllib.request
from collections.abc import Generator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest

from time_bound import wait_until

DRIVER = shutil.which("chromedriver")
CHROMIUM = shutil.which("chromium") or shutil.which("google-chrome")
needs_browser = pytest.mark.skipif(
    DRIVER is None or CHROMIUM is None,
    reason="needs chromium and chromedriver (on Debian: apt-get install chromium chromium-driver)",
)
_ANSWER_S = 120.0
_OPTIONS = (
    *("--headless=new", "--no-sandbox", "--disable-gpu", "--disable-dev-shm-usage"),
    *("--no-first-run", "--disable-background-networking", "--disable-component-update"),
    *("--disable-sync", "--disable-quic", "--hide-scrollbars"),
)


class Browser:
    """One window."""

    def __init__(self, driver: str, session: str) -> None:
        self._session = f"{driver}/session/{session}"

    def open(self, url: str) -> None:
        self._post("url", url=url)

    def resize(self, width: int, height: int) -> None:
        """Give the page this size, in CSS pixels, as a device of this width has it."""
        self._cdp(
            "Emulation.setDeviceMetricsOverride",
            width=width, height=height, deviceScaleFactor=1, mobile=width < 600,
        )  # fmt: skip

    def run(self, script: str, *arguments: Any) -> Any:
        """Return what a script returns, as JSON has it."""
        return self._post("execute/sync", script=script, args=list(arguments))

    def texts(self, selector: str) -> list[str]:
        """Return the text of every element that a CSS selector finds, as it is shown."""
        return self.run(
            "return [...document.querySelectorAll(arguments[0])]"
            ".map(each => each.innerText ?? each.textContent)",
            selector,
        )

    def wait_for_text(self, selector: str, part: str) -> None:
        """Wait until an element that the selector finds has this text."""
        wait_until(
            lambda: any(part in text for text in self.texts(selector)), f"{part!r} in {selector}"
        )

    def screenshot(self, path: Path) -> None:
        """Write a picture of the whole page, not only of what the window shows."""
        shot = self._cdp("Page.captureScreenshot", captureBeyondViewport=True)
        path.write_bytes(base64.b64decode(shot["data"]))

    def complaints(self) -> list[str]:
        """Return what the console says since the last call: errors of scripts, broken policies."""
        return [entry["message"] for entry in self._post("se/log", type="browser")]

    def _cdp(self, command: str, **parameters: Any) -> Any:
        return self._post("goog/cdp/execute", cmd=command, params=parameters)

    def _post(self, command: str, **parameters: Any) -> Any:
        return _post(f"{self._session}/{command}", parameters)


@contextmanager
def browser(folder: Path) -> Generator[Browser]:
    """Open a window with an empty profile in this folder; closed in the end."""
    with (folder / "chromedriver.log").open("wb") as log:
        driver = subprocess.Popen([str(DRIVER), "--port=0"], stdout=log, stderr=log)
    try:
        address = _address_in(folder / "chromedriver.log")
        options = {
            "binary": CHROMIUM,
            "args": [*_OPTIONS, f"--user-data-dir={folder / 'profile'}"],
        }
        wanted = {"goog:chromeOptions": options, "goog:loggingPrefs": {"browser": "WARNING"}}
        made = _post(f"{address}/session", {"capabilities": {"alwaysMatch": wanted}})
        session = made["sessionId"]
        try:
            yield Browser(address, session)
        finally:
            _call(urllib.request.Request(f"{address}/session/{session}", method="DELETE"))
    finally:
        driver.terminate()
        driver.wait()


def _address_in(log: Path) -> str:
    def find() -> re.Match[str] | None:
        return re.search(r"started successfully on port (\d+)", log.read_text("utf-8"))

    wait_until(lambda: find() is not None, "chromedriver's port")
    found = find()
    assert found is not None
    return f"http://127.0.0.1:{found[1]}"


def _post(url: str, body: Mapping[str, Any]) -> Any:
    return _call(
        urllib.request.Request(
            url, json.dumps(body).encode(), {"Content-Type": "application/json"}, method="POST"
        )
    )


def _call(request: urllib.request.Request) -> Any:
    with urllib.request.urlopen(request, timeout=_ANSWER_S) as answer:
        return json.load(answer)["value"]
