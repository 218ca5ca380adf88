# SPDX-FileCopyrightText: 2026 The Switchfold Authors
# SPDX-License-Identifier: Apache-2.0
"""One worker of the training benchmark: all contenders, models and rates, in turn.

All process groups exist at once: of the switch, of Gloo over the same switch, and of Gloo over the
bridge of the other testbed. Between runs worker 0 changes the link rates of both testbeds. Before
the times of a run count, its weights are compared with those of an oracle that was trained with
means in float64. The last line of the output is JSON.
"""

from __future__ import annotations

import argparse
import json
import os
import statistics
import sys
import time
import zlib
from collections.abc import Callable
from contextlib import ExitStack
from datetime import timedelta
from pathlib import Path
from typing import Any

import numpy as np
import torch
import torch.distributed as dist
from numpy.typing import NDArray

sys.path.insert(0, str(Path(__file__).resolve().parents[2]))

from benchmarks.support.processor import read_times
from benchmarks.training.training_contenders import (
    FromMeans,
    Overlapped,
    OverParameterServer,
    Sequential,
    Trainer,
)
from benchmarks.training.training_models import (
    CALIBRATION_VALUES,
    CLASSES,
    WARM_UP,
    WORKLOADS,
    Workload,
    make_module,
)
from switchfold.bmv2_topos import Testbed
from switchfold.bmv2_topos.network.namespaces import call_in_namespace
from switchfold.hostlib.parameter_server import (
    ClientOptions,
    ParameterClient,
    ParameterServer,
    ServerOptions,
)
from switchfold.hostlib.torch import register

untyped: Any = torch  # some of its functions are only partly typed
collectives: Any = dist

TOLERANCE = 2e-5
"""Absolute error of weights, which are below 1."""
PAIR_BYTES = 64 << 10
"""Size of the parameter servers' KV pairs, small enough for even shards of these models."""
CALIBRATIONS = 3
SERVER_PORT = 47_100


class Network:
    """The process groups and the parameter server of one worker, and the links below them."""

    def __init__(self, options: argparse.Namespace, stack: ExitStack) -> None:
        self.rank = int(os.environ["SWITCHFOLD_WORKER_ID"])
        self.num_workers = int(os.environ["SWITCHFOLD_NUM_WORKERS"])
        self._testbeds = [Testbed.attach(name) for name in options.testbeds.split(",")]
        os.environ["GLOO_SOCKET_IFNAME"] = os.environ["SWITCHFOLD_INTERFACE"]
        timeout = timedelta(seconds=options.timeout)
        dist.init_process_group(
            "switchfold",
            init_method=f"file://{options.rendezvous}",
            rank=self.rank,
            world_size=self.num_workers,
            timeout=timeout,
        )
        stack.callback(dist.destroy_process_group)

        def open_gloo() -> Any:
            return untyped.distributed.new_group(backend="gloo", timeout=timeout)

        self.switch: Any = collectives.group.WORLD
        self.gloo_switch = open_gloo()
        host = self._testbeds[1].topology.host_of(self.rank)
        namespace = self._testbeds[1].namespace_of(host)
        assert namespace is not None
        # Sockets and threads that start here stay in the other testbed's namespace.
        self.gloo_bridge = call_in_namespace(namespace, open_gloo)
        self.client: ParameterClient = call_in_namespace(
            namespace, lambda: self._open_servers(stack, options.timeout)
        )
        self._iteration = 0

    def _open_servers(self, stack: ExitStack, timeout_s: float) -> ParameterClient:
        """Start this worker's shard and a client of all shards."""
        hosts = sorted(self._testbeds[1].topology.hosts, key=lambda host: host.worker_id)
        server = ParameterServer(
            ServerOptions(num_workers=self.num_workers, shard=self.rank),
            address=hosts[self.rank].address,
            port=SERVER_PORT,
            insecure=True,
        )
        stack.callback(server.close)
        client = ParameterClient(
            [(host.address, SERVER_PORT) for host in hosts],
            ClientOptions(
                worker_id=self.rank, pair_bytes=PAIR_BYTES, timeout_s=timeout_s, insecure=True
            ),
            local_server=server,
        )
        stack.callback(client.close)
        return client

    def barrier(self) -> None:
        """Wait for all workers."""
        collectives.barrier(group=self.gloo_switch)

    def set_rate(self, rate_bits_per_s: int) -> None:
        """Set the rate of all links of both testbeds while no worker sends."""
        self.barrier()
        if self.rank == 0:
            for testbed in self._testbeds:
                for link in testbed.topology.links:
                    testbed.link_rates.set(link, rate_bits_per_s)
        self.barrier()

    def trainers(self, workload: Workload) -> dict[str, Trainer]:
        """Return the contenders for a workload, by label."""

        def module() -> Any:
            return make_module(workload)

        return {
            "alone": Trainer(module()),
            "switchfold": Overlapped(module(), self.switch),
            "switchfold_sequential": Sequential(module(), self.switch),
            "gloo_switch": Overlapped(module(), self.gloo_switch),
            "gloo_bridge": Overlapped(module(), self.gloo_bridge),
            "ps": OverParameterServer(module(), self.gloo_bridge, self.client, workload.name),
        }

    def calibrate(self) -> dict[str, float]:
        """Return the seconds of one exchange by each contender, and the RTT ("round_trip")."""

        def allreduce(group: Any) -> Callable[[NDArray[np.float32]], None]:
            return lambda values: collectives.all_reduce(untyped.from_numpy(values), group=group)

        exchanges: dict[str, Callable[[NDArray[np.float32]], None]] = {
            "switchfold": allreduce(self.switch),
            "gloo_switch": allreduce(self.gloo_switch),
            "gloo_bridge": allreduce(self.gloo_bridge),
            "ps": self._push_pull,
        }
        found = {
            label: self._median_s(exchange, CALIBRATION_VALUES)
            for label, exchange in exchanges.items()
        }
        # Exponents, then values: two RTTs through the switch.
        return {**found, "round_trip": self._median_s(exchanges["switchfold"], 1) / 2}

    def _median_s(self, exchange: Callable[[NDArray[np.float32]], None], num_values: int) -> float:
        times: list[float] = []
        for _ in range(CALIBRATIONS + 1):
            values = np.ones(num_values, np.float32)
            self.barrier()
            began_s = time.monotonic()
            exchange(values)
            times.append(time.monotonic() - began_s)
            if not np.allclose(values, self.num_workers):
                raise SystemExit("a calibrating exchange returned a wrong sum")
        return statistics.median(times[1:])

    def _push_pull(self, values: NDArray[np.float32]) -> None:
        self.client.push_pull("calibration", values, self._iteration, values).result()
        self._iteration += 1


def batches(workload: Workload, rank: int, steps: int) -> list[tuple[Any, Any]]:
    """Return a worker's batches, the same for each contender."""
    generator = untyped.Generator().manual_seed(100 + rank)
    return [
        (
            torch.randn(workload.batch, *workload.inputs, generator=generator),
            torch.randint(0, CLASSES, (workload.batch,), generator=generator),
        )
        for _ in range(steps)
    ]


def train(trainer: Trainer, data: list[tuple[Any, Any]]) -> tuple[list[float], list[float]]:
    """Train from the initial parameters; return the end and the loss of each step."""
    trainer.reset()
    ends: list[float] = []
    losses: list[float] = []
    for inputs, targets in data:
        losses.append(trainer.step(inputs, targets))
        ends.append(time.monotonic())
    return ends, losses


def run_cell(
    trainer: Trainer, data: list[tuple[Any, Any]], barrier: Callable[[], None]
) -> dict[str, Any]:
    """Train once; return times, losses, processor use and a checksum of the weights."""
    barrier()
    before, cpu_before_s = read_times([]), time.process_time()
    ends, losses = train(trainer, data)
    cpu_s = time.process_time() - cpu_before_s
    barrier()
    after = read_times([])
    return {
        "ends": ends,
        "losses": losses,
        "cpu_s": cpu_s / len(data),
        "busy_share": (after.busy_s - before.busy_s) / (after.total_s - before.total_s),
        "checksum": zlib.crc32(trainer.weights().tobytes()),
    }


def check(label: str, trainer: Trainer, losses: list[float], oracle: dict[str, Any]) -> None:
    """Raise SystemExit unless weights and losses are those of the oracle."""
    worst = float(np.abs(trainer.weights() - oracle["weights"]).max())
    if not worst <= TOLERANCE:
        raise SystemExit(f"{label}: a weight differs from the oracle's by {worst}: not measured")
    np.testing.assert_allclose(losses, oracle["losses"], rtol=1e-3, err_msg=label)


def run_all(options: argparse.Namespace, network: Network) -> dict[str, Any]:
    rates = [int(rate) for rate in options.rates.split(",")]
    network.set_rate(max(rates))
    calibrations = network.calibrate()
    cells: list[dict[str, Any]] = []
    for name in options.models.split(","):
        workload = WORKLOADS[name]
        data = batches(workload, network.rank, WARM_UP + options.repeats)
        network.set_rate(max(rates))
        trainers = network.trainers(workload)
        oracle_trainer = FromMeans(make_module(workload), network.gloo_bridge)
        losses = train(oracle_trainer, data)[1]
        oracle = {"weights": oracle_trainer.weights().copy(), "losses": losses}
        for rate in rates:
            network.set_rate(rate)
            for turn in range(options.turns):
                for label, trainer in trainers.items():
                    cell = run_cell(trainer, data, network.barrier)
                    if label != "alone":
                        check(label, trainer, cell["losses"], oracle)
                    cells.append(
                        {"model": name, "rate": rate, "turn": turn, "label": label, **cell}
                    )
        del trainers
    return {
        "cells": cells,
        "calibrations": calibrations,
        "slots": network.switch.session.view.slot_count,
        "statistics": dict(network.switch.session.statistics),
    }


def run_single(options: argparse.Namespace) -> dict[str, Any]:
    """Train as the only worker, without any exchange."""
    cells: list[dict[str, Any]] = []
    for name in options.models.split(","):
        data = batches(WORKLOADS[name], 0, WARM_UP + options.repeats)
        trainer = Trainer(make_module(WORKLOADS[name]))
        for turn in range(options.turns):
            cell = run_cell(trainer, data, lambda: None)
            cells.append({"model": name, "rate": 0, "turn": turn, "label": "alone", **cell})
    return {"cells": cells, "calibrations": {}, "slots": 0, "statistics": {}}


def main() -> None:
    parser = argparse.ArgumentParser()
    parser.add_argument("--models", required=True, help="names, separated by commas")
    parser.add_argument("--rates", default="", help="bit/s, separated by commas")
    parser.add_argument("--repeats", type=int, required=True)
    parser.add_argument("--turns", type=int, required=True)
    parser.add_argument("--timeout", type=float, required=True)
    parser.add_argument("--rendezvous", type=Path)
    parser.add_argument("--testbeds", default="", help="names: of the switch's, of the bridge's")
    options = parser.parse_args()
    torch.set_num_threads(1)
    if not options.testbeds:
        print(json.dumps(run_single(options)))
        return
    register()
    with ExitStack() as stack:
        network = Network(options, stack)
        content = run_all(options, network)
        network.barrier()
    print(json.dumps(content))


if __name__ == "__main__":
    main()
