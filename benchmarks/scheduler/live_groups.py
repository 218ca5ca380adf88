# SPDX-FileCopyrightText: 2026 The Switchfold Authors
# SPDX-License-Identifier: Apache-2.0
"""Live groups beside direct updates: bytes into the server, and times until all are committed.

Workers, idle workers and a server are in network namespaces, on links of one rate; the controller's
own scheduler plans, on a share of that rate. In each round, all workers push an update of one size
at once. Rounds with aggregators and without take turns, in two jobs. After each round, the model
must be the exact sum, and its version the number of updates.
Run as root: python benchmarks/scheduler/live_groups.py
"""

from __future__ import annotations

import argparse
import asyncio
import contextlib
import json
import statistics
import sys
import tempfile
import threading
import time
from collections.abc import Generator
from concurrent.futures import Future, wait
from dataclasses import asdict, dataclass
from pathlib import Path

import numpy as np

ROOT = Path(__file__).resolve().parents[2]
sys.path[:0] = [str(ROOT), str(ROOT / "tests" / "support")]

from benchmarks.support.machine import (  # noqa: E402
    check_machine,
    describe_machine,
    machine_line,
    parse_rate,
)
from fake_station import transfer_controller  # noqa: E402
from scheme_fabric import Fabric  # noqa: E402
from switchfold.bmv2_topos import Testbed, single_switch  # noqa: E402
from switchfold.controller.server import ControllerServer  # noqa: E402
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
from time_bound import wait_until  # noqa: E402

WAIT_S = 300.0
SHARE = 0.9
"""Of a link's rate, for payload."""
KINDS = ("groups", "direct")


@dataclass(frozen=True, kw_only=True)
class PushRoundFigures:
    """What a round of pushes took."""

    last_s: float
    """Until the last commit."""
    mean_s: float
    planned_last_s: float
    """From the first decision to the last commit, by plan."""
    ingress_bytes: int
    """Of frames into the server's host."""
    num_messages: int
    """To the server: updates by themselves, and sums."""


class RunningController:
    """A controller in a thread of its own, at a Unix socket."""

    def __init__(self, folder: Path, address: str, num_hosts: int, rate: int) -> None:
        self._folder, self._address = folder, address
        self._rates = (rate // 1_000_000,) * num_hosts
        self._ready = threading.Event()
        self._loop = asyncio.new_event_loop()
        self._stop = asyncio.Event()
        self._thread = threading.Thread(target=lambda: self._loop.run_until_complete(self._run()))
        self._controller: ControllerServer | None = None

    async def _run(self) -> None:
        options = {"payload_share": SHARE, "grant_wait_s": 30.0, "server_wait_s": 60.0}
        made = transfer_controller(
            self._folder, self._rates, listen=self._address, transfers=options
        )
        async with made as self._controller:
            self._ready.set()
            await self._stop.wait()

    def plan(self, job: str, num_updates: int) -> tuple[float, int]:
        """Return the planned time and the messages of a job's last updates, which have ended."""

        async def look() -> tuple[float, int]:
            assert self._controller is not None
            ended = [*self._controller.transfers.job(job).flow.ended][-num_updates:]
            grants = [record.grant for record in ended if record.grant is not None]
            groups = {grant.group.group_id for grant in grants if grant.group}
            begun_s = min(record.decided_s for record in ended)
            last_s = max(grant.commit_s for grant in grants) - begun_s
            return last_s, len(groups) + sum(grant.group is None for grant in grants)

        return asyncio.run_coroutine_threadsafe(look(), self._loop).result(WAIT_S)

    def num_ended(self, job: str) -> int:
        """Return how many updates of a job have been committed."""

        async def look() -> int:
            assert self._controller is not None
            workers = self._controller.transfers.job(job).workers.values()
            return sum(place.counts.commits for place in workers)

        return asyncio.run_coroutine_threadsafe(look(), self._loop).result(WAIT_S)

    def __enter__(self) -> RunningController:
        self._thread.start()
        if not self._ready.wait(WAIT_S):
            raise SystemExit("the controller does not start")
        return self

    def __exit__(self, *_: object) -> None:
        self._loop.call_soon_threadsafe(self._stop.set)
        self._thread.join()
        self._loop.close()


class GroupRig:
    """One job: its server on the last host, workers that push, and idle ones behind these."""

    def __init__(  # noqa: PLR0913 - what jobs differ in
        self,
        stack: contextlib.ExitStack,
        testbed: Testbed,
        controller: tuple[RunningController, str],
        job: str,
        *,
        num_pushers: int,
        num_idle: int,
        num_values: int,
    ) -> None:
        self._controller, address = controller
        self._fabric, self._job, self.num_rounds = Fabric(testbed), job, 0
        self._num_workers = num_pushers + num_idle
        hosts = [host.name for host in testbed.topology.hosts]

        def options(number: int, *, aggregate: bool = False) -> TransferOptions:
            return TransferOptions(
                controller=address, job=job, host=hosts[number], aggregate=aggregate
            )

        def serve() -> ParameterServer:
            transfers = options(self._num_workers)
            chosen = ServerOptions(num_workers=self._num_workers, transfers=transfers)
            return ParameterServer(chosen, address=self._fabric.addresses[-1], insecure=True)

        self.server = stack.enter_context(self._fabric.at(self._num_workers, serve))

        def join(number: int) -> FabricWorker:
            chosen = ClientOptions(
                worker_id=number,
                source=self._fabric.addresses[number],
                use_hot_rows=HotRowUse.NEVER,
                insecure=True,
            )
            servers = [(self.server.address, self.server.port)]
            client = stack.enter_context(TableClient(servers, chosen))
            tensor = DenseTensor(client, TensorDefinition(name="w", num_values=num_values))
            is_idle = number >= num_pushers
            return FabricWorker(tensor, options(number, aggregate=is_idle and job == KINDS[0]))

        made = [
            stack.enter_context(self._fabric.at(n, lambda n=n: join(n)))
            for n in range(self._num_workers)
        ]
        self.workers = made[:num_pushers]
        rng = np.random.default_rng(1)
        self.updates = [
            rng.integers(-9, 10, num_values).astype(np.float32) for _ in range(num_pushers)
        ]

    def push(self) -> PushRoundFigures:
        """Push at all workers at once; verify the model."""
        before = self._fabric.carried()[-1][1]
        committed_s: list[float] = []
        started_s = time.monotonic()

        def note(_: Future[object]) -> None:
            committed_s.append(time.monotonic() - started_s)

        futures = [
            worker.push(update) for worker, update in zip(self.workers, self.updates, strict=True)
        ]
        for future in futures:
            future.add_done_callback(note)
        if wait(futures, WAIT_S).not_done:
            raise SystemExit("an update was not committed")
        ingress = self._fabric.carried()[-1][1] - before
        self.num_rounds += 1
        self._verify()
        planned_s, num_messages = self._controller.plan(self._job, len(futures))
        return PushRoundFigures(
            last_s=max(committed_s),
            mean_s=statistics.mean(committed_s),
            planned_last_s=planned_s,
            ingress_bytes=ingress,
            num_messages=num_messages,
        )

    def _verify(self) -> None:
        """Compare the model, which is an exact sum of whole numbers, and its version."""
        got = self.workers[0].get().result(WAIT_S)
        num_updates = self.num_rounds * len(self.workers)
        is_exact = (got == self.num_rounds * np.sum(self.updates, axis=0)).all()
        if not is_exact or self.workers[0].commits.tolist() != [num_updates]:
            raise SystemExit(f"the model of job {self._job} is wrong")
        counters = self.server.updates.counters
        if counters["granted_updates"] != num_updates:
            raise SystemExit(f"some updates did not travel by their grants: {dict(counters)}")
        wait_until(
            lambda: self._controller.num_ended(self._job) == num_updates, "reports of all commits"
        )


@contextlib.contextmanager
def rigs(rate: int, megabytes: float, num_pushers: int, num_idle: int) -> Generator[list[GroupRig]]:
    """Make both jobs."""
    topology = single_switch(num_pushers + num_idle + 1, rate_bits_per_s=rate)
    with (
        tempfile.TemporaryDirectory() as folder,
        Testbed(topology, has_bridge=True) as testbed,
        contextlib.ExitStack() as stack,
    ):
        address = f"unix:{folder}/controller.sock"
        controller = RunningController(Path(folder), address, len(topology.hosts), rate)
        stack.enter_context(controller)
        yield [
            GroupRig(
                stack,
                testbed,
                (controller, address),
                kind,
                num_pushers=num_pushers,
                num_idle=num_idle,
                num_values=int(1e6 * megabytes) // 4,
            )
            for kind in KINDS
        ]


def spread(values: list[float], digits: int = 2) -> str:
    """Return median (least .. most)."""
    parts = statistics.median(values), min(values), max(values)
    return "{:.{d}f} ({:.{d}f} .. {:.{d}f})".format(*parts, d=digits)


def show(found: dict[str, list[PushRoundFigures]], size_bytes: float, num_pushers: int) -> None:
    """Print the figures, their ratios, and how far they are from the plan."""
    print("every model is the exact sum; median (least .. most)")
    print("          into the server [MB]   messages         last commit [s]      by plan [s]")
    for kind in KINDS:
        rows = found[kind]
        columns = (
            spread([row.ingress_bytes / 1e6 for row in rows], 1),
            spread([row.num_messages for row in rows], 0),
            spread([row.last_s for row in rows]),
            spread([row.planned_last_s for row in rows]),
        )
        print(f"{kind:8}  {columns[0]:21}  {columns[1]:15}  {columns[2]:19}  {columns[3]}")
    pairs = list(zip(found[KINDS[0]], found[KINDS[1]], strict=True))
    for what in "ingress_bytes", "last_s", "mean_s":
        ratios = [getattr(one, what) / getattr(other, what) for one, other in pairs]
        print(f"{what}, groups / direct: {spread(ratios)}")
    planned = [row.num_messages / num_pushers for row in found[KINDS[0]]]
    over = [
        row.ingress_bytes / (size_bytes * row.num_messages) - 1
        for kind in KINDS
        for row in found[kind]
    ]
    print(f"messages for each update, by plan: {spread(planned)}")
    print(
        f"bytes above those of the planned messages: {spread([100 * each for each in over], 1)} %"
    )
    for kind in KINDS:
        late = [100 * (row.last_s / row.planned_last_s - 1) for row in found[kind]]
        print(f"{kind}: last commit later than planned by {spread(late, 1)} %")


def main() -> int:
    """Measure and print."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--rate", type=parse_rate, default=100_000_000, help="of links (100M)")
    parser.add_argument("--megabytes", type=float, default=2.5, help="of an update (2.5)")
    parser.add_argument("--workers", type=int, default=10, help="that push (10)")
    parser.add_argument("--idle", type=int, default=2, help="further workers, which gather (2)")
    parser.add_argument("--rounds", type=int, default=7, help="after a warm-up (7)")
    parser.add_argument("--json", type=Path, help="file that also gets the figures")
    options = parser.parse_args()
    check_machine(has_torch=False)
    print(machine_line(describe_machine(has_torch=False)))
    print(
        f"{options.workers} updates of {options.megabytes:g} MB, {options.idle} idle workers, links"
        f" of {options.rate / 1e6:g} Mbit/s; {options.rounds} rounds"
    )
    found: dict[str, list[PushRoundFigures]] = {kind: [] for kind in KINDS}
    with rigs(options.rate, options.megabytes, options.workers, options.idle) as made:
        for number in range(options.rounds + 1):
            for kind, rig in zip(KINDS, made, strict=True):
                figures = rig.push()
                if number:  # the first one is a warm-up
                    found[kind].append(figures)
    show(found, 1e6 * options.megabytes, options.workers)
    if options.json:
        rows = {kind: [asdict(row) for row in each] for kind, each in found.items()}
        options.json.write_text(json.dumps(rows, indent=2) + "\n", "utf-8")
    return 0


if __name__ == "__main__":
    sys.exit(main())
