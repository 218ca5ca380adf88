# SPDX-FileCopyrightText: 2026 The Switchfold Authors
# SPDX-License-Identifier: Apache-2.0
"""One worker of the precision benchmark: the same sums exactly and in blocks, in turn.

Every result is verified before its time counts. The last line of the output is JSON.
"""

from __future__ import annotations

import argparse
import json
import time
from typing import Any

import numpy as np
from numpy.typing import NDArray

from switchfold.hostlib import Session, SessionOptions
from switchfold.hostlib.config import join_from_environment
from switchfold.hostlib.options import Precision

PRECISIONS: tuple[Precision, ...] = ("block", "exact")
DTYPES = ("float32", "float64")
BLOCK_TOLERANCE = 1e-6
"""Absolute error of sums of standard normal numbers."""


def contributions(num_workers: int, size: int, dtype: str, repeat: int) -> list[NDArray[Any]]:
    """Return the tensors of all workers; each worker can compute them."""
    base = np.random.default_rng(repeat).standard_normal(size).astype(dtype)
    return [np.roll(base, 1009 * worker_id) for worker_id in range(num_workers)]


def verify(result: NDArray[Any], arrays: list[NDArray[Any]], precision: Precision) -> None:
    """Raise AssertionError if a result has not the accuracy of its precision."""
    expected = np.sum(np.array(arrays, np.longdouble), axis=0)
    errors = np.abs(result - expected)
    if precision == "block":
        assert errors.max() <= BLOCK_TOLERANCE
    else:  # half a unit in the last place; extended precision has 11 bits more than float64
        assert (errors <= np.spacing(np.abs(result)) * (0.5 + 2.0**-10)).all()


def run(session: Session, options: argparse.Namespace) -> list[dict[str, Any]]:
    """Time single large sums and series of small ones, in turn, so that noise affects all."""
    view = session.view
    runs: list[dict[str, Any]] = []
    for repeat in range(options.repeats + 1):  # the first is warm-up
        for dtype in DTYPES:
            for size in (options.bytes // np.dtype(dtype).itemsize, 2):
                arrays = contributions(view.num_workers, size, dtype, repeat)
                own = arrays[view.member_ids.index(view.worker_id)]
                count = options.small_sums if size == 2 else 1
                for precision in PRECISIONS:
                    session.barrier(f"{repeat}-{dtype}-{size}-{precision}")
                    before = session.statistics
                    cpu_s, began_s = time.process_time(), time.monotonic()
                    result = own
                    for _ in range(count):
                        result = session.allreduce(own, precision=precision).result()
                    elapsed_s = time.monotonic() - began_s
                    cpu_s = time.process_time() - cpu_s
                    after = session.statistics
                    verify(result, arrays, precision)
                    sent = [after[key] - before[key] for key in before if key.endswith("_sent")]
                    runs.append(
                        {
                            "dtype": dtype,
                            "size": size,
                            "precision": precision,
                            "repeat": repeat,
                            "elapsed_s": elapsed_s / count,
                            "cpu_s": cpu_s / count,
                            "packets": sum(sent) / count,
                        }
                    )
    return runs


def main() -> None:
    parser = argparse.ArgumentParser()
    parser.add_argument("--bytes", type=int, required=True)
    parser.add_argument("--repeats", type=int, required=True)
    parser.add_argument("--small-sums", type=int, required=True)
    options = parser.parse_args()
    with join_from_environment(SessionOptions(timeout_s=120.0)) as session:
        runs = run(session, options)
        session.barrier("end")
    print(json.dumps({"runs": runs}))


if __name__ == "__main__":
    main()
