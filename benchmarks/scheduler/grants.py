# SPDX-FileCopyrightText: 2026 The Switchfold Authors
# SPDX-License-Identifier: Apache-2.0
"""Scheduled updates beside unscheduled pushes: rates at the workers, and times until they commit.

Four workers, a server and their links are in network namespaces. In each round, all workers push at
once, the first one the smallest update and the last one the largest; scheduled and unscheduled
rounds take turns. The transfer scheduler plans, shortest first, on links with a share of the real
rate, since grants are of payload alone. After each round, the models must be the exact sums.
Run as root: python benchmarks/scheduler/grants.py
"""

from __future__ import annotations

import argparse
import contextlib
import json
import statistics
import sys
import tempfile
import threading
import time
from collections.abc import Callable
from concurrent.futures import Future
from pathlib import Path
from typing import Any

import numpy as np

ROOT = Path(__file__).resolve().parents[2]
sys.path[:0] = [str(ROOT), str(ROOT / "tests" / "support")]

from benchmarks.scheduler.planned_transfers import PlannedTransfers  # noqa: E402
from benchmarks.support.machine import (  # noqa: E402
    check_machine,
    describe_machine,
    machine_line,
    parse_rate,
)
from fake_transfers import worker  # noqa: E402
from scheme_fabric import Fabric  # noqa: E402
from switchfold.bmv2_topos import Testbed, single_switch  # noqa: E402
from switchfold.hostlib.parameter_server import (  # noqa: E402
    ClientOptions,
    HotRowUse,
    ParameterServer,
    ServerOptions,
)
from switchfold.hostlib.parameter_server.tables import (  # noqa: E402
    DenseTensor,
    TableClient,
    TensorDefinition,
)
from switchfold.hostlib.parameter_server.transfers import (  # noqa: E402
    FabricWorker,
    TransferOptions,
)

WAIT_S = 300.0
SIZES = (1.25e6, 2.5e6, 5e6, 10e6)
"""Bytes of the four workers' updates."""
SHARE = 0.9
"""Of a link's rate, for payload. A frame of 1,514 bytes has 1,448 of it; the rest lets a sender
catch up."""


class PushRig:
    """Server and workers on hosts around a bridge."""

    def __init__(self, stack: contextlib.ExitStack, fabric: Fabric, planned: PlannedTransfers):
        self.planned = planned

        def options(host: str) -> TransferOptions:
            return TransferOptions(
                controller=planned.fake.address, job="grants", host=host, grant_wait_s=WAIT_S
            )

        def serve() -> ParameterServer:
            return ParameterServer(
                ServerOptions(num_workers=len(SIZES), transfers=options("server")),
                address=fabric.addresses[-1],
                insecure=True,
            )

        self.server = stack.enter_context(fabric.at(len(SIZES), serve))

        def join(number: int) -> FabricWorker:
            chosen = ClientOptions(
                worker_id=number,
                source=fabric.addresses[number],
                use_hot_rows=HotRowUse.NEVER,
                insecure=True,
            )
            client = stack.enter_context(
                TableClient([(self.server.address, self.server.port)], chosen)
            )
            definition = TensorDefinition(name=f"w{number}", num_values=int(SIZES[number]) // 4)
            return FabricWorker(DenseTensor(client, definition), options(f"w{number}"))

        self.workers = [
            stack.enter_context(fabric.at(n, lambda n=n: join(n))) for n in range(len(SIZES))
        ]
        self.updates = [
            np.random.default_rng(n).integers(-9, 10, int(size) // 4).astype(np.float32)
            for n, size in enumerate(SIZES)
        ]
        self.num_rounds = 0

    def push(self, calls: list[Callable[[], Future[Any]]]) -> list[float]:
        """Push at all workers at once; return when each update was committed, in seconds."""
        committed_s = [0.0] * len(calls)
        done = threading.Semaphore(0)
        started_s = time.monotonic()
        futures: list[Future[Any]] = []
        for number, call in enumerate(calls):
            future = call()
            futures.append(future)

            def note(_: Future[Any], number: int = number) -> None:
                committed_s[number] = time.monotonic() - started_s
                done.release()

            future.add_done_callback(note)
        for _ in calls:
            if not done.acquire(timeout=WAIT_S):
                raise SystemExit("an update was not committed")
        for future in futures:
            future.result()
        self.num_rounds += 1
        self.verify()
        return committed_s

    def verify(self) -> None:
        """Read all models, which are exact sums of whole numbers."""
        for fabric, update in zip(self.workers, self.updates, strict=True):
            if not (fabric.get().result(WAIT_S) == self.num_rounds * update).all():
                raise SystemExit("a model is wrong")

    def scheduled(self) -> tuple[list[float], list[float]]:
        """Return commit times, and each worker's achieved rate as a share of the granted one."""
        before = [len(self.planned.fake.said(worker(n), "rate_observed")) for n in range(4)]
        times = self.push(
            [
                lambda f=fabric, u=update: f.push(u)
                for fabric, update in zip(self.workers, self.updates, strict=True)
            ]
        )
        shares: list[float] = []
        for number, count in enumerate(before):
            told = self.planned.fake.wait_for(worker(number), "rate_observed", count + 1)[-1]
            shares.append(self.planned.granted_s[number, told.transfer_id] / told.seconds)
        return times, shares

    def unscheduled(self) -> list[float]:
        """Return commit times of ordinary pushes."""
        return self.push(
            [
                lambda f=fabric, u=update: f._tensor.push(u)
                for fabric, update in zip(self.workers, self.updates, strict=True)
            ]
        )


def measure(rate_bits_per_s: int, rounds: int) -> dict[str, Any]:
    """Return commit times of both kinds, and shares of the granted rates, by round and worker."""
    topology = single_switch(len(SIZES) + 1, rate_bits_per_s=rate_bits_per_s)
    with (
        tempfile.TemporaryDirectory() as folder,
        Testbed(topology, has_bridge=True) as testbed,
        contextlib.ExitStack() as stack,
    ):
        address = f"unix:{folder}/scheduler"
        planned = PlannedTransfers(address, len(SIZES), round(SHARE * rate_bits_per_s))
        stack.callback(planned.close)
        rig = PushRig(stack, Fabric(testbed), planned)
        found: dict[str, Any] = {"scheduled_s": [], "unscheduled_s": [], "shares": []}
        for number in range(rounds + 1):
            times, shares = rig.scheduled()
            plain = rig.unscheduled()
            if number:  # the first one is a warm-up
                found["scheduled_s"].append(times)
                found["shares"].append(shares)
                found["unscheduled_s"].append(plain)
        counters = rig.server.updates.counters
        if counters["granted_updates"] != (rounds + 1) * len(SIZES):
            raise SystemExit(f"some updates did not travel by their grants: {dict(counters)}")
        return found


def spread(values: list[float], digits: int = 2) -> str:
    """Return median (least .. most)."""
    parts = statistics.median(values), min(values), max(values)
    return "{:.{d}f} ({:.{d}f} .. {:.{d}f})".format(*parts, d=digits)


def main() -> int:
    """Measure and print."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--rate", type=parse_rate, default=100_000_000, help="of links (100M)")
    parser.add_argument("--rounds", type=int, default=7, help="after a warm-up (7)")
    parser.add_argument("--json", type=Path, help="file that also gets the figures")
    options = parser.parse_args()
    check_machine(has_torch=False)
    print(machine_line(describe_machine(has_torch=False)))
    found = measure(options.rate, options.rounds)
    names = ", ".join(f"{size / 1e6:g}" for size in SIZES)
    print(f"updates of {names} MB, links of {options.rate / 1e6:g} Mbit/s; {options.rounds} rounds")
    print("every model is the exact sum; median (least .. most)")
    print("worker  achieved / granted rate  commit, scheduled [s]  commit, unscheduled [s]")
    for number in range(len(SIZES)):
        columns = [
            spread([row[number] for row in found[kind]])
            for kind in ("shares", "scheduled_s", "unscheduled_s")
        ]
        print(f"{number:6}  {columns[0]:23}  {columns[1]:21}  {columns[2]}")
    means = {
        kind: [statistics.mean(row) for row in found[kind]]
        for kind in ("scheduled_s", "unscheduled_s")
    }
    pairs = zip(means["scheduled_s"], means["unscheduled_s"], strict=True)
    ratios = [one / other for one, other in pairs]
    print(f"mean commit: scheduled {spread(means['scheduled_s'])} s,", end=" ")
    print(f"unscheduled {spread(means['unscheduled_s'])} s, ratio {spread(ratios)}")
    shares = [share for row in found["shares"] for share in row]
    within = sum(0.9 <= share <= 1.1 for share in shares)
    print(f"achieved rate within 10 % of the granted one: {within} of {len(shares)} transfers")
    if options.json:
        options.json.write_text(json.dumps(found, indent=2) + "\n", "utf-8")
    return 0


if __name__ == "__main__":
    sys.exit(main())
