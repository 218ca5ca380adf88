# SPDX-FileCopyrightText: 2026 The Switchfold Authors
# SPDX-License-Identifier: Apache-2.0
"""Parameter servers and table clients with hot rows on the reference switch, over TCP and UDP."""

from __future__ import annotations

import contextlib
import itertools
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Iterator
from concurrent.futures import Future
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from numpy.typing import NDArray

from fake_row_controller import FakeRowController, row_view
from loopback import LOOPBACK
from row_switch import RowEntry, RowSwitch
from switchfold.hostlib.control.row_server_link import RowMember, RowServerRequest, RowView
from switchfold.hostlib.control.session_api import session_pb2 as api
from switchfold.hostlib.errors import ConfigurationError, HostlibError
from switchfold.hostlib.hot_rows.row_packets import SERVER_ID_BASE
from switchfold.hostlib.parameter_server import ParameterServer, ServerOptions
from switchfold.hostlib.parameter_server.hot_server import hot_row_server
from switchfold.hostlib.parameter_server.hot_server.options import HotRowOptions
from switchfold.hostlib.parameter_server.tables import SparseTable, TableDefinition
from table_cluster import WAIT_S, open_client

DEFINITION = TableDefinition(name="hot", width=4, hot_keys=16)
NUM_WORKERS, NUM_KEYS = 3, 64
OPTIONS = HotRowOptions(controller="none", job="job", flush_s=0.01, refresh_s=0.05)


@pytest.fixture(autouse=True)
def _a_busy_machine_is_no_silent_switch(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(hot_row_server, "SILENT_S", WAIT_S)


class SwitchLink:
    """Gives a server its place in the switch's view, and puts its rows there at once."""

    def __init__(
        self,
        switch: RowSwitch,
        request: RowServerRequest,
        on_view: Callable[[RowView], None],
        on_installed: Callable[[int, int], None],
    ) -> None:
        self._switch, self._request = switch, request
        self._on_view, self._on_installed = on_view, on_installed

    def start(self) -> None:
        local = self._request.local
        self._switch.attach(SERVER_ID_BASE, local.address, local.udp_port)
        self.tell_view()

    def tell_view(self) -> None:
        switch = self._switch
        members = tuple(
            RowMember(worker_id=w, child_id=w, worker_bitmap=1 << w, switch=switch.endpoint)
            for w in range(NUM_WORKERS)
        )
        self._on_view(
            RowView(
                generation=switch.generation,
                tree_id=switch.job_id,
                first_row=3,
                num_rows=self._request.rows_wanted,
                values_per_packet=32,
                worker_id=SERVER_ID_BASE,
                switch=switch.endpoint,
                num_workers=NUM_WORKERS,
                members=members,
                reason="",
            )
        )

    def set_rows(self, generation: int, number: int, rows: NDArray[np.void]) -> None:
        with self._switch.changed:
            if generation != self._switch.generation:
                return
            self._switch.delete_rows(self._switch.rows)
            self._switch.set_rows(
                {int(r["row"]): RowEntry(int(r["epoch"]), int(r["exponent"])) for r in rows}
            )
        self._on_installed(generation, number)

    def close(self) -> None:
        """Nothing is open."""


class HotJob:
    """One server, started again at the same port by `restart`."""

    def __init__(self, switch: RowSwitch, folder: Path | None = None) -> None:
        self._switch, self._folder = switch, folder
        self.links: list[SwitchLink] = []
        self.server = self._start(0)

    def _start(self, port: int) -> ParameterServer:
        options = ServerOptions(num_workers=NUM_WORKERS, log=self._folder, hot=OPTIONS)
        return ParameterServer(options, address=LOOPBACK, port=port, row_link=self._link)

    def _link(
        self,
        controller: str,
        request: RowServerRequest,
        *,
        on_view: Callable[[RowView], None],
        on_installed: Callable[[int, int], None],
        on_down: Callable[[HostlibError], None],
    ) -> SwitchLink:
        self.links.append(SwitchLink(self._switch, request, on_view, on_installed))
        return self.links[-1]

    def restart(self) -> None:
        port = self.server.port
        self.server.close()
        self.server = self._start(port)

    def close(self) -> None:
        self.server.close()

    def begin_view(self) -> None:
        self._switch.begin_view(self._switch.generation + 1, NUM_WORKERS)
        self.links[-1].tell_view()

    @property
    def counters(self) -> dict[str, int]:
        return self.server.tables.counters


@contextlib.contextmanager
def hot_tables(job: HotJob) -> Iterator[list[SparseTable]]:
    """Tables of all workers, with hot rows."""
    with contextlib.ExitStack() as stack:
        stack.callback(job.close)
        address = job.server.address, job.server.port
        clients = [
            stack.enter_context(open_client([address], w, hot_sample=1.0))
            for w in range(NUM_WORKERS)
        ]
        yield [client.define(DEFINITION) for client in clients]


def wait_until(condition: Callable[[], bool], step: Callable[[], Any]) -> None:
    end_s = time.monotonic() + WAIT_S
    while not condition():
        assert time.monotonic() < end_s
        step()


@pytest.mark.parametrize("has_log", [False, True])
@pytest.mark.parametrize("loss", [0.0, 0.05])
def test_sums_are_exact(tmp_path: Path, has_log: bool, loss: float) -> None:
    """Workers push while the server is started again, the switch restarts, and views change."""
    keys = np.arange(NUM_KEYS)
    shares = 1.0 / np.arange(1, NUM_KEYS + 1)
    expected = np.zeros((NUM_KEYS, 4), np.int64)
    lock = threading.Lock()
    with RowSwitch(NUM_WORKERS, loss=loss, duplication=loss, reordering=loss) as switch:
        job = HotJob(switch, tmp_path / "log" if has_log else None)
        with hot_tables(job) as tables:

            def work(worker_id: int) -> None:
                rng = np.random.default_rng(worker_id)
                futures: list[Future[None]] = []
                while not is_over.is_set():
                    own = rng.choice(keys, 8, replace=False, p=shares / shares.sum())
                    gradients = rng.integers(-50, 51, (8, 4))
                    with lock:
                        np.add.at(expected, own, gradients)
                    futures.append(tables[worker_id].push(own, gradients.astype(np.float32)))
                    if len(futures) > 10:
                        futures.pop(0).result(WAIT_S)
                for future in futures:
                    future.result(WAIT_S)

            is_over = threading.Event()
            threads = [threading.Thread(target=work, args=(w,)) for w in range(NUM_WORKERS)]
            for thread in threads:
                thread.start()
            try:
                for event in (job.restart if has_log else job.begin_view, switch.restart) * 2:
                    before = job.counters["hot_pushes"]
                    wait_until(
                        lambda before=before: job.counters["hot_pushes"] > before + 100,
                        lambda: is_over.wait(0.01),
                    )
                    event()
                    wait_until(lambda: job.counters["hot_pushes"] > 100, lambda: is_over.wait(0.01))
            finally:
                is_over.set()
                for thread in threads:
                    thread.join()
            rows = job.server.tables.state.tables[DEFINITION.number].rows
            np.testing.assert_array_equal(rows.pull(keys).values, expected)


def test_pulls_read_the_switch() -> None:
    with RowSwitch(NUM_WORKERS) as switch:
        job = HotJob(switch)
        with hot_tables(job) as tables:
            keys, total = np.arange(16), np.zeros((16, 4), np.float32)

            def push() -> None:
                gradients = np.full((16, 4), 2.0, np.float32)
                for table in tables:
                    table.push(keys, gradients).result(WAIT_S)
                    total.__iadd__(gradients)

            wait_until(lambda: job.counters["hot_pushes"] > 100, push)
            reads = switch.passed["read"]

            def has_all() -> bool:
                found = tables[0].pull(keys).result(WAIT_S).values
                return bool((found == total).all()) and switch.passed["read"] > reads

            wait_until(has_all, lambda: None)
            assert job.counters["hot_receipts"] > 0


def test_a_server_without_controller_has_no_hot_rows(tmp_path: Path) -> None:
    """Also if it had some before."""
    with RowSwitch(NUM_WORKERS) as switch:
        job = HotJob(switch, tmp_path / "log")
        with hot_tables(job) as tables:
            gradients = np.ones((16, 4), np.float32)
            wait_until(
                lambda: job.counters["hot_pushes"] > 10,
                lambda: tables[0].push(np.arange(16), gradients).result(WAIT_S),
            )
            before = tables[0].pull(np.arange(16)).result(WAIT_S)
            port = job.server.port
            job.server.close()
            options = ServerOptions(num_workers=NUM_WORKERS, log=tmp_path / "log")
            job.server = ParameterServer(options, address=LOOPBACK, port=port)
            tables[0].push(np.arange(16), gradients).result(WAIT_S)
            after = tables[0].pull(np.arange(16)).result(WAIT_S)
            assert (after.values >= before.values + 1).all()
            wait_until(
                lambda: not job.server.tables.state.hot.served.rows.size, lambda: time.sleep(0)
            )


def test_the_command_attaches_at_a_controller(tmp_path: Path) -> None:
    """By its own link: `ps run` with the reference switch behind a controller that has a script."""
    attached: list[api.AttachRowServer] = []

    with RowSwitch(NUM_WORKERS) as switch:

        def answer(message: api.RowServerMessage, _: Any) -> list[api.RowControllerMessage]:
            if message.HasField("attach"):
                attached.append(message.attach)
                switch.attach(SERVER_ID_BASE, message.attach.address, message.attach.udp_port)
                place = {
                    "switch_address": switch.endpoint.address,
                    "switch_udp_port": switch.endpoint.udp_port,
                }
                members = [
                    api.RowMember(worker_id=w, child_id=w, worker_bitmap=1 << w, **place)
                    for w in range(NUM_WORKERS)
                ]
                fields: dict[str, Any] = {"num_workers": NUM_WORKERS, "members": members, **place}
                fields |= {"generation": switch.generation, "tree_id": switch.job_id}
                return [row_view(worker_id=SERVER_ID_BASE, **fields)]
            if message.HasField("set_rows"):
                asked = message.set_rows
                entries = zip(asked.rows, asked.epochs, asked.exponents, strict=True)
                switch.set_rows({row: RowEntry(epoch, e) for row, epoch, e in entries})
                installed = api.RowsInstalled(generation=asked.generation, number=asked.number)
                return [api.RowControllerMessage(rows_installed=installed)]
            return []

        controller = FakeRowController(answer)
        command = [sys.executable, "-m", "switchfold.hostlib.parameter_server"]
        options = {
            "--address": LOOPBACK,
            "--num-workers": str(NUM_WORKERS),
            "--log": str(tmp_path / "log"),
            "--controller": controller.address,
            "--hot-job": "train",
            "--hot-rows": "8",
            "--hot-refresh": "0.1",
        }
        with subprocess.Popen(
            [*command, *itertools.chain(*options.items())], stdout=subprocess.PIPE, text=True
        ) as process:
            assert process.stdout is not None
            port = int(process.stdout.readline().rsplit(":", 1)[1])
            with open_client([(LOOPBACK, port)], 0, hot_sample=1.0) as client:
                table, keys = client.define(DEFINITION), np.arange(16)
                gradients, count = np.ones((16, 4), np.float32), itertools.count(1)
                wait_until(
                    lambda: switch.passed["to_servers"] > 100,
                    lambda: (table.push(keys, gradients).result(WAIT_S), next(count)),
                )
                total = next(count) - 1
                wait_until(
                    lambda: bool((table.pull(keys).result(WAIT_S).values == total).all()),
                    lambda: None,
                )
            process.send_signal(signal.SIGTERM)
            counted, _ = process.communicate(timeout=WAIT_S)
        controller.stop()
    assert process.returncode == 0
    assert " hot_pushes=" in counted
    (request,) = attached
    assert (request.job_name, request.server_id, request.rows_wanted) == ("train", 0, 8)
    assert (request.address, request.udp_port, len(request.identity)) == (LOOPBACK, port, 16)


@pytest.mark.parametrize(
    ("fields", "what"),
    [
        ({"controller": ""}, "needs both"),
        ({"address": "10.0.0.300"}, "hot address"),
        ({"rows": 0}, "0 hot rows"),
        ({"udp_port": 1 << 16}, "UDP port 65536"),
        ({"refresh_s": 0.0}, "refresh 0.0 s"),
        ({"write_s": 2.0}, "write 2.0 s"),
        ({"token": "a b"}, "the controller's token must"),
    ],
)
def test_bad_options_are_refused(fields: dict[str, Any], what: str) -> None:
    with pytest.raises(ConfigurationError, match=what):
        HotRowOptions(**{"controller": "here:1", "job": "job"} | fields)


def test_large_jobs_have_no_hot_rows() -> None:
    with pytest.raises(ConfigurationError, match="at most 32 servers"):
        ServerOptions(num_workers=33, hot=OPTIONS)
    with pytest.raises(ConfigurationError, match="hot rows for server 32"):
        ServerOptions(num_workers=3, shard=32, hot=OPTIONS)
