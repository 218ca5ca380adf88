# SPDX-FileCopyrightText: 2026 The Switchfold Authors
# SPDX-License-Identifier: Apache-2.0
"""One worker of the latency benchmark: many small sums by each contender, in turns.

The last line of the output is JSON: the seconds of each sum, by contender.
"""

from __future__ import annotations

import argparse
import os
import sys
import time
from pathlib import Path
from typing import Any

import numpy as np

sys.path.insert(0, str(Path(__file__).resolve().parents[2]))

from benchmarks.allreduce.allreduce_worker import (
    Allreduce,
    num_workers_here,
    open_bridged_gloo,
    open_gloo,
    own_worker_id,
    print_content,
)
from switchfold.hostlib import SessionOptions
from switchfold.hostlib.config import join_from_environment


def timed_turn(
    allreduce: Allreduce, first: int, options: argparse.Namespace
) -> tuple[list[float], list[Any]]:
    """Sum small tensors one after the other; return the seconds of each sum, and the results."""
    count = options.bytes // 4
    times_s: list[float] = []
    results: list[Any] = []
    arrays = [
        np.full(count, (first + i) % 1000 + own_worker_id(), np.float32)
        for i in range(options.sums)
    ]
    for array in arrays:
        began_s = time.perf_counter()
        result = allreduce(array)
        times_s.append(time.perf_counter() - began_s)
        results.append(result)
    return times_s, results


def verify(results: list[Any], first: int, label: str) -> None:
    """Raise AssertionError unless each result is the sum of all workers' tensors."""
    workers = num_workers_here()
    for i, result in enumerate(results):
        expected = workers * ((first + i) % 1000) + workers * (workers - 1) // 2
        np.testing.assert_allclose(result, expected, rtol=1e-6, err_msg=label)


def run_all(options: argparse.Namespace) -> dict[str, Any]:
    """Let contenders take turns; the first turn of each is warm-up."""
    session = join_from_environment(SessionOptions(timeout_s=options.timeout))
    with session:
        contenders: dict[str, Allreduce] = {
            "switchfold": lambda array: session.allreduce(array, precision="block").result(),
            "gloo_switch": open_gloo(options.rendezvous, options.timeout),
            "gloo_bridge": open_bridged_gloo(options.bridge_namespace, options.timeout),
        }
        times_s: dict[str, list[float]] = {label: [] for label in contenders}
        for turn in range(options.turns + 1):
            for label, allreduce in contenders.items():
                session.barrier(f"{label}-{turn}")
                first = turn * options.sums
                seconds, results = timed_turn(allreduce, first, options)
                verify(results, first, label)
                if turn:
                    times_s[label] += seconds
    return {"times_s": times_s}


def main() -> None:
    os.environ.setdefault("GLOO_SOCKET_IFNAME", os.environ["SWITCHFOLD_INTERFACE"])
    parser = argparse.ArgumentParser()
    parser.add_argument("--bytes", type=int, required=True)
    parser.add_argument("--turns", type=int, required=True)
    parser.add_argument("--sums", type=int, required=True)
    parser.add_argument("--timeout", type=float, required=True)
    parser.add_argument("--rendezvous", type=Path, required=True)
    parser.add_argument("--bridge-namespace", required=True)
    print_content(run_all, parser.parse_args())


if __name__ == "__main__":
    main()
