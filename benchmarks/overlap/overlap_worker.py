# SPDX-FileCopyrightText: 2026 The Switchfold Authors
# SPDX-License-Identifier: Apache-2.0
"""One worker of the overlap benchmark: the same iterations, sequential and overlapped, in turn.

The overlapped arrangement is unmodified DistributedDataParallel over the switch. The sequential one
uses the same model and process group, but sums after the whole backward pass. Each gradient is
compared with Gloo's mean in float64 before its time counts. The last line of the output is JSON.
"""

from __future__ import annotations

import argparse
import json
import os
import sys
import time
import zlib
from collections.abc import Callable, Iterable
from datetime import timedelta
from pathlib import Path
from typing import Any

import torch
import torch.distributed as dist

sys.path.insert(0, str(Path(__file__).resolve().parents[2]))

from benchmarks.overlap.toy_net import ToyNet, emulated_net, pass_s, real_net
from switchfold.hostlib.torch import register

untyped: Any = torch  # some of its functions are only partly typed
collectives: Any = dist

TOLERANCE = 1e-5
"""Absolute and relative error of means of standard normal numbers; float32 has 24 bits."""
WARM_UP = 2
"""DistributedDataParallel makes its buckets again after the first iteration."""
BUCKET_SHARE = 0.9
"""Size of a bucket as a share of the top layer, which fills one; all below it fill another."""
MOST_CONVOLUTIONS = 64


class Arrangements:
    """One model and both arrangements of its iteration."""

    def __init__(self, net: ToyNet) -> None:
        self._net = net
        self._halves: list[list[Any]] = [list(net.fc.parameters()), list(net.conv.parameters())]
        top_bytes = sum(parameter.numel() for parameter in self._halves[0]) * 4
        self._model: Any = torch.nn.parallel.DistributedDataParallel(
            net, bucket_cap_mb=BUCKET_SHARE * top_bytes / 2**20
        )

    def overlapped(self, inputs: torch.Tensor) -> None:
        """Send each bucket as soon as its gradients are computed."""
        untyped.autograd.backward(self._model(inputs).sum())

    def sequential(self, inputs: torch.Tensor) -> None:
        """Compute all gradients, then exchange them."""
        with self._model.no_sync():
            untyped.autograd.backward(self._model(inputs).sum())
        buckets = [_flatten(half) for half in self._halves]
        works = [collectives.all_reduce(bucket, async_op=True) for bucket in buckets]
        for work, bucket, half in zip(works, buckets, self._halves, strict=True):
            work.wait()
            bucket.div_(dist.get_world_size())
            sizes = [parameter.numel() for parameter in half]
            for parameter, part in zip(half, bucket.split(sizes), strict=True):
                parameter.grad.copy_(part.view_as(parameter))

    def gradients(self) -> torch.Tensor:
        """Return a copy of all gradients, flat."""
        return _flatten(self._net.parameters())

    def oracle(self, inputs: torch.Tensor, group: Any) -> torch.Tensor:
        """Return the mean of all workers' gradients in float64, summed by Gloo."""
        with self._model.no_sync():
            untyped.autograd.backward(self._model(inputs).sum())
        total = self.gradients().double()
        self._net.zero_grad()
        collectives.all_reduce(total, group=group)
        return total / dist.get_world_size()


def _flatten(parameters: Iterable[Any]) -> Any:
    """Return a copy of these parameters' gradients, concatenated."""
    return untyped.cat([untyped.flatten(parameter.grad) for parameter in parameters])


def interface_bytes(interface: str) -> tuple[int, int]:
    """Return (received, sent) bytes of an interface of this namespace."""
    for line in Path("/proc/net/dev").read_text().splitlines():
        name, _, counters = line.partition(":")
        if name.strip() == interface:
            fields = counters.split()
            return int(fields[0]), int(fields[8])
    raise SystemExit(f"/proc/net/dev does not list {interface}")


def make_net(options: argparse.Namespace, group: Any) -> ToyNet:
    """Return the net; a real one has enough convolutions for passes of the given time."""
    if options.compute == "emulated":
        return emulated_net(
            conv_values=options.conv_values,
            conv_backward_s=options.conv_backward,
            fc_values=options.fc_values,
            fc_backward_s=options.fc_backward,
        )
    untyped.manual_seed(0)
    small = real_net(num_convolutions=4, fc_values=options.fc_values)
    # All workers compute at once, as in the measurement: they share the cores.
    collectives.barrier(group=group)
    each_s = pass_s(small, small.set_iteration(0, 0)) / 4
    wanted_s = options.conv_backward + options.fc_backward
    number = torch.tensor([min(MOST_CONVOLUTIONS, max(1, round(wanted_s / each_s)))])
    collectives.broadcast(number, 0, group=group)
    untyped.manual_seed(0)
    return real_net(num_convolutions=int(number), fc_values=options.fc_values)


def run_all(options: argparse.Namespace, rank: int) -> dict[str, Any]:
    group = untyped.distributed.new_group(backend="gloo")
    net = make_net(options, group)
    arrangements = Arrangements(net)
    labels: dict[str, Callable[[torch.Tensor], None]] = {
        "sequential": arrangements.sequential,
        "overlapped": arrangements.overlapped,
    }
    runs: list[dict[str, Any]] = []
    for repeat in range(options.repeats + WARM_UP):
        inputs = net.set_iteration(repeat, rank, is_hurried=True)
        expected = arrangements.oracle(inputs, group)
        for label, iterate in labels.items():
            inputs = net.set_iteration(repeat, rank)
            collectives.barrier(group=group)
            before = interface_bytes(os.environ["SWITCHFOLD_INTERFACE"])
            began_s = time.monotonic()
            iterate(inputs)
            ended_s = time.monotonic()
            after = interface_bytes(os.environ["SWITCHFOLD_INTERFACE"])
            result = arrangements.gradients()
            net.zero_grad()
            torch.testing.assert_close(
                result.double(), expected, rtol=TOLERANCE, atol=TOLERANCE, msg=label
            )
            if repeat >= WARM_UP:
                runs.append(
                    {
                        "label": label,
                        "repeat": repeat,
                        "began_s": began_s,
                        "ended_s": ended_s,
                        "received_bytes": after[0] - before[0],
                        "sent_bytes": after[1] - before[1],
                        "checksum": zlib.crc32(result.numpy().tobytes()),
                    }
                )
    statistics = collectives.group.WORLD.session.statistics
    inputs = net.set_iteration(0, rank)
    collectives.barrier(group=group)
    return {"runs": runs, "compute_s": pass_s(net, inputs), "statistics": dict(statistics)}


def main() -> None:
    parser = argparse.ArgumentParser()
    parser.add_argument("--compute", choices=["emulated", "real"], required=True)
    parser.add_argument("--conv-values", type=int, required=True)
    parser.add_argument("--conv-backward", type=float, required=True, help="s")
    parser.add_argument("--fc-values", type=int, required=True)
    parser.add_argument("--fc-backward", type=float, required=True, help="s")
    parser.add_argument("--repeats", type=int, required=True)
    parser.add_argument("--rendezvous", type=Path, required=True)
    options = parser.parse_args()
    torch.set_num_threads(1)
    register()
    rank = int(os.environ["SWITCHFOLD_WORKER_ID"])
    os.environ["GLOO_SOCKET_IFNAME"] = os.environ["SWITCHFOLD_INTERFACE"]
    dist.init_process_group(
        "switchfold",
        init_method=f"file://{options.rendezvous}",
        rank=rank,
        world_size=int(os.environ["SWITCHFOLD_NUM_WORKERS"]),
        timeout=timedelta(seconds=60),
    )
    content = run_all(options, rank)
    dist.destroy_process_group()
    print(json.dumps(content))


if __name__ == "__main__":
    main()
