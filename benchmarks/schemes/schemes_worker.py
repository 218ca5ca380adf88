# SPDX-FileCopyrightText: 2026 The Switchfold Authors
# SPDX-License-Identifier: Apache-2.0
"""One worker of schemes.py: the same gradients by each contender in turn.

schemes.py starts it on every host of a testbed, in the environment of its endpoint, with the
information book of the coordinator. Every worker compares a part of the rows of each result with
the product of all factors in float64, and returns a checksum of the whole. Worker 0 also reads the
bytes that crossed each link. The last line of the output is JSON.
"""

from __future__ import annotations

import argparse
import dataclasses
import json
import os
import sys
import time
import zlib
from collections import Counter
from collections.abc import Callable
from contextlib import ExitStack
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

sys.path.insert(0, str(Path(__file__).resolve().parents[2]))

from benchmarks.support.processor import read_times
from switchfold.bmv2_topos import Testbed
from switchfold.hostlib import Session, SessionOptions
from switchfold.hostlib.config import join_from_environment
from switchfold.hostlib.factors import ExchangeOptions, FactorExchange, rebuild
from switchfold.hostlib.parameter_server import (
    ClientOptions,
    ParameterClient,
    ParameterServer,
    ServerOptions,
)
from switchfold.hostlib.schemes import InformationBook, Layer, Scheme

TOLERANCE = 2e-5
"""Error as a share of the sum's largest value: float32 sums of products have 24 bits."""
QUIET_S = 0.06
"""Links are quiet if they carried nothing for this time: delayed acknowledgements take 40 ms."""
QUIET_TIMEOUT_S = 3.0
MULTICAST = "sfb-copied"
"""Contender whose factors the switch multicasts; the other names are those of schemes."""
TCP_COUNTERS = ("RetransSegs", "TCPTimeouts", "TCPLossProbes", "TCPDSACKRecv", "PassiveOpens")
"""The last two count segments that came twice, and connections that were opened again."""

Floats = NDArray[np.float32]
RunIteration = Callable[[int], Floats]


@dataclasses.dataclass
class LayerTask:
    """The layer, and this worker's factors of every iteration."""

    layer: Layer
    worker_id: int
    num_workers: int
    batch: int
    iterations: int
    own: list[tuple[Floats, Floats]] = dataclasses.field(
        default_factory=list[tuple[Floats, Floats]]
    )
    """This worker's factors by iteration."""

    def factors(self, iteration: int, worker_id: int) -> tuple[Floats, Floats]:
        """Return u (K, M) and v (K, N) of a worker; every worker can compute them."""
        random = np.random.default_rng((iteration, worker_id))
        u = random.standard_normal((self.batch, self.layer.rows), np.float32)
        return u, random.standard_normal((self.batch, self.layer.columns), np.float32)

    def check(self, iteration: int, result: Floats) -> None:
        """Compare this worker's part of the rows with the sum in float64."""
        rows = self.layer.rows * np.arange(self.worker_id, self.worker_id + 2) // self.num_workers
        part = slice(int(rows[0]), int(rows[1]))
        pairs = [self.factors(iteration, worker) for worker in range(self.num_workers)]
        u = np.concatenate([pair[0][:, part] for pair in pairs]).astype(np.float64)
        v = np.concatenate([pair[1] for pair in pairs]).astype(np.float64)
        expected = u.T @ v
        if not expected.size:
            return
        np.testing.assert_allclose(result[part], expected, rtol=0, atol=TOLERANCE * expected.max())


def run_scheme(
    name: str, task: LayerTask, run: RunIteration, session: Session, options: argparse.Namespace
) -> dict[str, Any]:
    """Time a contender's iterations; return times, bytes and checksums of the results."""
    testbed = Testbed.attach(options.testbed) if task.worker_id == 0 else None
    for warm_up in range(options.warm_up):
        run(warm_up)
    session.barrier(f"{name}-warm")
    before = quiet_bytes(testbed) if testbed else {}
    session.barrier(f"{name}-go")
    packets = session.statistics
    streams = tcp_counters()
    processor = read_times([])
    began_s = time.monotonic()
    results: list[Floats] = []
    ends_s: list[float] = []
    for number in range(task.iterations):
        results.append(run(options.warm_up + number))
        ends_s.append(time.monotonic())
    busy_s = read_times([]).busy_s - processor.busy_s
    session.barrier(f"{name}-done", timeout_s=options.timeout)
    after = quiet_bytes(testbed) if testbed else {}
    session.barrier(f"{name}-read")
    for number, result in enumerate(results):
        task.check(options.warm_up + number, result)
    return {
        "began_s": began_s,
        "ends_s": ends_s,
        "busy_s": busy_s,
        "packets": {
            count: value - packets.get(count, 0)
            for count, value in session.statistics.items()
            if value != packets.get(count, 0)
        },
        "tcp": dict(tcp_counters() - streams),
        "carried": {
            link: [after[link][side] - before[link][side] for side in (0, 1)] for link in after
        },
        "checksums": [zlib.crc32(result.tobytes()) for result in results],
    }


def tcp_counters() -> Counter[str]:
    """Return the kernel's TCP counters in this host's namespace."""
    found = Counter[str]()
    for name in ("snmp", "netstat"):
        lines = Path(f"/proc/self/net/{name}").read_text().splitlines()
        for names, values in zip(lines[::2], lines[1::2], strict=True):
            if names.startswith("Tcp"):
                pairs = zip(names.split()[1:], values.split()[1:], strict=True)
                found.update({key: int(value) for key, value in pairs if key in TCP_COUNTERS})
    return found


def quiet_bytes(testbed: Testbed) -> dict[str, tuple[int, int]]:
    """Return (from, to) bytes of each host's link once the links are quiet."""
    deadline_s = time.monotonic() + QUIET_TIMEOUT_S
    last: dict[str, tuple[int, int]] = {}
    while True:
        now = {
            each.host: (each.from_host_bytes, each.to_host_bytes) for each in testbed.link_bytes()
        }
        if now == last or time.monotonic() > deadline_s:
            return now
        last = now
        time.sleep(QUIET_S)


def through_servers(
    book: InformationBook,
    task: LayerTask,
    gradients: list[Floats],
    stack: ExitStack,
    timeout_s: float,
) -> RunIteration:
    """Open this host's shard and a client of all shards."""
    own = book.servers[task.worker_id]
    options = ServerOptions(
        num_workers=task.num_workers,
        shard=task.worker_id,
        timeout_s=timeout_s,
        grace_s=timeout_s,  # a heartbeat may be late on a slow link
    )
    server = stack.enter_context(
        ParameterServer(options, address=own.address, port=own.port, insecure=True)
    )
    client = stack.enter_context(
        ParameterClient(
            book.servers,
            ClientOptions(
                worker_id=task.worker_id,
                source=own.address,
                pair_bytes=book.pair_bytes,
                timeout_s=timeout_s + 10,
                reconnect_s=timeout_s,
                insecure=True,
            ),
            local_server=server,
        )
    )
    # One small key on each shard opens the connections before the links are full.
    for shard in range(task.num_workers):
        client.push_pull(f"open {shard}", np.zeros(1, np.float32), 0).result()
    name = task.layer.name

    def run(iteration: int) -> Floats:
        return client.push_pull(name, gradients[iteration], iteration).result()

    return run


def by_factors(
    book: InformationBook,
    task: LayerTask,
    stack: ExitStack,
    timeout_s: float,
    multicast: Session | None = None,
) -> RunIteration:
    """Open the exchange with all other workers, by streams or by multicasts of the session."""
    options = ExchangeOptions(timeout_s=timeout_s, connect_s=timeout_s, insecure=True)
    exchange = stack.enter_context(
        FactorExchange(task.worker_id, book.workers, options, multicast=multicast)
    )
    one = np.zeros((1, 1), np.float32)
    exchange.exchange("open", one, one, 0).result()

    def run(iteration: int) -> Floats:
        u, v = task.own[iteration]
        return rebuild(exchange.exchange(task.layer.name, u, v, iteration).result())

    return run


def run_all(options: argparse.Namespace) -> dict[str, Any]:
    book = InformationBook.from_json(options.book.read_text())
    worker_id = int(os.environ["SWITCHFOLD_WORKER_ID"])
    layer = book.entries[0].layer
    task = LayerTask(
        layer, worker_id, book.cluster.num_workers, book.cluster.batch, options.iterations
    )
    # Not timed: a backward pass yields factors and gradients in any case.
    for iteration in range(options.warm_up + options.iterations):
        task.own.append(task.factors(iteration, worker_id))
    gradients = [u.T @ v for u, v in task.own]
    # On slow links frames queue for longer than the default first timeout.
    settings = SessionOptions(
        timeout_s=options.timeout, initial_rto_s=1.0, min_rto_s=0.5, join_timeout_s=120.0
    )
    runs: dict[str, Any] = {}
    with join_from_environment(settings) as session:

        def switched(iteration: int) -> Floats:
            return session.allreduce(gradients[iteration], precision="block").result()

        for name in options.schemes.split(","):
            with ExitStack() as stack:
                if name == Scheme.PS.value:
                    run = through_servers(book, task, gradients, stack, options.timeout)
                elif name == Scheme.SFB.value:
                    run = by_factors(book, task, stack, options.timeout)
                elif name == MULTICAST:
                    run = by_factors(book, task, stack, options.timeout, session)
                else:
                    run = switched
                session.barrier(f"{name}-open", timeout_s=120.0)
                runs[name] = run_scheme(name, task, run, session, options)
                session.barrier(f"{name}-close", timeout_s=options.timeout)
        return {
            "book": book.hash,
            "runs": runs,
            "slots": session.view.slot_count,
            "statistics": dict(session.statistics),
        }


def main() -> None:
    parser = argparse.ArgumentParser()
    parser.add_argument("--book", type=Path, required=True)
    parser.add_argument("--iterations", type=int, required=True)
    parser.add_argument("--warm-up", type=int, required=True)
    parser.add_argument("--schemes", required=True)
    parser.add_argument("--testbed", required=True)
    parser.add_argument("--timeout", type=float, required=True)
    print(json.dumps(run_all(parser.parse_args())))


if __name__ == "__main__":
    main()
