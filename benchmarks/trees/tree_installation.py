# SPDX-FileCopyrightText: 2026 The Switchfold Authors
# SPDX-License-Identifier: Apache-2.0
"""Time to plan and install the trees of a job of 1,024 workers on 64 real switches, or on fewer.

Each switch is a process of softswitch with a P4Runtime server; the controller is a real one in this
process. **Verified**: the entries of each switch are read back and compared after each installation
and after each removal.

    python benchmarks/trees/tree_installation.py --pods 8 --repeats 3
"""

from __future__ import annotations

import argparse
import asyncio
import dataclasses
import statistics
import sys
import tempfile
import time
from collections.abc import Generator
from contextlib import ExitStack, contextmanager
from pathlib import Path
from typing import Any

ROOT = Path(__file__).resolve().parents[2]
sys.path.insert(0, str(ROOT))

from benchmarks.support.machine import describe_machine, machine_line  # noqa: E402
from benchmarks.support.results import write_json  # noqa: E402
from benchmarks.trees.tree_planning import clos, workers_of  # noqa: E402
from switchfold.bmv2_topos.config import child_environment  # noqa: E402
from switchfold.bmv2_topos.processes.daemons import SwitchSoftware, switch_command  # noqa: E402
from switchfold.bmv2_topos.processes.processes import (  # noqa: E402
    ManagedProcess,
    StartingProcess,
    launch_process,
)
from switchfold.bmv2_topos.topology.topology import Switch  # noqa: E402
from switchfold.controller.config import ControllerConfig  # noqa: E402
from switchfold.controller.jobs.job import View  # noqa: E402
from switchfold.controller.jobs.job_request import JobRequest  # noqa: E402
from switchfold.controller.server import ControllerServer  # noqa: E402
from switchfold.controller.switches.reconcile import desired_entities  # noqa: E402

READY_TIMEOUT_S = 120.0


def parse_options() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("--pods", type=int, default=2, help="pods of 8 switches and 128 workers")
    parser.add_argument("--repeats", type=int, default=3, help="repeats after one warm-up")
    parser.add_argument("--at-once", type=int, default=4, help="switches that start at a time")
    parser.add_argument("--out", type=Path, default=ROOT / "benchmarks" / "results")
    return parser.parse_args()


@contextmanager
def running_switches(
    config: ControllerConfig, directory: Path, at_once: int
) -> Generator[ControllerConfig]:
    """Run a softswitch for every switch; yield the configuration with its addresses."""
    switches = tuple(
        dataclasses.replace(each, address=f"unix:{directory}/{each.name}.sock", device_id=1)
        for each in config.switches
    )
    started: list[ManagedProcess] = []

    def launch(name: str, grpc_address: str) -> StartingProcess:
        command = switch_command(
            SwitchSoftware(),
            Switch(name=name, device_id=1, address="10.0.0.254", mac="02:53:46:00:00:01"),
            port_specs={},
            grpc_address=grpc_address,
            run_directory=directory,
        )
        environment = child_environment(directory)
        return launch_process(name, command, run_directory=directory, environment=environment)

    with ExitStack() as stack:
        for first in range(0, len(switches), at_once):
            starting: list[StartingProcess] = []
            for each in switches[first : first + at_once]:
                starting.append(launch(each.name, each.address))
                started.append(starting[-1].process)
                stack.callback(starting[-1].process.stop)
            for each in starting:
                each.await_ready(READY_TIMEOUT_S)
        yield dataclasses.replace(config, switches=switches)
        for process in started:
            process.record.terminate()


async def check(server: ControllerServer) -> None:
    """Raise SystemExit unless every switch holds exactly the desired entries."""
    changes = await asyncio.gather(*(link.apply() for link in server.links.values()))
    if any(changes):
        raise SystemExit("a switch holds other entries than the installed ones")


async def measure(config: ControllerConfig, repeats: int) -> dict[str, Any]:
    """Plan, install and remove; return the times without warm-up, and the installed numbers."""
    times: dict[str, list[float]] = {"plan": [], "install": [], "remove": []}
    members = workers_of(config)
    server = ControllerServer(config)
    entities = 0
    began_s = time.perf_counter()
    async with server.serve():
        connect_s = time.perf_counter() - began_s
        # The database has one user at a time: the server's own.
        database = server._database  # pyright: ignore[reportPrivateUsage]
        job = database.create_job(JobRequest(name="large", num_workers=len(members)))
        view: View | None = None
        for repeat in range(repeats + 1):
            began_s = time.perf_counter()
            planned = server.views.plan(job, members)
            planned_s = time.perf_counter()
            view = await server.views.install(planned)
            installed_s = time.perf_counter()
            await check(server)
            entities = sum(
                len(desired_entities((), view.placements(name))) for name in view.switches
            )
            removing_s = time.perf_counter()
            await server.views.remove(view)
            removed_s = time.perf_counter()
            await check(server)
            if repeat:
                times["plan"].append(planned_s - began_s)
                times["install"].append(installed_s - planned_s)
                times["remove"].append(removed_s - removing_s)
    assert view is not None
    return {
        "switches": len(config.switches),
        "used_switches": len(view.switches),
        "links": len(config.links),
        "workers": len(members),
        "trees": len(view.trees),
        "entities": entities,
        "connect_s": connect_s,
        **{f"{step}_s": found for step, found in times.items()},
    }


def main() -> None:
    options = parse_options()
    machine = describe_machine(has_torch=False)
    print(machine_line(machine))
    with tempfile.TemporaryDirectory(prefix="sf-", dir="/tmp") as name:
        directory = Path(name)
        began_s = time.perf_counter()
        config = dataclasses.replace(
            clos(options.pods),
            listen=f"unix:{directory}/controller.sock",
            database=directory / "controller.sqlite3",
            connect_timeout_s=READY_TIMEOUT_S,
        )
        with running_switches(config, directory, options.at_once) as running:
            started_s = time.perf_counter() - began_s
            row = asyncio.run(measure(running, options.repeats))
    print(
        f"3-level Clos: {row['switches']} softswitch processes (started in {started_s:.0f} s, "
        f"connected and routed in {row['connect_s']:.1f} s), {row['links']} links, "
        f"{row['workers']} workers: {row['trees']} trees over {row['used_switches']} switches, "
        f"{row['entities']} entries; {options.repeats} repeats after a warm-up, entries read back"
    )
    for step in ("plan", "install", "remove"):
        found = row[f"{step}_s"]
        print(f"  {step}: {statistics.median(found):.3f} s ({min(found):.3f} .. {max(found):.3f})")
    path = options.out / "tree_installation.json"
    write_json(path, {"machine": machine, **row})
    print(f"wrote {path}")


if __name__ == "__main__":
    main()
