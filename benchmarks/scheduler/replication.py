# SPDX-FileCopyrightText: 2026 The Switchfold Authors
# SPDX-License-Identifier: Apache-2.0
"""What a replica costs: bytes that the server sends, and times until updates are committed.

Four workers, a server, a replica and their links are in network namespaces; a controller plans the
transfers. In each round, all workers push an update of the same size at once, in turn with: no
replica; a replica to which the workers send, with an infinite Div_max and with one of 0; and chain
replication, in which the server forwards each update, and an update counts as committed when the
replica has it. After each round, server and replica must have the exact sum. With --distances, the
true distance of both models is compared with its bound after each commit instead.
Run as root: python benchmarks/scheduler/replication.py
"""

from __future__ import annotations

import argparse
import contextlib
import dataclasses
import json
import statistics
import sys
import tempfile
import threading
import time
from collections.abc import Callable
from concurrent.futures import Future
from pathlib import Path
from typing import Any, Final

import numpy as np
from numpy.typing import NDArray

ROOT = Path(__file__).resolve().parents[2]
sys.path[:0] = [str(ROOT), str(ROOT / "tests" / "support")]

from benchmarks.scheduler.replica_distances import (  # noqa: E402
    distances,
    draw_distances,
    greatest,
    greatest_ratio,
)
from benchmarks.support.machine import (  # noqa: E402
    check_machine,
    describe_machine,
    machine_line,
    parse_rate,
)
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
from time_bound import wait_until  # noqa: E402

WAIT_S: Final = 300.0
NUM_WORKERS: Final = 4
SERVER, REPLICA = NUM_WORKERS, NUM_WORKERS + 1
SHARE: Final = 0.9
"""Of a link's rate, for payload."""
MODES: Final = ("none", "workers", "workers, Div_max 0", "chain")


class ReplicationRig:
    """A server in one mode, its replica, and workers on hosts around a bridge."""

    def __init__(
        self, stack: contextlib.ExitStack, fabric: Fabric, controller: str, mode: str, size: int
    ) -> None:
        self.mode, self._fabric = mode, fabric
        self._definition = TensorDefinition(name="w", num_values=size // 4)
        self._div_max = 0.0 if mode.endswith(" 0") else None
        self._job = f"replication {MODES.index(mode)}"
        self._controller = controller
        self.updates = [
            np.random.default_rng(n).integers(-9, 10, size // 4).astype(np.float32)
            for n in range(NUM_WORKERS)
        ]
        self.num_rounds = 0
        self._note: Callable[[Future[Any]], None] = lambda _: None
        """Learns when an update counts as committed."""
        self.server = stack.enter_context(fabric.at(SERVER, lambda: self._serve(SERVER)))
        self.replica: ParameterServer | None = None
        if mode != "none":
            self.replica = stack.enter_context(fabric.at(REPLICA, lambda: self._serve(REPLICA)))
        self.workers = [
            stack.enter_context(fabric.at(n, lambda n=n: self._join(stack, n)))
            for n in range(NUM_WORKERS)
        ]
        if mode == "chain":
            self._chain = fabric.at(SERVER, lambda: self._tensor(stack, self.replica, SERVER))
            self.server.updates.on_update = self._forward

    def _options(self, position: int) -> TransferOptions:
        return TransferOptions(
            controller=self._controller,
            job=self._job,
            host=f"h{position + 1}",
            grant_wait_s=WAIT_S,
            div_max=self._div_max,
        )

    def _serve(self, position: int) -> ParameterServer:
        is_end_of_chain = position == REPLICA and self.mode == "chain"
        options = ServerOptions(
            num_workers=NUM_WORKERS + 1,
            transfers=None if is_end_of_chain else self._options(position),
            is_replica=position == REPLICA and not is_end_of_chain,
        )
        return ParameterServer(options, address=self._fabric.addresses[position], insecure=True)

    def _tensor(
        self, stack: contextlib.ExitStack, server: ParameterServer | None, position: int
    ) -> DenseTensor:
        assert server is not None
        chosen = ClientOptions(
            worker_id=position,
            source=self._fabric.addresses[position],
            use_hot_rows=HotRowUse.NEVER,
            insecure=True,
        )
        client = stack.enter_context(TableClient([(server.address, server.port)], chosen))
        return DenseTensor(client, self._definition)

    def _join(self, stack: contextlib.ExitStack, number: int) -> FabricWorker:
        return FabricWorker(self._tensor(stack, self.server, number), self._options(number))

    def _forward(self, update: CommittedUpdate) -> None:
        """Send an update on to the end of the chain."""
        self._chain.push(self.updates[update.worker_id]).add_done_callback(self._note)

    def push_all(self) -> tuple[list[float], int]:
        """Push at all workers; return the times of the commits, and what the server has sent."""
        before = self._fabric.carried()[SERVER][0]
        times: list[float] = []
        done = threading.Semaphore(0)
        started_s = time.monotonic()

        def note(_: Future[Any]) -> None:
            times.append(time.monotonic() - started_s)
            done.release()

        self._note = note
        for worker, update in zip(self.workers, self.updates, strict=True):
            future = worker.push(update)
            if self.mode != "chain":
                future.add_done_callback(note)
        for _ in self.workers:
            if not done.acquire(timeout=WAIT_S):
                raise SystemExit("an update was not committed")
        self.num_rounds += 1
        self._await_replica()
        sent = self._fabric.carried()[SERVER][0] - before
        self._verify()
        return sorted(times), sent

    def _await_replica(self) -> None:
        """Wait until the replica has all updates."""
        if self.replica is not None and self.mode != "chain":
            state, wanted = self.replica.tables.state, NUM_WORKERS * self.num_rounds
            wait_until(lambda: state.num_commits == wanted, "the replica is behind", WAIT_S)

    def _verify(self) -> None:
        total = self.num_rounds * sum(self.updates, np.zeros_like(self.updates[0]))
        models = [model_of(self.server, self._definition)]
        if self.replica is not None:
            models.append(model_of(self.replica, self._definition))
        if not all((model == total).all() for model in models):
            raise SystemExit(f"{self.mode}: a model is wrong")
        for worker in self.workers:
            worker.get().result(WAIT_S)


def model_of(server: ParameterServer, definition: TensorDefinition) -> NDArray[np.float32]:
    """Return the model of a server that rests."""
    table = server.tables.state.tables[definition.table().number]
    keys = np.arange(definition.num_blocks, dtype=np.int64)
    return table.rows.pull(keys).values.reshape(-1)[: definition.num_values]


def measure(rate: int, replica_rate: int, size: int, rounds: int) -> dict[str, Any]:
    """Return commit times and sent bytes of all modes, by round."""
    topology = single_switch(NUM_WORKERS + 2, rate_bits_per_s=rate)
    links = list(topology.links)
    links[REPLICA] = dataclasses.replace(links[REPLICA], rate_bits_per_s=replica_rate)
    topology = dataclasses.replace(topology, links=tuple(links))
    rates = [rate / 1e6] * (NUM_WORKERS + 1) + [replica_rate / 1e6]
    with (
        tempfile.TemporaryDirectory() as folder,
        Testbed(topology, has_bridge=True) as testbed,
        contextlib.ExitStack() as stack,
    ):
        options = {"payload_share": SHARE, "grant_wait_s": WAIT_S, "server_wait_s": WAIT_S}
        listen = f"unix:{folder}/controller.sock"
        controller = ControllerThread(Path(folder), rates, options, listen=listen)
        stack.callback(controller.close)
        fabric = Fabric(testbed)
        rigs = [ReplicationRig(stack, fabric, controller.address, mode, size) for mode in MODES]
        found: dict[str, Any] = {mode: {"commits_s": [], "sent_bytes": []} for mode in MODES}
        for number in range(rounds + 1):
            for rig in rigs:
                times, sent = rig.push_all()
                if number:  # the first one is a warm-up
                    found[rig.mode]["commits_s"].append(times)
                    found[rig.mode]["sent_bytes"].append(sent)
        return found


def spread(values: list[float], digits: int = 2) -> str:
    """Return median (least .. most)."""
    parts = statistics.median(values), min(values), max(values)
    return "{:.{d}f} ({:.{d}f} .. {:.{d}f})".format(*parts, d=digits)


def main() -> int:
    """Measure and print."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--rate", type=parse_rate, default=100_000_000, help="of links (100M)")
    parser.add_argument("--replica-rate", type=parse_rate, help="of the replica's link (--rate)")
    parser.add_argument("--megabytes", type=float, default=1.25, help="size of an update (1.25)")
    parser.add_argument("--rounds", type=int, default=7, help="after a warm-up (7)")
    parser.add_argument("--distances", type=int, metavar="PUSHES", help="compare distances instead")
    parser.add_argument("--json", type=Path, help="file that also gets the figures")
    parser.add_argument("--plot", type=Path, help="file that gets a chart of --distances (PNG)")
    options = parser.parse_args()
    if options.plot and not options.distances:
        parser.error("--plot draws --distances")
    check_machine(has_torch=False)
    print(machine_line(describe_machine(has_torch=False)))
    if options.distances:
        found: dict[str, Any] = {}
        print("momentum  Div_max  greatest bound  greatest true distance  true/bound")
        for momentum in (0.0, 0.9):
            one = found[str(momentum)] = distances(momentum, options.distances)
            print(
                f"{momentum:8}  {one['div_max']:7.1f}  {greatest(one, 'bound'):14.1f}"
                f"  {greatest(one, 'true'):22.1f}  {greatest_ratio(one):10.2f}"
            )
        if options.plot:
            draw_distances(found, options.plot)
    else:
        size = round(options.megabytes * 1e6) // 4 * 4
        replica_rate = options.replica_rate or options.rate
        found = measure(options.rate, replica_rate, size, options.rounds)
        print(
            f"{NUM_WORKERS} updates of {size / 1e6:g} MB, links of {options.rate / 1e6:g} Mbit/s,"
            f" the replica's of {replica_rate / 1e6:g}; {options.rounds} rounds, models exact"
        )
        print("replication         mean commit [s]       last commit [s]       server sends [MB]")
        for mode in MODES:
            means = [statistics.mean(times) for times in found[mode]["commits_s"]]
            lasts = [times[-1] for times in found[mode]["commits_s"]]
            sent = [each / 1e6 for each in found[mode]["sent_bytes"]]
            print(f"{mode:18}  {spread(means):20}  {spread(lasts):20}  {spread(sent)}")
    if options.json:
        options.json.write_text(json.dumps(found, indent=2) + "\n", "utf-8")
    return 0


if __name__ == "__main__":
    sys.exit(main())
