# SPDX-FileCopyrightText: 2026 The Switchfold Authors
# SPDX-License-Identifier: Apache-2.0
"""What processes tell systemd: readiness, and that they are alive."""

from __future__ import annotations

import contextlib
import os
import queue
import signal
import socket
import subprocess
import sys
import threading
from collections.abc import Iterator
from pathlib import Path

import pytest

from switchfold.hostlib.observing.service_manager import ServiceManager

WAIT_S = 60.0


class Manager:
    """systemd's end of the socket.

    A thread takes what is told: a process that tells more than the kernel keeps would wait, and so
    would the test that joins it.
    """

    def __init__(self, path: Path, *, is_abstract: bool = False) -> None:
        self._socket = socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM)
        name = str(path)
        self._socket.bind(f"\0{name}" if is_abstract else name)
        self.variables = {"NOTIFY_SOCKET": f"@{name}" if is_abstract else name}
        self._told: queue.SimpleQueue[bytes] = queue.SimpleQueue()
        self._thread = threading.Thread(target=self._listen, daemon=True)
        self._thread.start()

    def _listen(self) -> None:
        while told := self._socket.recv(4096):
            self._told.put(told)

    def hear(self, timeout_s: float = WAIT_S) -> str:
        """Return what is told next. Raises queue.Empty."""
        return self._told.get(timeout=timeout_s).decode()

    def close(self) -> None:
        self._socket.shutdown(socket.SHUT_RDWR)
        self._thread.join()
        self._socket.close()


@pytest.fixture(params=[False, True], ids=["file", "abstract"])
def manager(tmp_path: Path, request: pytest.FixtureRequest) -> Iterator[Manager]:
    made = Manager(tmp_path / "notify", is_abstract=request.param)
    with contextlib.closing(made):
        yield made


def test_nothing_is_told_without_a_service_manager() -> None:
    process = ServiceManager({"WATCHDOG_USEC": "1000"})
    assert process.interval_s is None
    process.ready("x")
    looks: list[int] = []
    with process.watching(lambda: looks.append(1)):
        process.alive()
    process.stopping()
    assert looks == []


def test_a_process_tells_that_it_is_ready_and_ends(manager: Manager) -> None:
    process = ServiceManager(manager.variables)
    process.ready("all is well")
    assert manager.hear() == "READY=1\nSTATUS=all is well"
    process.stopping()
    assert manager.hear() == "STOPPING=1"


@pytest.mark.parametrize(
    ("variables", "interval_s"),
    [
        ({}, None),
        ({"WATCHDOG_USEC": "0"}, None),
        ({"WATCHDOG_USEC": "never"}, None),
        ({"WATCHDOG_USEC": "3000000"}, 1.0),
        ({"WATCHDOG_USEC": "3000000", "WATCHDOG_PID": str(os.getpid())}, 1.0),
        ({"WATCHDOG_USEC": "3000000", "WATCHDOG_PID": "1"}, None),
    ],
)
def test_signs_of_life_are_for_the_process_that_is_meant(
    variables: dict[str, str], interval_s: float | None
) -> None:
    process = ServiceManager({"NOTIFY_SOCKET": "/nowhere", **variables})
    assert process.interval_s == interval_s


def test_each_sign_of_life_follows_a_look(manager: Manager) -> None:
    process = ServiceManager({**manager.variables, "WATCHDOG_USEC": "3000"})
    looks: list[int] = []
    with process.watching(lambda: looks.append(1)):
        for number in range(3):
            assert manager.hear() == "WATCHDOG=1"
            assert len(looks) > number


def test_a_look_that_fails_or_hangs_is_no_sign_of_life(
    manager: Manager, caplog: pytest.LogCaptureFixture
) -> None:
    process = ServiceManager({**manager.variables, "WATCHDOG_USEC": "3000"})
    has_failed, may_go_on = threading.Event(), threading.Event()

    def look() -> None:
        if not has_failed.is_set():
            has_failed.set()
            raise RuntimeError("broken")
        may_go_on.wait(WAIT_S)

    with process.watching(look):
        assert has_failed.wait(WAIT_S)
        with pytest.raises(queue.Empty):
            manager.hear(0.05)
        may_go_on.set()
        assert manager.hear() == "WATCHDOG=1"
    assert "no sign of life" in caplog.text
    assert "broken" in caplog.text


def test_a_manager_that_is_gone_stops_nobody(caplog: pytest.LogCaptureFixture) -> None:
    ServiceManager({"NOTIFY_SOCKET": "/no/such/socket"}).ready("x")
    assert "the service manager is not told" in caplog.text


def test_a_manager_that_does_not_read_stops_nobody(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    monkeypatch.setattr("switchfold.hostlib.observing.service_manager._SEND_S", 0.01)
    address = str(tmp_path / "notify")
    with (
        socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM) as deaf,
        socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM) as other,
    ):
        deaf.bind(address)
        with contextlib.suppress(BlockingIOError):
            while True:
                other.sendto(b"x", socket.MSG_DONTWAIT, address)
        process = ServiceManager({"NOTIFY_SOCKET": address, "WATCHDOG_USEC": "3000"})
        has_looked = threading.Event()
        with process.watching(has_looked.set):
            assert has_looked.wait(WAIT_S)
        process.stopping()
    assert "the service manager is not told 'WATCHDOG=1'" in caplog.text
    assert "the service manager is not told 'STOPPING=1'" in caplog.text


def test_a_parameter_server_is_ready_and_alive(manager: Manager) -> None:
    with subprocess.Popen(
        [sys.executable, "-m", "switchfold.hostlib.parameter_server", "--address", "127.0.0.1",
         "--num-workers", "1", "--insecure"],
        env={**os.environ, **manager.variables, "WATCHDOG_USEC": "300000"},
        stdout=subprocess.DEVNULL,
    ) as server:  # fmt: skip
        try:
            assert manager.hear().startswith("READY=1\nSTATUS=listening on 127.0.0.1:")
            assert manager.hear() == "WATCHDOG=1"
            server.send_signal(signal.SIGTERM)
            while (said := manager.hear()) == "WATCHDOG=1":
                pass
            assert said == "STOPPING=1"
            assert server.wait(WAIT_S) == 0
        finally:
            server.kill()
