# SPDX-FileCopyrightText: 2026 The Switchfold Authors
# SPDX-License-Identifier: Apache-2.0
"""Delay of a request against the number of clients: by TCP from a server, and by the switch.

The clients take turns with both, and with empty requests, in one run. Every answer is compared with
the values that were pushed. Peers of a server and entries of the switch are counted, not computed.
"""

from __future__ import annotations

import argparse
import sys
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final

import numpy as np

ROOT = Path(__file__).resolve().parents[2]
sys.path[:0] = [str(ROOT)]

from benchmarks.hot_rows.client_rig import ClientRig, plan_of  # noqa: E402
from benchmarks.hot_rows.connections_worker import KINDS, OPERATIONS, PATHS  # noqa: E402
from benchmarks.support.machine import check_machine, describe_machine, machine_line  # noqa: E402
from benchmarks.support.results import parameters_of, write_json  # noqa: E402

MODULE: Final = "benchmarks.hot_rows.connections_worker"
MOST_CLIENTS: Final = 30
"""A testbed's switch joins 32 hosts, of which two have servers."""
PER_MEMBER: Final = ("worker", "worker_address")
"""Tables of the switch that have an entry for each worker and each server."""


@dataclass(frozen=True, kw_only=True)
class KindFigures:
    """What was measured with one number of clients and one kind of requests."""

    clients: int
    kind: str
    mean_us: float
    p50_us: float
    p99_us: float
    requests_per_s: float
    server_us: float
    """Processor time of all servers for each request."""
    switch_us: float

    @classmethod
    def of(cls, clients: int, kind: str, rate: int, workers: Sequence[Any]) -> KindFigures:
        """Return the medians over the repeats, of what the workers have recorded.

        `rate`: requests/s of all clients; 0: each sends the next one at once.
        """
        wanted = clients, kind, rate
        own = [
            [
                each
                for each in worker["phases"]
                if (each["clients"], each.get("kind"), each.get("rate")) == wanted
            ]
            for worker in workers
        ]
        rows: list[list[float]] = []
        for repeat in zip(*own, strict=True):
            times_us = np.concatenate([each["times_us"] for each in repeat])
            active = [each for each in repeat if each["times_us"]]
            taken_s = max(each["ended_s"] for each in active) - min(
                each["begun_s"] for each in active
            )
            servers_s, switch_s = repeat[0]["processor_s"]
            each_us = 1e6 / times_us.size
            rows.append(
                [
                    times_us.mean(),
                    *np.percentile(times_us, (50, 99)),
                    times_us.size / taken_s,
                    servers_s * each_us,
                    switch_s * each_us,
                ]
            )
        mean_us, p50_us, p99_us, rate, server_us, switch_us = map(float, np.median(rows, axis=0))
        return cls(
            clients=clients,
            kind=kind,
            mean_us=mean_us,
            p50_us=p50_us,
            p99_us=p99_us,
            requests_per_s=rate,
            server_us=server_us,
            switch_us=switch_us,
        )


def model_us(figures: Sequence[KindFigures], clients: int, rate: int) -> float:
    """Return the mean delay that is expected of a kind of requests.

    At a fixed rate, the shortest one: connections cost nothing. Otherwise, each client has one
    request open. So the delay is the shortest one, as long as nothing is busy, and otherwise the
    clients over the highest rate that was measured.
    """
    alone_us = min(one.mean_us for one in figures)
    if rate:
        return alone_us
    return max(alone_us, 1e6 * clients / max(one.requests_per_s for one in figures))


def slope_us(figures: Sequence[KindFigures]) -> float:
    """Return by how much the mean delay grows with each client, by least squares."""
    clients = [one.clients for one in figures]
    if len(clients) < 2:
        return 0.0
    return float(np.polyfit(clients, [one.mean_us for one in figures], 1)[0])


def peers_of(workers: Sequence[Any], clients: int, path: str, operation: str) -> dict[str, int]:
    """Return who sent something to server 0 during pushes or pulls of hot keys on a path.

    The result has the numbers of TCP and UDP peers, and of their packets.
    """
    (found,) = (
        each["peers"]
        for each in workers[0]["phases"]
        if (each["clients"], each.get("path"), each.get("operation")) == (clients, path, operation)
    )
    by_tcp = [count for protocol, _, _, count in found if protocol == "tcp"]
    by_udp = [count for protocol, _, _, count in found if protocol == "udp"]
    return {
        "TCP peers": len(by_tcp),
        "TCP segments": sum(by_tcp),
        "UDP peers": len(by_udp),
        "datagrams": sum(by_udp),
    }


HEADER: Final = (
    f"{'clients':>7} {'requests':22} {'p50 us':>8} {'p99 us':>8} {'mean us':>8} {'model us':>9}"
    f" {'mean/model':>10}"
    f" {'requests/s':>10} {'server us':>9} {'switch us':>9}"
)


def line_of(one: KindFigures, model: float) -> str:
    return (
        f"{one.clients:7} {one.kind:22} {one.p50_us:8.0f} {one.p99_us:8.0f} {one.mean_us:8.0f}"
        f" {model:9.0f} {one.mean_us / model:10.2f} {one.requests_per_s:10.0f} {one.server_us:9.1f}"
        f" {one.switch_us:9.1f}"
    )


def report(
    workers: Sequence[Any], clients: Sequence[int], rate: int, num_servers: int
) -> dict[str, Any]:
    """Print all tables; return them."""
    figures: dict[str, Any] = {}
    for told, own_rate in (("each sends the next at once", 0), (f"{rate} requests/s of all", rate)):
        found = {
            kind: [KindFigures.of(n, kind, own_rate, workers) for n in clients] for kind in KINDS
        }
        print(f"\n{told}\n{HEADER}")
        for place, number in enumerate(clients):
            for kind in KINDS:
                model = model_us(found[kind], number, own_rate)
                print(line_of(found[kind][place], model))
        slopes = {kind: slope_us(own) for kind, own in found.items()}
        for by_tcp, by_switch in (KINDS[:2], KINDS[2:]):
            ratio = slopes[by_switch] / slopes[by_tcp] if slopes[by_tcp] else float("nan")
            print(
                f"{slopes[by_tcp]:.1f} us more for each client, {by_tcp};"
                f" {slopes[by_switch]:.1f} us, {by_switch}: {ratio:.2f} times as much"
            )
        own = {kind: [vars(one) for one in each] for kind, each in found.items()}
        figures[told] = {"slopes": slopes, "kinds": own}
    peers = [
        {"path": path, "operation": operation, "clients": n} | peers_of(workers, n, path, operation)
        for path in PATHS
        for operation in OPERATIONS
        for n in clients
    ]
    print("\nwho sent something to server 0 during 10 pushes or pulls of hot keys by each client")
    for one in peers:
        print(
            f"  {one['clients']:2} clients, {one['operation']} by {one['path']:6}:"
            f" {one['TCP peers']:2} by TCP ({one['TCP segments']} segments),"
            f" {one['UDP peers']} by UDP ({one['datagrams']} datagrams)"
        )
    tables = workers[0]["tables"]
    members = len(workers) + num_servers
    for name in PER_MEMBER:
        print(
            f"entries of table {name}: {tables.get(name, 0)}; workers + servers: {members},"
            f" workers x servers: {len(workers) * num_servers}"
        )
    print("table worker_address has one more: the mark of generations")
    return {"figures": figures, "peers": peers, "tables": tables}


def parse(arguments: Sequence[str] | None = None) -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--clients", type=int, nargs="+", default=[1, 2, 4, 8, 16, 30])
    parser.add_argument(
        "--requests", type=int, default=900, help="of all clients, of each kind and repeat"
    )
    parser.add_argument(
        "--rate", type=int, default=600, help="requests/s of all clients, in every second turn"
    )
    parser.add_argument("--repeats", type=int, default=3)
    parser.add_argument("--json", type=Path, help="file for the figures")
    options = parser.parse_args(arguments)
    if not 1 <= min(options.clients) <= max(options.clients) <= MOST_CLIENTS:
        parser.error(f"--clients: give numbers from 1 to {MOST_CLIENTS}")
    return options


def main() -> None:
    options = parse()
    check_machine(has_torch=False)
    machine = describe_machine(has_torch=False)
    print(machine_line(machine))
    plan = plan_of(max(options.clients), hot_keys=256, hot_rows=64, refresh_s=1.0, flush_s=0.1)
    print(
        f"{plan.num_workers} workers, {plan.num_servers} servers, {options.requests} requests of"
        f" each kind, medians of {options.repeats} turns, all values verified"
    )
    workers = ClientRig(plan).run(MODULE, vars(options) | {"json": None})
    found = report(workers, options.clients, options.rate, plan.num_servers)
    if options.json:
        write_json(
            options.json, {"machine": machine, "parameters": parameters_of(options), **found}
        )


if __name__ == "__main__":
    main()
