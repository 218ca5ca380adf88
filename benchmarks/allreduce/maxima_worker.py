# SPDX-FileCopyrightText: 2026 The Switchfold Authors
# SPDX-License-Identifier: Apache-2.0
"""One worker of the benchmark of maxima: the same ones by each contender, turn by turn.

maxima.py starts it on every host of a testbed. Every result is compared with numpy's, bit for bit,
before its time counts. The last line of the output is JSON.
"""

from __future__ import annotations

import argparse
import contextlib
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import torch
import torch.distributed as dist
from numpy.typing import NDArray

sys.path.insert(0, str(Path(__file__).resolve().parents[2]))

from benchmarks.allreduce.allreduce_worker import (
    num_workers_here,
    open_gloo,
    own_worker_id,
    print_content,
    timed,
    worker_parser,
)
from benchmarks.allreduce.host_allreduce_worker import open_session
from switchfold.hostlib import SessionOptions
from switchfold.hostlib.config import join_from_environment

DTYPES = ("float32", "int32")
Numbers = NDArray[Any]
untyped: Any = torch  # some of its functions are only partly typed


def contributions(repeat: int, size: int, dtype: str) -> list[Numbers]:
    """Return the finite numbers of all workers, of all magnitudes; each worker can compute them."""
    words = np.random.default_rng(repeat).integers(0, 1 << 32, size, np.uint32)
    if dtype == "float32":
        words[~np.isfinite(words.view(np.float32))] = 0x3F800000
    return [np.roll(words, 1009 * i).view(dtype) for i in range(num_workers_here())]


def gloo_maximum(array: Numbers) -> Numbers:
    untyped.distributed.all_reduce(untyped.from_numpy(array), op=dist.ReduceOp.MAX)
    return array


def run_all(options: argparse.Namespace) -> dict[str, Any]:
    """Let contenders take turns, so that noise of the machine affects all of them."""
    with contextlib.ExitStack() as stack:
        switch = stack.enter_context(
            join_from_environment(SessionOptions(timeout_s=options.timeout))
        )
        open_gloo(options.rendezvous, options.timeout)
        hosts = stack.enter_context(open_session(options, has_tls=False))
        contenders: dict[str, Callable[[Numbers], Numbers]] = {
            "switch": lambda array: switch.allreduce(array, "max").result(),
            "host": lambda array: hosts.allreduce(array, "max").result(),
            "gloo": gloo_maximum,
        }
        runs: list[dict[str, Any]] = []
        for repeat in range(options.repeats + 1):  # the first of each is warm-up
            for dtype in DTYPES:
                arrays = contributions(repeat, options.bytes // 4, dtype)
                expected = np.maximum.reduce(arrays)
                for label, contender in contenders.items():
                    own = arrays[own_worker_id()].copy()
                    result, run = timed(
                        contender, own, untyped.distributed.barrier, options.switch_pids
                    )
                    assert result.tobytes() == expected.tobytes(), (label, dtype, repeat)
                    runs.append({"label": f"{dtype} {label}", "repeat": repeat, **run})
        untyped.distributed.barrier()
        return {"runs": runs}


def main() -> None:
    parser = worker_parser()
    parser.add_argument("--addresses", type=lambda text: text.split(","), required=True)
    print_content(run_all, parser.parse_args())


if __name__ == "__main__":
    main()
