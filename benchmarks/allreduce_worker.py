# SPDX-FileCopyrightText: 2026 The Switchfold Authors
# SPDX-License-Identifier: Apache-2.0
"""One worker of the allreduce benchmark: the same sums by Switchfold and by Gloo, turn by turn.

Started by allreduce.py on every host of a testbed, in the environment of its endpoint. Every result
is checked against the sum in float64 before its time counts. The last line of the output is JSON.
"""

from __future__ import annotations

import argparse
import json
import os
import time
import zlib
from collections.abc import Callable
from datetime import timedelta
from pathlib import Path
from typing import Any

import numpy as np
import torch
import torch.distributed as dist
from numpy.typing import NDArray

from hostlib import Session, SessionOptions
from hostlib.config import transport_from_environment

TOLERANCE = 1e-5
"""Absolute and relative, on sums of standard normal numbers; float32 has 24 bits."""

Floats = NDArray[np.float32]
Allreduce = Callable[[Floats], Floats]
Barrier = Callable[[str], None]


def contribution(repeat: int, worker_id: int, elements: int) -> Floats:
    """Return a worker's float32 tensor: known to every other worker, different for each."""
    base = np.random.default_rng(repeat).standard_normal(elements, dtype=np.float32)
    return np.roll(base, 1009 * worker_id)


def expected_sum(repeat: int, num_workers: int, elements: int) -> NDArray[np.float64]:
    base = np.random.default_rng(repeat).standard_normal(elements, dtype=np.float32)
    total = np.zeros(elements, np.float64)
    for worker_id in range(num_workers):
        total += np.roll(base, 1009 * worker_id)
    return total


def timed(
    allreduce: Allreduce, barrier: Barrier, label: str, repeat: int, elements: int
) -> dict[str, Any]:
    """Run one allreduce; return its times here and a checksum of the verified result."""
    worker_id, num_workers = int(os.environ["SWITCHFOLD_WORKER_ID"]), num_workers_here()
    array = contribution(repeat, worker_id, elements)
    barrier(f"{label}-{repeat}")
    began_s = time.monotonic()
    result = allreduce(array)
    ended_s = time.monotonic()
    barrier(f"{label}-{repeat}-done")
    expected = expected_sum(repeat, num_workers, elements)
    np.testing.assert_allclose(result, expected, rtol=TOLERANCE, atol=TOLERANCE, err_msg=label)
    return {
        "label": label,
        "repeat": repeat,
        "began_s": began_s,
        "ended_s": ended_s,
        "checksum": zlib.crc32(result.tobytes()),
    }


def num_workers_here() -> int:
    return int(os.environ["SWITCHFOLD_NUM_WORKERS"])


def open_gloo(rendezvous: Path, timeout_s: float) -> Allreduce:
    """Join torch's Gloo group over the host's link and return its allreduce."""
    os.environ["GLOO_SOCKET_IFNAME"] = os.environ["SWITCHFOLD_INTERFACE"]
    dist.init_process_group(
        "gloo",
        init_method=f"file://{rendezvous}",
        rank=int(os.environ["SWITCHFOLD_WORKER_ID"]),
        world_size=num_workers_here(),
        timeout=timedelta(seconds=timeout_s),
    )

    def allreduce(array: Floats) -> Floats:
        dist.all_reduce(torch.from_numpy(array))
        return array

    return allreduce


def run_both(options: argparse.Namespace) -> tuple[list[dict[str, Any]], dict[str, Any]]:
    """Alternate between the two, so that a noisy moment of the machine meets both."""
    session = Session.join(
        controller=os.environ["SWITCHFOLD_CONTROLLER"],
        job=os.environ["SWITCHFOLD_JOB"],
        worker_id=int(os.environ["SWITCHFOLD_WORKER_ID"]),
        num_workers=num_workers_here(),
        transport=transport_from_environment(),
        options=SessionOptions(window=options.window, timeout_s=options.timeout),
        ingress_port=int(os.environ["SWITCHFOLD_INGRESS_PORT"]),
        slots_wanted=options.slots,
    )
    gloo = open_gloo(options.rendezvous, options.timeout)

    def switchfold(array: Floats) -> Floats:
        return session.allreduce(array).result()

    runs: list[dict[str, Any]] = []
    elements = options.bytes // 4
    with session:
        for repeat in range(options.repeats + 1):  # the first of each is warm-up
            runs.append(timed(switchfold, session.barrier, "switchfold", repeat, elements))
            runs.append(timed(gloo, session.barrier, "gloo", repeat, elements))
        return runs, dict(session.statistics)


def main() -> None:
    parser = argparse.ArgumentParser()
    parser.add_argument("--bytes", type=int, required=True)
    parser.add_argument("--repeats", type=int, required=True)
    parser.add_argument("--window", type=int, required=True)
    parser.add_argument("--slots", type=int, required=True)
    parser.add_argument("--timeout", type=float, required=True)
    parser.add_argument("--rendezvous", type=Path, required=True)
    options = parser.parse_args()
    torch.set_num_threads(1)
    runs, statistics = run_both(options)
    dist.destroy_process_group()
    print(json.dumps({"runs": runs, "statistics": statistics}))


if __name__ == "__main__":
    main()
