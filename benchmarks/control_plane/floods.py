# SPDX-FileCopyrightText: 2026 The Switchfold Authors
# SPDX-License-Identifier: Apache-2.0
"""Sums of a job while strangers flood its servers, beside the same in calm.

Workers sum a small tensor again and again over one softswitch, in turns: in calm, then during a
flood, in calm again, and so on. Floods are of the controller, of the switch's P4Runtime and of the
peer server of worker 1. Every sum is verified. The attacker is a process of its own, which opens
connections at a stated rate and holds the last 300; its processor time is printed, as all share the
machine.

    python benchmarks/control_plane/floods.py --workers 2 --turns 3 --sums 1000
"""

from __future__ import annotations

import argparse
import json
import sys
from pathlib import Path
from typing import Any, Final, NamedTuple

import numpy as np

ROOT = Path(__file__).resolve().parents[2]
sys.path[:0] = [str(ROOT), str(ROOT / "tests" / "support")]

from benchmarks.control_plane.floods_worker import CALM, PEER  # noqa: E402
from benchmarks.support.machine import (  # noqa: E402
    check_machine,
    describe_machine,
    machine_line,
    parse_rate,
)
from benchmarks.support.results import parameters_of, write_json  # noqa: E402
from benchmarks.support.worker_runs import outputs  # noqa: E402
from flooding import ProcessMemory  # noqa: E402
from switchfold.bmv2_topos import Testbed, single_switch  # noqa: E402
from switchfold.bmv2_topos.errors import TestbedError  # noqa: E402
from switchfold.bmv2_topos.processes.processes import read_records  # noqa: E402
from switchfold.hostlib.control.controller_link import JOIN_METHOD  # noqa: E402
from switchfold.hostlib.credentials import Role, role_name  # noqa: E402

WORKER = Path(__file__).with_name("floods_worker.py")
BOUND: Final = 2.0
"""Most times that the 99th percentile in calm may grow."""
WRITE: Final = "/p4.v1.P4Runtime/Write"


class FloodKind(NamedTuple):
    """A kind of caller, the server that it floods, and how often it calls."""

    caller: str
    server: str
    """Or "" for none."""
    rate: float
    """Callers per second."""
    token: str = ""
    """Instead of the right one."""

    @property
    def name(self) -> str:
        """Its title in the table."""
        guess = ", wrong token" if self.token else ""
        return f"{self.caller.replace('_', ' ')}{guess}" + f", {self.server}" * bool(self.server)


FLOODS: Final = (
    FloodKind("burn", "", 20.0),
    FloodKind("silent", "controller", 200.0),
    FloodKind("half_handshake", "controller", 50.0),
    FloodKind("without_calls", "controller", 20.0),
    FloodKind("endless_headers", "controller", 20.0),
    FloodKind("joins", "controller", 20.0, "guess"),
    FloodKind("joins", "controller", 20.0),
    FloodKind("slow_messages", "controller", 1.0),
    FloodKind("giant_messages", "controller", 20.0),
    FloodKind("silent", "switch", 200.0),
    FloodKind("half_handshake", "switch", 50.0),
    FloodKind("endless_headers", "switch", 20.0),
    FloodKind("silent", "worker", 200.0),
    FloodKind("half_handshake", "worker", 50.0),
)


def parse_options() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("--workers", type=int, default=2, help="number of workers, default 2")
    parser.add_argument("--rate", default="1G", help="rate of each link, default 1G bit/s")
    parser.add_argument("--bytes", type=int, default=65536, help="size of the tensor")
    parser.add_argument("--turns", type=int, default=3, help="turns of each kind")
    parser.add_argument("--sums", type=int, default=1000, help="sums in one turn")
    parser.add_argument("--timeout", type=float, default=60.0, help="seconds per allreduce")
    parser.add_argument("--out", type=Path, default=ROOT / "benchmarks" / "results")
    return parser.parse_args()


def attacker_arguments(kind: FloodKind, testbed: Testbed) -> list[str]:
    """Return the attacker's command line: the worker's certificate, or the switch's operator's."""
    arguments = [kind.caller, "--rate", str(kind.rate)]
    if not kind.server:
        return arguments
    if kind.server == "worker":
        return [*arguments, "--address", PEER]
    worker = testbed.endpoint(0)
    address, method, server = worker.controller_address, JOIN_METHOD, role_name(Role.CONTROLLER)
    credentials = worker.credentials
    if kind.server == "switch":
        address, method = testbed.switch_address, WRITE
        server = role_name(Role.SWITCH, testbed.switch.name)
        credentials = testbed.switch_operator.folder
    return [
        *arguments,
        *("--address", address, "--method", method, "--server", server),
        *("--credentials", str(credentials), "--token", kind.token or worker.token),
    ]


def run_workers(options: argparse.Namespace) -> tuple[list[dict[str, Any]], dict[str, int]]:
    """Run the workers; return the output of each, and by how many bytes each server grew."""
    topology = single_switch(options.workers, rate_bits_per_s=parse_rate(options.rate))
    with Testbed(topology) as testbed:
        floods = {kind.name: attacker_arguments(kind, testbed) for kind in FLOODS}
        pids = {record.name: record.pid for record in read_records(testbed.run_directory)}
        servers = {name: pids[name] for name in ("controller", testbed.switch.name)}
        memory = {name: ProcessMemory(pid) for name, pid in servers.items()}
        command = [
            *(sys.executable, str(WORKER), "--floods", json.dumps(floods)),
            *("--bytes", str(options.bytes), "--timeout", str(options.timeout)),
            *("--turns", str(options.turns), "--sums", str(options.sums)),
            *("--pids", *map(str, servers.values())),
        ]
        found = testbed.run_workers(command, job="sums", timeout_s=1800)
        return outputs(found), {name: each.growth() for name, each in memory.items()}


def describe(workers: list[dict[str, Any]]) -> dict[str, dict[str, float]]:
    """Return milliseconds over all workers' sums, and cores that were used, by kind."""
    found: dict[str, dict[str, float]] = {}
    for name in workers[0]["times_s"]:
        times_s = np.concatenate([worker["times_s"][name] for worker in workers])
        p50_ms, p99_ms = 1e3 * np.percentile(times_s, [50, 99])
        row = {"p50_ms": float(p50_ms), "p99_ms": float(p99_ms), "sums": len(times_s)}
        attacks = workers[0]["attacks"].get(name, [])
        seconds = sum(each["seconds"] for each in attacks)
        if seconds:
            row["callers_per_s"] = sum(each["callers"] for each in attacks) / seconds
            row["attacker"] = sum(each["cpu_s"] for each in attacks) / seconds
            used = np.sum([each["servers_s"] for each in attacks], axis=0) / seconds
            row["controller"], row["switch"] = map(float, used)
        row["ratio"] = row["p99_ms"] / found.get(CALM, row)["p99_ms"]
        found[name] = row
    return found


def print_table(found: dict[str, dict[str, float]]) -> None:
    """Print a row per kind; processor times are in percent of one core."""
    print(
        f"{'flood':<32} {'callers/s':>9} {'p50 ms':>7} {'p99 ms':>7} {'ratio':>6}"
        f" {'attacker':>8} {'controller':>10} {'switch':>6}"
    )
    for name, row in found.items():
        cells = [f"{row['p50_ms']:7.2f} {row['p99_ms']:7.2f} {row['ratio']:6.2f}"]
        if "attacker" in row:
            used = (f"{100 * row[part]:.0f} %" for part in ("attacker", "controller", "switch"))
            cells.append("{:>8} {:>10} {:>6}".format(*used))
        print(f"{name:<32} {row.get('callers_per_s', 0.0):9.1f} {' '.join(cells)}")


def main() -> None:
    options = parse_options()
    check_machine(has_torch=False)
    machine = describe_machine(has_torch=False)
    try:
        workers, growth = run_workers(options)
    except TestbedError as exc:
        raise SystemExit(f"benchmark stopped: {exc}") from exc
    found = describe(workers)
    worst = max(found, key=lambda name: found[name]["ratio"])
    print(machine_line(machine))
    print(
        f"{options.bytes} bytes of int32, {options.workers} workers, links of {options.rate}bit/s,"
        f" {found[worst]['sums']} sums under each flood; ratio: p99 over that in calm;"
        f" bound {BOUND:g}"
    )
    print_table(found)
    for name, num_bytes in growth.items():
        print(f"{name} grew by at most {num_bytes / 1e6:.0f} MB")
    verdict = "below" if found[worst]["ratio"] < BOUND else "ABOVE"
    print(f"worst: {worst}, {found[worst]['ratio']:.2f} times, {verdict} the bound")
    content = {"machine": machine, "parameters": parameters_of(options), "floods": found}
    write_json(options.out / "floods.json", {**content, "growth_bytes": growth})
    print(f"wrote {options.out / 'floods.json'}")


if __name__ == "__main__":
    main()
