# SPDX-FileCopyrightText: 2026 The Switchfold Authors
# SPDX-License-Identifier: Apache-2.0
"""Time of sums over lossy links as a multiple of the lossless time, in simulated time.

The streams are those of the host library, in C; links, switch and clock are simulated
(loss_simulation/). So the figures do not depend on the machine. A row has the sums of all seeds.
For random loss, `limit` is the time of the best repair by senders who do not know whose packet was
lost: until it has the result, each worker sends its contribution again, and no packet in vain.
With `--tolerated`, sums may lack that share, and rows compare selective repair with tolerance.
With `--stale`, each worker may do without that share of its results; rows compare likewise.
With `--transposed`, each worker's host has a switch, as in a transposed job. With `--uplink`, two
hosts each share a leaf, whose links to the other leaves have that rate.

    python benchmarks/allreduce/simulated_loss.py --workers 2,4 --loss 0.05,0.2 --seconds 5
    python benchmarks/allreduce/simulated_loss.py --tolerated 0.1 --workers 4 --chunks 2000
    python benchmarks/allreduce/simulated_loss.py --stale 0.1 --workers 4 --chunks 2000
    python benchmarks/allreduce/simulated_loss.py --transposed --rate 2090 --uplink 1045
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
    "slots": (
        "stream",
        "closing",
        "tail",
        "recovery",
        "congestion",
        "incast",
        "source",
        "straggler",
        "tolerance",
        "stale",
    ),
    "timing": ("rtt", "trips"),
    "values": ("quantization", "exact", "limbs", "limb_sums", "ordered", "sums"),
}
FLAGS = [
    "-O2",
    "-std=c11",
    "-D_GNU_SOURCE",
    "-ffp-contract=off",
    "-fno-math-errno",
    "-fno-trapping-math",
]
LOSSES = "0.001,0.01,0.05,0.1,0.2,0.6:5:50,0.9:5:50,0.6:50:500,0.9:50:500"
TOLERATED_LOSSES = ",".join(
    f"{share}{direction}" for direction in (":up", ":down", "") for share in (0.01, 0.05, 0.1, 0.2)
)
STALE_LOSSES = "0.01:down,0.05:down,0.1:down,0.01,0.05,0.1,0.05:up"
STALE_HEADING = (
    "| workers | lost | of | repair: mean | p99 | sent again | stale: mean | p99 | sent again "
    "| stale results |\n|---|---|---|---|---|---|---|---|---|---|"
)
LOSSLESS_S = 5
DIRECTIONS = {"up": ("up", "contributions"), "down": ("down", "results"), "": ("loss", "both")}
TOLERATED_HEADING = (
    "| workers | lost | of | repair: mean | p99 | sent again | tolerance: mean | p99 | sent again "
    "| flushes | coverage |\n|---|---|---|---|---|---|---|---|---|---|---|"
)
HEADING = (
    "| workers | loss | sums | p50 | p99 | mean | limit | sent again | by later results "
    "| by probes |\n|---|---|---|---|---|---|---|---|---|---|"
)


def compile_simulation(program: Path) -> None:
    """Compile the simulation and the streams."""
    sources = [NATIVE / part / f"{name}.c" for part, names in MODULES.items() for name in names]
    sources += Path(__file__).with_name("loss_simulation").glob("*.c")
    command = ["gcc", *FLAGS, f"-I{NATIVE}", *sources, "-lm", "-lpthread", "-o", program]
    subprocess.run(command, check=True)


class SimulatedRun:
    """What a run of the program says."""

    def __init__(self, program: Path, **settings: float | Path) -> None:
        """`settings` as the program names them."""
        arguments = [str(part) for setting in settings.items() for part in setting]
        output = subprocess.run([program, *arguments], check=True, capture_output=True, text=True)
        lines = [line.split() for line in output.stdout.splitlines()]
        named = {words[0]: words[1:] for words in lines if len(words) > 1}
        flows = [words[1:] for words in lines if words[0] == "flow"]
        self.times = [float(words[0]) for words in lines if len(words) == 1]
        """Of each sum."""
        self.packets = np.array([int(word) for word in named["counters"][:4]])
        """Sent, sent again, and so by later results and by probes."""
        self.marked, self.dropped = (int(word) for word in named["counters"][4:])
        """Results with a mark, and packets that found a queue full."""
        self.stale = float(named["stale"][0])
        """Share of results that workers have done without."""
        self.flushes, self.coverage = int(named["tolerance"][0]), float(named["tolerance"][1])
        self.flows = [(float(up), float(down)) for _, up, down in flows]
        """Packets a second that came over, by flow: from host 0, and to it."""


def links(options: argparse.Namespace) -> dict[str, float]:
    """Return the settings of the network."""
    found: dict[str, float] = {"chunks": options.chunks, "rate": options.rate}
    if options.transposed:
        found["transposed"] = 1
    if options.uplink is not None:
        found["uplink"] = options.uplink
    return found


def limit(num_workers: int, loss: float) -> float:
    """Return how often a worker sends a chunk at least, on average."""
    until_complete = sum(1 - (1 - loss**sent) ** num_workers for sent in range(1000))
    return until_complete + loss / (1 - loss) ** 2  # a replay needs both directions


def check_times(times: list[float], options: argparse.Namespace) -> None:
    """SystemExit if no sum has ended."""
    if not times:
        raise SystemExit(f"no sum ended in {options.seconds} s: give more by --seconds")


def tolerated_row(program: Path, options: argparse.Namespace, num_workers: int, text: str) -> str:
    """Return the row that compares repair and tolerance, for a loss, "loss:up" or "loss:down".

    With `--stale` it compares repair and stale results.
    """
    share, _, direction = text.partition(":")
    if direction not in DIRECTIONS:
        raise SystemExit(
            f"--loss {text} with --tolerated or --stale: give SHARE, SHARE:up or SHARE:down"
        )
    setting, of = DIRECTIONS[direction]
    common = {"workers": num_workers, **links(options)}
    lossless_s = float(np.median(SimulatedRun(program, **common, seconds=LOSSLESS_S).times))
    common |= {setting: float(share), "seconds": options.seconds}
    common |= {"adaptive": int(options.late_wait == "adaptive"), "nap": options.nap}
    common |= {"awake": options.awake}
    cells: list[str] = []
    flushes = coverage = stale = 0.0
    is_stale = options.stale is not None
    for share_let_go in (0.0, options.stale if is_stale else options.tolerated):
        common["stale" if is_stale else "tolerated"] = share_let_go
        seeds = range(1, options.seeds + 1)
        runs = [SimulatedRun(program, **common, seed=seed) for seed in seeds]
        times = [time for run in runs for time in run.times]
        check_times(times, options)
        sent, again, *_ = np.sum([run.packets for run in runs], axis=0)
        p99 = np.percentile(times, 99) / lossless_s
        cells.append(f"{np.mean(times) / lossless_s:.2f} | {p99:.2f} | {100 * again / sent:.1f} %")
        flushes = 100 * sum(run.flushes for run in runs) / sent
        coverage = float(np.mean([run.coverage for run in runs]))
        stale = 100 * float(np.mean([run.stale for run in runs]))
    if is_stale:
        return (
            f"| {num_workers} | {100 * float(share):g} % | {of} | {' | '.join(cells)} "
            f"| {stale:.2f} % |"
        )
    return (
        f"| {num_workers} | {100 * float(share):g} % | {of} | {' | '.join(cells)} "
        f"| {flushes:.1f} % | {coverage:.3f} |"
    )


def row(program: Path, options: argparse.Namespace, num_workers: int, text: str) -> str:
    """Return the table's row for a loss, or for a burst "loss:on_ms:off_ms"."""
    common = {"workers": num_workers, **links(options)}
    lossless_s = float(np.median(SimulatedRun(program, **common, seconds=LOSSLESS_S).times))
    share, *means_ms = (float(part) for part in text.split(":"))
    name = f"{100 * share:g} %"
    if means_ms:
        on_ms, off_ms = means_ms
        settings = {"burst": share, "on": on_ms / 1000, "off": off_ms / 1000}
        name, best = f"{name} for {on_ms:g} ms of {on_ms + off_ms:g}", ""
    else:
        settings = {"loss": share}
        best = "" if options.transposed else f"{limit(num_workers, share):.2f}"
    times: list[float] = []
    counts = np.zeros(4)
    for seed in range(1, options.seeds + 1):
        run = SimulatedRun(program, **common, **settings, seed=seed, seconds=options.seconds)
        times += run.times
        counts += run.packets
    check_times(times, options)
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
        help="loss per hop, or loss:on:off of bursts with these mean times in ms;"
        " with --tolerated, loss:up is of contributions and loss:down of results alone",
    )
    parser.add_argument("--tolerated", type=float, help="share of contributions that sums may lack")
    parser.add_argument("--stale", type=float, help="share of results that workers do without")
    parser.add_argument(
        "--late-wait", choices=("silence", "adaptive"), default="silence", help="with --tolerated"
    )
    parser.add_argument("--nap", type=float, default=0.0, help="s that workers sleep now and then")
    parser.add_argument("--awake", type=float, default=0.2, help="s between naps, default 0.2")
    parser.add_argument("--seconds", type=float, default=20.0, help="simulated, default 20")
    parser.add_argument("--seeds", type=int, default=8, help="default 8")
    parser.add_argument("--transposed", action="store_true", help="a switch on each worker's host")
    parser.add_argument(
        "--rate", type=float, default=8000.0, help="of hosts' links in packets/s, default 8000"
    )
    parser.add_argument("--uplink", type=float, help="of leaves' links; default: no leaves")
    parser.add_argument("--chunks", type=int, default=400, help="of a tensor, default 400")
    options = parser.parse_args()
    if options.uplink is not None and not options.transposed:
        raise SystemExit("--uplink: only with --transposed")
    is_stale, is_tolerant = options.stale is not None, options.tolerated is not None
    if is_stale and is_tolerant:
        raise SystemExit("--tolerated and --stale: give one of them")
    losses, heading = LOSSES, HEADING
    if is_tolerant:
        losses, heading = TOLERATED_LOSSES, TOLERATED_HEADING
    elif is_stale:
        losses, heading = STALE_LOSSES, STALE_HEADING
    losses = options.loss or losses
    print(heading)
    with tempfile.TemporaryDirectory() as folder:
        program = Path(folder) / "loss_simulation"
        compile_simulation(program)
        for number in map(int, options.workers.split(",")):
            for text in losses.split(","):
                of = tolerated_row if is_tolerant or is_stale else row
                print(of(program, options, number, text), flush=True)


if __name__ == "__main__":
    main()
