# SPDX-FileCopyrightText: 2026 The Switchfold Authors
# SPDX-License-Identifier: Apache-2.0
"""Train an example twice on the workers of one testbed, over Gloo and over Switchfold, and compare.

    python examples/pytorch/compare.py digits_cnn --mbit 100 --epochs 5

Unknown options are passed to the example. The Gloo version is the example without its diff. The
comparison proves three things: each run ends with the same weights on all workers, bit by bit; the
switch made the sums of one run and none of the other; and every printed loss differs from Gloo's by
at most MAX_DEVIATION. As root, the workers are namespaces behind links of the given rate. Otherwise
they share the machine's loopback interface, and no rate applies.
"""

import argparse
import os
import re
import signal
import sys
import tempfile
import time
from dataclasses import dataclass
from pathlib import Path

from switchfold.bmv2_topos import Testbed, WorkerResult, single_switch
from switchfold.controller.api.operator_client import OperatorClient

HERE = Path(__file__).resolve().parent
MAX_DEVIATION = 0.001
"""Largest relative difference of a loss. Sums are rounded to a fixed point for each chunk, to about
2^-24 of its largest value, and training amplifies any rounding."""


@dataclass
class TrainingRun:
    losses: list[float]
    weights: set[str]
    seconds: float
    sums: int
    """Packets of sums that the switch sent."""
    aborted_at_exit: list[int]
    """Ranks whose process aborted after it had printed its weights."""


def sums_made(testbed: Testbed) -> int:
    counts = OperatorClient(testbed.controller_address).show_switch("s1").counts
    return sum(count.packets for count in counts if count.outcome == "completed")


def gloo_version(example: str, folder: Path) -> Path:
    """Return the example as it was before its diff, which changes one line."""
    changes = (HERE / f"{example}.diff").read_text().splitlines(keepends=True)[2:]
    (before,) = [line[1:] for line in changes if line.startswith("-")]
    (after,) = [line[1:] for line in changes if line.startswith("+")]
    text = (HERE / f"{example}.py").read_text()
    assert text.count(after) == 1, f"{example}.diff does not fit {example}.py"
    path = folder / f"{example}.py"
    path.write_text(text.replace(after, before))
    return path


def train(
    testbed: Testbed, script: Path, words: list[str], *, is_gloo: bool = False
) -> TrainingRun:
    start, sums_before = time.monotonic(), sums_made(testbed)
    results = testbed.run_workers(
        [sys.executable, str(script), *words],
        job=script.stem.replace("_", "-"),
        timeout_s=600,
        environment={"OMP_NUM_THREADS": "1"},
    )
    seconds = time.monotonic() - start
    output = "".join(result.output for result in results)
    # PyTorch's Gloo backend, in rare cases, aborts while the interpreter ends, after the training.
    # With Switchfold that is a failure.
    aborted = [result.worker_id for result in results if is_gloo and aborted_at_exit(result)]
    if any(result.exit_status for result in results if result.worker_id not in aborted):
        raise SystemExit(f"{script.name} failed:\n{output}")
    losses = [float(loss) for loss in re.findall(r"loss ([0-9.]+)", output)]
    weights = re.findall(r"weights ([0-9a-f]{64})", output)
    if not losses or len(weights) != len(results):
        raise SystemExit(f"{script.name} printed no loss, or not all weights:\n{output}")
    sums = sums_made(testbed) - sums_before
    return TrainingRun(losses, set(weights), seconds, sums, aborted)


def aborted_at_exit(result: WorkerResult) -> bool:
    return result.exit_status == -signal.SIGABRT and "weights " in result.output


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("example", choices=["digits_cnn", "text_transformer"])
    parser.add_argument("--mbit", type=float, default=100, help="rate of each link, Mbit/s")
    parser.add_argument("--workers", type=int, default=4)
    options, words = parser.parse_known_args()
    mode = "veth" if os.geteuid() == 0 else "udp"
    rate = round(options.mbit * 1e6) if mode == "veth" else None
    topology = single_switch(options.workers, rate_bits_per_s=rate)
    with tempfile.TemporaryDirectory() as folder, Testbed(topology, mode=mode) as testbed:
        gloo = train(testbed, gloo_version(options.example, Path(folder)), words, is_gloo=True)
        ours = train(testbed, HERE / f"{options.example}.py", words)
    if gloo.aborted_at_exit:
        print(f"gloo: ranks {gloo.aborted_at_exit} aborted at exit, after their training")
    deviations = [abs(a / b - 1) for a, b in zip(ours.losses, gloo.losses, strict=True)]
    for name, run in (("gloo", gloo), ("switchfold", ours)):
        print(
            f"{name:10} final loss {run.losses[-1]:.6f}, {run.seconds:.1f} s with startup;"
            f" the switch made {run.sums} sums"
        )
    print(f"largest deviation of a loss {max(deviations):.6%}, limit {MAX_DEVIATION:.1%}")
    print(f"different weights: gloo {len(gloo.weights)}, switchfold {len(ours.weights)}")
    are_same = len(gloo.weights) == len(ours.weights) == 1
    if max(deviations) > MAX_DEVIATION or not are_same or gloo.sums or not ours.sums:
        raise SystemExit("NOT PROVED")
    print("proved")


if __name__ == "__main__":
    main()
