# SPDX-FileCopyrightText: 2026 The Switchfold Authors
# SPDX-License-Identifier: Apache-2.0
"""Delays of updates with one slow worker, with a bound on them and without one, for minutes.

Workers, a server and their links are in network namespaces; a controller plans the transfers. Each
worker gets the model and pushes an update of it, again and again; one whose update is dropped goes
on with the model that the drop brings. At the end, the model must be the exact sum of what was
committed, and commits and drops must add up to pushes. The exit status is 1 if a delay exceeds the
bound.
Run as root: python benchmarks/scheduler/delay_bound.py
"""

from __future__ import annotations

import argparse
import contextlib
import dataclasses
import statistics
import sys
import tempfile
import time
from collections import Counter, defaultdict
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Final

import numpy as np

ROOT = Path(__file__).resolve().parents[2]
sys.path[:0] = [str(ROOT), str(ROOT / "tests" / "support")]

from benchmarks.support.machine import (  # noqa: E402
    check_machine,
    describe_machine,
    machine_line,
    parse_rate,
)
from benchmarks.support.results import parameters_of, write_json  # noqa: E402
from fabric_process import update_of  # noqa: E402
from replica_scene import ControllerThread  # noqa: E402
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
    CommittedUpdate,
    FabricWorker,
    TransferOptions,
)

WAIT_S: Final = 300.0
SHARE: Final = 0.9
"""Of a link's rate, for payload."""


@dataclasses.dataclass(frozen=True, kw_only=True)
class BoundFigures:
    """What became of the pushes of one run."""

    tau_max: int | None
    delays: dict[int, list[int]]
    """Of committed updates, by worker; the last worker is the slow one."""
    drops: dict[int, int]
    """By worker."""

    @property
    def all_delays(self) -> list[int]:
        """Of all workers."""
        return [delay for of_worker in self.delays.values() for delay in of_worker]

    def line(self, slow: int) -> str:
        """Return the row of a table."""
        every, own = self.all_delays, self.delays.get(slow, [])
        bound = "none" if self.tau_max is None else self.tau_max
        return (
            f"| {bound} | {len(every)} | {len(own)} | {statistics.mean(every):.2f} | {max(every)}"
            f" | {sum(self.drops.values())} | {self.drops.get(slow, 0)} |"
        )


HEAD: Final = (
    "| bound | commits | of the slow one | mean delay | greatest | drops | of the slow one |\n"
    "|---|---:|---:|---:|---:|---:|---:|"
)


class BoundRig:
    """A server, and workers of which the last one's link is slow."""

    def __init__(  # noqa: PLR0917 - what a run is made of
        self,
        stack: contextlib.ExitStack,
        fabric: Fabric,
        controller: str,
        num_workers: int,
        num_values: int,
        tau_max: int | None,
    ) -> None:
        self._fabric, self._num_workers, self._tau_max = fabric, num_workers, tau_max
        self._controller = controller
        self._definition = TensorDefinition(name="w", num_values=num_values)
        self._delays: defaultdict[int, list[int]] = defaultdict(list)
        self._server = stack.enter_context(fabric.at(num_workers, self._serve))
        self._server.updates.on_update = self._note
        self._workers = [
            stack.enter_context(fabric.at(n, lambda n=n: self._join(stack, n)))
            for n in range(num_workers)
        ]

    def _options(self, position: int) -> TransferOptions:
        return TransferOptions(
            controller=self._controller,
            job=f"bound {self._tau_max}",
            host=f"h{position + 1}",
            grant_wait_s=WAIT_S,
            tau_max=self._tau_max,
        )

    def _serve(self) -> ParameterServer:
        position = self._num_workers
        options = ServerOptions(num_workers=position, transfers=self._options(position))
        return ParameterServer(options, address=self._fabric.addresses[position], insecure=True)

    def _join(self, stack: contextlib.ExitStack, number: int) -> FabricWorker:
        chosen = ClientOptions(
            worker_id=number,
            source=self._fabric.addresses[number],
            timeout_s=WAIT_S,
            use_hot_rows=HotRowUse.NEVER,
            insecure=True,
        )
        servers = [(self._server.address, self._server.port)]
        client = stack.enter_context(TableClient(servers, chosen))
        return FabricWorker(DenseTensor(client, self._definition), self._options(number))

    def _note(self, update: CommittedUpdate) -> None:
        self._delays[update.worker_id].append(update.delay)

    def run(self, seconds: float) -> BoundFigures:
        """Train for so long, and verify. Raises SystemExit."""
        end_s = time.monotonic() + seconds
        drops: Counter[int] = Counter()
        pushes: Counter[int] = Counter()
        updates = [update_of(0, number, self._definition.num_values) for number in self._numbers]

        def work(number: int) -> None:
            worker = self._workers[number]
            has_model = False
            while time.monotonic() < end_s:
                if not has_model:
                    worker.get().result(WAIT_S)
                outcome = worker.push(updates[number]).result(WAIT_S)
                pushes[number] += 1
                drops[number] += not outcome.is_committed
                has_model = not outcome.is_committed

        with ThreadPoolExecutor(self._num_workers) as pool:
            list(pool.map(work, self._numbers))
        found = BoundFigures(tau_max=self._tau_max, delays=dict(self._delays), drops=dict(drops))
        total = np.zeros(self._definition.num_values, np.float32)
        for number, update in enumerate(updates):
            commits = len(self._delays.get(number, ()))
            if commits + drops[number] != pushes[number]:
                raise SystemExit(
                    f"worker {number}: {pushes[number]} pushes, {commits} commits and"
                    f" {drops[number]} drops"
                )
            total += commits * update
        if not np.array_equal(self._workers[0].get().result(WAIT_S), total):
            raise SystemExit("the model is not the sum of what was committed")
        return found

    @property
    def _numbers(self) -> range:
        return range(self._num_workers)


def measure(options: argparse.Namespace, tau_max: int | None) -> BoundFigures:
    """Train on a testbed of its own."""
    num_workers = options.workers
    topology = single_switch(num_workers + 1, rate_bits_per_s=options.rate)
    links = list(topology.links)
    slow = num_workers - 1
    links[slow] = dataclasses.replace(links[slow], rate_bits_per_s=options.slow_rate)
    topology = dataclasses.replace(topology, links=tuple(links))
    rates = [options.rate / 1e6] * (num_workers + 1)
    rates[slow] = options.slow_rate / 1e6
    with (
        tempfile.TemporaryDirectory() as folder,
        Testbed(topology, has_bridge=True) as testbed,
        contextlib.ExitStack() as stack,
    ):
        transfers = {"payload_share": SHARE, "grant_wait_s": WAIT_S, "server_wait_s": WAIT_S}
        listen = f"unix:{folder}/controller.sock"
        controller = ControllerThread(Path(folder), rates, transfers, listen=listen)
        stack.callback(controller.close)
        num_values = int(options.megabytes * 1e6) // 4
        rig = BoundRig(stack, Fabric(testbed), controller.address, num_workers, num_values, tau_max)
        return rig.run(options.seconds)


def main() -> int:
    """Measure and print."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--workers", type=int, default=8, help="(8)")
    parser.add_argument("--tau-max", type=int, default=16, help="the bound (16)")
    parser.add_argument("--rate", type=parse_rate, default=20_000_000, help="of links (20M)")
    parser.add_argument(
        "--slow-rate", type=parse_rate, default=1_000_000, help="of one worker's link (1M)"
    )
    parser.add_argument("--megabytes", type=float, default=1.0, help="of an update (1.0)")
    parser.add_argument("--seconds", type=float, default=600.0, help="of each run (600)")
    parser.add_argument("--json", type=Path, help="file that also gets the figures")
    options = parser.parse_args()
    check_machine(has_torch=False)
    machine = describe_machine(has_torch=False)
    print(machine_line(machine))
    print(
        f"{options.workers} workers, updates of {options.megabytes:g} MB, links of"
        f" {options.rate / 1e6:g} Mbit/s, one worker's of {options.slow_rate / 1e6:g};"
        f" {options.seconds:g} s each; every model is the exact sum\n\n{HEAD}",
        flush=True,
    )
    found: list[BoundFigures] = []
    for tau_max in (options.tau_max, None):
        found.append(measure(options, tau_max))
        print(found[-1].line(options.workers - 1), flush=True)
    if options.json:
        runs = [dataclasses.asdict(each) for each in found]
        write_json(
            options.json, {"machine": machine, "parameters": parameters_of(options), "runs": runs}
        )
    greatest = max(found[0].all_delays)
    print(f"\ngreatest delay {greatest}, bound {options.tau_max}")
    return int(greatest > options.tau_max)


if __name__ == "__main__":
    sys.exit(main())
