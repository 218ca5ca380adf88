# SPDX-FileCopyrightText: 2026 The Switchfold Authors
# SPDX-License-Identifier: Apache-2.0
"""Time of sums over lossy links as a multiple of the lossless time, in simulated time.

The streams are those of the host library, in C; links, switch and clock are simulated
(loss_simulation.c). So the figures do not depend on the machine. A row has the sums of all seeds.
For random loss, `limit` is the time of the best repair by senders who do not know whose packet was
lost: until it has the result, each worker sends its contribution again, and no packet in vain.

    python benchmarks/allreduce/simulated_loss.py --workers 2,4 --loss 0.05,0.2 --seconds 5
"""

from __future__ import annotations

import argparse
import subprocess
import tempfile
from pathlib import Path

import numpy as np

ROOT = Path(__file__).resolve().parents[2]
NATIVE = ROOT / "hostlib" / "native"
MODULES = {
    "slots": ("stream", "recovery", "congestion", "rtt", "source", "straggler", "tolerance"),
    "values": ("quantization", "exact", "limbs", "limb_sums", "sums"),
}
FLAGS = [
    "-O2",
    "-std=c11",
    "-D_GNU_SOURCE",
    "-ffp-contract=off",
    "-fno-math-errno",
    "-fno-trapping-math",
]
HEADING = (
    "| workers | loss | sums | p50 | p99 | mean | limit | sent again | by later results "
    "| by probes |\n|---|---|---|---|---|---|---|---|---|---|"
)


def compile_simulation(program: Path) -> None:
    """Compile the simulation and the streams."""
    sources = [NATIVE / part / f"{name}.c" for part, names in MODULES.items() for name in names]
    main_file = Path(__file__).with_name("loss_simulation.c")
    command = ["gcc", *FLAGS, f"-I{NATIVE}", main_file, *sources, "-lm", "-lpthread", "-o", program]
    subprocess.run(command, check=True)


def simulate(program: Path, **settings: float) -> tuple[list[float], list[int]]:
    """Return the time of each sum, and packets sent, sent again, and so by results and probes."""
    arguments = [str(part) for setting in settings.items() for part in setting]
    output = subprocess.run([program, *arguments], check=True, capture_output=True, text=True)
    lines = [line.split() for line in output.stdout.splitlines()]
    times = [float(words[0]) for words in lines if len(words) == 1]
    return times, next([int(word) for word in words[1:5]] for words in lines if len(words) == 7)


def limit(num_workers: int, loss: float) -> float:
    """Return how often a worker sends a chunk at least, on average."""
    until_complete = sum(1 - (1 - loss**sent) ** num_workers for sent in range(1000))
    return until_complete + loss / (1 - loss) ** 2  # a replay needs both directions


def row(program: Path, options: argparse.Namespace, num_workers: int, text: str) -> str:
    """Return the table's row for a loss, or for a burst "loss:on_ms:off_ms"."""
    common = {"workers": num_workers, "chunks": options.chunks}
    lossless_s = float(np.median(simulate(program, **common, seconds=1)[0]))
    share, *means_ms = (float(part) for part in text.split(":"))
    name = f"{100 * share:g} %"
    if means_ms:
        on_ms, off_ms = means_ms
        settings = {"burst": share, "on": on_ms / 1000, "off": off_ms / 1000}
        name, best = f"{name} for {on_ms:g} ms of {on_ms + off_ms:g}", ""
    else:
        settings, best = {"loss": share}, f"{limit(num_workers, share):.2f}"
    times: list[float] = []
    counts = np.zeros(4)
    for seed in range(1, options.seeds + 1):
        more, counted = simulate(program, **common, **settings, seed=seed, seconds=options.seconds)
        times += more
        counts += counted
    if not times:
        raise SystemExit(f"no sum ended in {options.seconds} s: give more by --seconds")
    p50, p99 = np.percentile(times, [50, 99]) / lossless_s
    sent, again, fast, probes = counts
    return (
        f"| {num_workers} | {name} | {len(times)} | {p50:.2f} | {p99:.2f} "
        f"| {np.mean(times) / lossless_s:.2f} | {best} | {100 * again / (sent + again):.0f} % "
        f"| {100 * fast / max(1, again):.1f} % | {100 * probes / max(1, again):.1f} % |"
    )


def main() -> None:
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("--workers", default="2,4,16", help="default %(default)s")
    parser.add_argument(
        "--loss",
        default="0.001,0.01,0.05,0.1,0.2,0.6:5:50,0.9:5:50,0.6:50:500,0.9:50:500",
        help="loss per hop, or loss:on:off of bursts with these mean times in ms",
    )
    parser.add_argument("--seconds", type=float, default=20.0, help="simulated, default 20")
    parser.add_argument("--seeds", type=int, default=8, help="default 8")
    parser.add_argument("--chunks", type=int, default=400, help="of a tensor, default 400")
    options = parser.parse_args()
    print(HEADING)
    with tempfile.TemporaryDirectory() as folder:
        program = Path(folder) / "loss_simulation"
        compile_simulation(program)
        for number in map(int, options.workers.split(",")):
            for text in options.loss.split(","):
                print(row(program, options, number, text), flush=True)


if __name__ == "__main__":
    main()
