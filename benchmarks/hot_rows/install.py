# SPDX-FileCopyrightText: 2026 The Switchfold Authors
# SPDX-License-Identifier: Apache-2.0
"""How long the controller takes to bring hot rows onto a switch, and how long its loop stops."""

from __future__ import annotations

import argparse
import asyncio
import contextlib
import gc
import os
import queue
import sys
import tempfile
import time
from collections.abc import AsyncGenerator, Generator, Iterator
from pathlib import Path
from typing import Any, Final

import numpy as np
from numpy.typing import NDArray

ROOT = Path(__file__).resolve().parents[2]
sys.path[:0] = [str(ROOT)]

from benchmarks.support.machine import describe_machine, machine_line  # noqa: E402
from benchmarks.support.results import parameters_of, write_json  # noqa: E402
from switchfold.bmv2_topos.errors import TargetMissingError  # noqa: E402
from switchfold.bmv2_topos.processes.certificates import (  # noqa: E402
    make_certificates,
    programming_folder,
)
from switchfold.bmv2_topos.processes.daemons import (  # noqa: E402
    SwitchSoftware,
    Target,
    accepts,
    switch_command,
)
from switchfold.bmv2_topos.processes.processes import launch_process  # noqa: E402
from switchfold.bmv2_topos.topology.topology import single_switch  # noqa: E402
from switchfold.controller.config import (  # noqa: E402
    ControllerConfig,
    HostConfig,
    SwitchConfig,
)
from switchfold.controller.server import ControllerServer  # noqa: E402
from switchfold.hostlib.control.controller_link import GrpcControllerLink  # noqa: E402
from switchfold.hostlib.control.join_request import JoinRequest  # noqa: E402
from switchfold.hostlib.control.row_server_link import (  # noqa: E402
    ROW_DTYPE,
    RowServerLink,
    RowServerRequest,
    RowView,
)
from switchfold.hostlib.control.view import Endpoint  # noqa: E402
from switchfold.hostlib.options import SessionOptions  # noqa: E402

HOSTS: Final = tuple(
    HostConfig(name=f"h{n}", port=n, address=f"10.0.0.{n}", mac=f"02:00:00:00:00:{n:02x}")
    for n in (1, 2)
)
DEADLINE_S: Final = 120.0
SLOTS: Final = 32
"""Of the job beside its rows."""


class Watchdog:
    """Measures the longest time between two looks at the loop, which come each millisecond."""

    def __init__(self) -> None:
        self.longest_s = 0.0
        """By the clock: other processes may have had the processor."""
        self.longest_cpu_s = 0.0
        """Of the processor, by the loop's thread."""
        self._task = asyncio.create_task(self._watch())

    async def _watch(self) -> None:
        last_s, last_cpu_s = time.perf_counter(), time.thread_time()
        while True:
            await asyncio.sleep(0.001)
            now_s, now_cpu_s = time.perf_counter(), time.thread_time()
            self.longest_s = max(self.longest_s, now_s - last_s)
            self.longest_cpu_s = max(self.longest_cpu_s, now_cpu_s - last_cpu_s)
            last_s, last_cpu_s = now_s, now_cpu_s

    async def stop(self) -> tuple[float, float]:
        """Return the longest stop by the clock and of the processor, seconds."""
        self._task.cancel()
        with contextlib.suppress(asyncio.CancelledError):
            await self._task
        return self.longest_s, self.longest_cpu_s


class RowSetter:
    """A row server's link whose callbacks are queues."""

    def __init__(self, controller: str, num_rows: int) -> None:
        self.views: queue.SimpleQueue[RowView] = queue.SimpleQueue()
        self.installed: queue.SimpleQueue[tuple[int, int]] = queue.SimpleQueue()
        self.link = RowServerLink(
            controller,
            RowServerRequest(
                job="rows",
                server_id=0,
                identity=os.urandom(16),
                local=Endpoint(address=HOSTS[1].address, udp_port=6000),
                rows_wanted=num_rows,
            ),
            on_view=self.views.put,
            on_installed=lambda generation, number: self.installed.put((generation, number)),
            on_down=lambda error: print(error, file=sys.stderr),
        )


@contextlib.contextmanager
def running_switch(target: Target, folder: Path) -> Generator[str]:
    """Run a switch without ports; yield the address of its P4Runtime server."""
    switch = single_switch(2).switches[0]
    address = f"unix:{folder}/{switch.name}.sock"
    make_certificates(folder, [switch.name], has_controller=False)
    command = switch_command(
        SwitchSoftware(target=target, variant="narrow"),
        switch,
        port_specs={},
        grpc_address=address,
        run_directory=folder,
    )
    starting = launch_process(target, command, run_directory=folder, environment=dict(os.environ))
    process = starting.await_ready(DEADLINE_S, lambda: accepts(address))
    try:
        yield address
    finally:
        process.stop()


@contextlib.asynccontextmanager
async def running_job(
    address: str, folder: Path, num_rows: int
) -> AsyncGenerator[tuple[ControllerServer, RowSetter, RowView]]:
    """Run a controller, a job of one worker, and a row server of it with so many rows."""
    config = ControllerConfig(
        switches=(
            SwitchConfig(
                name="s1", address=address, hosts=HOSTS, credentials=programming_folder(folder)
            ),
        ),
        insecure=True,
        listen=f"unix:{folder}/controller.sock",
        database=folder / "controller.sqlite3",
        connect_timeout_s=DEADLINE_S,
        reconcile_interval_s=600.0,  # repairs are measured by themselves
    )
    server = ControllerServer(config)
    async with server.serve():
        gc.collect()
        gc.freeze()  # as `switchfold controller run` does
        rows = RowSetter(server.address, num_rows)
        rows.link.start()
        await asyncio.to_thread(rows.views.get, timeout=DEADLINE_S)
        worker = GrpcControllerLink(
            server.address,
            JoinRequest(
                job="rows",
                worker_id=0,
                num_workers=1,
                local=Endpoint(address=HOSTS[0].address, udp_port=5000),
                options=SessionOptions(slots_wanted=SLOTS, path="switch"),
            ),
        )
        await asyncio.to_thread(worker.join, DEADLINE_S)
        view = await asyncio.to_thread(rows.views.get, timeout=DEADLINE_S)
        try:
            if view.num_rows != num_rows:
                raise SystemExit(f"only {view.num_rows} rows: {view.reason}")
            yield server, rows, view
        finally:
            await asyncio.to_thread(worker.close, 0)
            await asyncio.to_thread(rows.link.close)


def sets_of_rows(num_rows: int) -> Iterator[tuple[str, NDArray[np.void]]]:
    """Yield sets of rows that follow each other, and what each changes."""
    rows = np.zeros(num_rows, ROW_DTYPE)
    rows["row"] = np.arange(num_rows)
    rows["epoch"] = 32 * (1 + np.arange(num_rows))
    yield "all new", rows
    rows = rows.copy()
    rows["epoch"] += 32 * num_rows
    yield "all epochs", rows
    rows = rows.copy()
    rows["epoch"][::10] += 64 * num_rows
    yield "a tenth of the epochs", rows
    yield "nothing", rows
    yield "all gone", rows[:0]


async def measure(address: str, folder: Path, num_rows: int, repeats: int) -> list[dict[str, Any]]:
    """Return seconds and longest stops for each kind of change."""
    found: dict[str, list[tuple[float, float, float]]] = {}
    async with running_job(address, folder, num_rows) as (server, rows, view):
        number = 0
        for _ in range(repeats):
            for what, wanted in sets_of_rows(num_rows):
                number += 1
                watchdog = Watchdog()
                start_s = time.perf_counter()
                rows.link.set_rows(view.generation, number, wanted)
                done = await asyncio.to_thread(rows.installed.get, timeout=DEADLINE_S)
                seconds = time.perf_counter() - start_s
                found.setdefault(what, []).append((seconds, *await watchdog.stop()))
                assert done == (view.generation, number)
                if what == "nothing":
                    found.setdefault("a repair", []).append(await _repair(server))
    return [
        {
            "change": what,
            "rows": num_rows,
            "ms": 1e3 * float(np.median([run[0] for run in runs])),
            "worst ms": 1e3 * max(run[0] for run in runs),
            "longest stop, ms": 1e3 * max(run[1] for run in runs),
            "of processor, ms": 1e3 * max(run[2] for run in runs),
        }
        for what, runs in found.items()
    ]


async def _repair(server: ControllerServer) -> tuple[float, float, float]:
    """Read all tables of the switch and compare, as the controller does from time to time."""
    watchdog = Watchdog()
    start_s = time.perf_counter()
    await server.links["s1"].repair()
    return time.perf_counter() - start_s, *await watchdog.stop()


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--rows", type=int, default=625, help="hot rows of the server")
    parser.add_argument("--repeats", type=int, default=5)
    parser.add_argument("--targets", nargs="+", default=["softswitch", "bmv2"])
    parser.add_argument("--json", type=Path, help="file for the figures")
    options = parser.parse_args()
    machine = describe_machine(has_torch=False)
    print(machine_line(machine))
    results: dict[str, Any] = {"machine": machine, "parameters": parameters_of(options)}
    with tempfile.TemporaryDirectory() as name:
        for target in options.targets:
            folder = Path(name, target)
            folder.mkdir()
            try:
                with running_switch(target, folder) as address:
                    rows = asyncio.run(measure(address, folder, options.rows, options.repeats))
            except TargetMissingError as exc:
                print(f"\n{target}: {exc}")
                continue
            results[target] = rows
            print(f"\n{target}, from the set to its installation; median of {options.repeats}")
            print("  ".join(f"{title:>22}" for title in rows[0]))
            for row in rows:
                cells = [f"{x:.1f}" if isinstance(x, float) else str(x) for x in row.values()]
                print("  ".join(f"{cell:>22}" for cell in cells))
    if options.json:
        write_json(options.json, results)


if __name__ == "__main__":
    main()
