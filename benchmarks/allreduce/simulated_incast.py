# SPDX-FileCopyrightText: 2026 The Switchfold Authors
# SPDX-License-Identifier: Apache-2.0
"""What many senders to one root cost, and a flow like TCP's beside them, in simulated time.

The job is transposed: each of its workers' hosts is the root of an equal part, and gets the
contributions of all others over its one link. The queue of a link is short. With a smaller window,
fewer workers send to a root at once. The streams are those of the host library, in C; links, hosts
and clock are simulated (loss_simulation/). A link carries 8,000 packets/s.

    python benchmarks/allreduce/simulated_incast.py --queues 10,21,64 --windows 8,16,24,256
    python benchmarks/allreduce/simulated_incast.py --queues 64 --windows 256 --flows 1
    python benchmarks/allreduce/simulated_incast.py --dynamic --windows 256 --loss 0.01
"""

from __future__ import annotations

import argparse
import sys
import tempfile
from pathlib import Path

import numpy as np

ROOT = Path(__file__).resolve().parents[2]
sys.path[:0] = [str(ROOT)]

from benchmarks.allreduce.simulated_loss import SimulatedRun, compile_simulation  # noqa: E402

CHUNKS = 800
HEADING = (
    "| queue | marks from | incast | window | sums | mean, ms | sent again | dropped | job "
    "| flows |\n"
    "|---:|---:|---|---:|---:|---:|---:|---:|---:|---:|"
)
PACKETS_PER_S = 8000.0


def job_share(run: SimulatedRun, num_workers: int) -> float:
    """Return the share of the link to a host that a job fills, without repetitions.

    A chunk brings a root the contributions of all others, or a worker a result from another root.
    """
    packets = 2 * (num_workers - 1) / num_workers * CHUNKS
    return packets / float(np.mean(run.times)) / PACKETS_PER_S


def flow_share(run: SimulatedRun) -> float:
    """Return the share of the link to host 0 that the flows fill."""
    return sum(down for _, down in run.flows) / PACKETS_PER_S


def row(program: Path, options: argparse.Namespace, queue: str, window: int) -> str:
    """Return the table's row for a queue, "packets" or "packets:mark", and a window in chunks."""
    packets, _, mark = queue.partition(":")
    marks = {"mark": float(mark)} if mark else {}
    settings = {"workers": options.workers, "transposed": 1, "chunks": CHUNKS, "window": window}
    settings |= {"queue": float(packets), "flows": options.flows, "seconds": options.seconds}
    settings |= {"incast": int(options.dynamic), "loss": options.loss}
    run = SimulatedRun(program, **settings, **marks)
    if not run.times:
        raise SystemExit(f"no sum ended in {options.seconds} s: give more by --seconds")
    sent, again, *_ = run.packets
    incast = "dynamic" if options.dynamic else "-"
    return (
        f"| {packets} | {mark or '-'} | {incast} | {window} | {len(run.times)} "
        f"| {1000 * np.mean(run.times):.0f} | {100 * again / sent:.1f} % | {run.dropped} "
        f"| {100 * job_share(run, options.workers):.0f} % | {100 * flow_share(run):.0f} % |"
    )


def main() -> None:
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("--workers", type=int, default=8, help="default %(default)s")
    parser.add_argument(
        "--queues",
        default="10,21,64,64:12",
        help="in packets, or packets:mark, default %(default)s",
    )
    parser.add_argument("--windows", default="8,16,24,256", help="in chunks, default %(default)s")
    parser.add_argument("--flows", type=int, default=0, help="to and from host 0, default 0")
    parser.add_argument(
        "--dynamic", action="store_true", help="workers adapt how much is under way to each root"
    )
    parser.add_argument("--loss", type=float, default=0.0, help="share per link, default 0")
    parser.add_argument("--seconds", type=float, default=5.0, help="simulated, default 5")
    options = parser.parse_args()
    print(HEADING)
    with tempfile.TemporaryDirectory() as folder:
        program = Path(folder) / "loss_simulation"
        compile_simulation(program)
        for queue in options.queues.split(","):
            for window in map(int, options.windows.split(",")):
                print(row(program, options, queue, window), flush=True)


if __name__ == "__main__":
    main()
