# SPDX-FileCopyrightText: 2026 The Switchfold Authors
# SPDX-License-Identifier: Apache-2.0
"""Groups at the switch and at idle hosts beside direct updates: bytes, times and processor time.

Workers, idle hosts and a server's host are in network namespaces around softswitch; the
controller's scheduler plans, on a share of the links' rate. In each round, the first k workers
push an update of one size at once. The kinds take turns, round by round: added by the switch, added
by idle hosts, granted without groups, and over TCP without a scheduler. Then each worker pushes
again whenever its update is committed. After each round, the model must be the exact sum, and its
version the number of granted updates.
With k updates in a sum, the server's host needs to receive a k-th of the bytes. With --merged, sums
have given numbers of updates.
Run as root: python benchmarks/scheduler/live_groups.py
"""

from __future__ import annotations

import argparse
import sys
from collections.abc import Sequence
from dataclasses import asdict
from pathlib import Path
from typing import Any

ROOT = Path(__file__).resolve().parents[2]
sys.path[:0] = [str(ROOT), str(ROOT / "tests" / "support")]

from benchmarks.scheduler.group_figures import (  # noqa: E402
    COMPARISON_HEAD,
    COMPRESSION_HEAD,
    KINDS,
    PROCESSOR_HEAD,
    RATIOS_HEAD,
    Compression,
    GroupRound,
    LinkLimits,
    comparison,
    compression_lines,
    compressions,
    processor,
    ratios,
    withdrawals,
)
from benchmarks.scheduler.group_rig import (  # noqa: E402
    ClusterShape,
    KindRig,
    TrainingFigures,
    kind_rigs,
)
from benchmarks.support.machine import (  # noqa: E402
    check_machine,
    describe_machine,
    machine_line,
    parse_rate,
)
from benchmarks.support.results import parameters_of, write_json  # noqa: E402

MOST_REQUESTS = 64
"""In a batch of the controller by default."""
OfNumber = dict[str, list[GroupRound]]
"""Rounds of one number of workers by kind, in the order in which they took turns."""


def measure(rigs: list[KindRig], number: int, rounds: int, *, is_merged: bool) -> OfNumber:
    """Push in turn; the first round is a warm-up.

    `is_merged`: so many updates are to be in a sum. A host gathers them behind another update of
    their batch, which waits behind one that leads.
    """
    found: OfNumber = {rig.kind: [] for rig in rigs}
    for turn in range(rounds + 1):
        for rig in rigs:
            is_led = is_merged and rig.kind == "hosts"
            pushed = rig.push(number + 2 if is_led else number, is_led=is_led)
            if turn:
                found[rig.kind].append(pushed)
    print(f"{number} workers: {rounds} rounds of each kind", file=sys.stderr, flush=True)
    return found


def report(
    found: Sequence[OfNumber],
    limits: LinkLimits,
    compressed: list[Compression],
    trained: dict[str, TrainingFigures],
    *,
    is_merged: bool,
) -> str:
    """Return all tables; sums of given sizes have other waits, so nothing is said of times."""
    times = [
        [COMPARISON_HEAD, *(line for each in found for line in comparison(each, limits))],
        [RATIOS_HEAD, *(line for each in found for line in ratios(each))],
    ]
    parts = [
        *([] if is_merged else times),
        [PROCESSOR_HEAD, *(line for each in found for line in processor(each, limits))],
        [COMPRESSION_HEAD, *compression_lines(compressed)],
        [line for each in found for line in withdrawals(each)],
        [
            f"{KINDS[kind]}, pushing again at once: {each.commits_per_s:.2f} commits/s,"
            f" {each.bytes_per_commit / 1e6:.2f} MB into the server's host for each"
            for kind, each in trained.items()
        ],
    ]
    return "\n\n".join("\n".join(part) for part in parts if part)


def make_parser() -> argparse.ArgumentParser:
    """Return the options."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--kinds", nargs="+", choices=KINDS, default=list(KINDS), help="(all)")
    parser.add_argument(
        "--workers",
        type=int,
        nargs="+",
        default=[2, 3, 4, 6, 8],
        help="that push at once (2 3 4 6 8)",
    )
    parser.add_argument(
        "--merged",
        type=int,
        nargs="+",
        help="instead of --workers: updates in a sum; each number has a testbed of its own",
    )
    parser.add_argument("--idle", type=int, default=2, help="hosts that gather (2)")
    parser.add_argument("--megabytes", type=float, default=2.5, help="of an update (2.5)")
    parser.add_argument(
        "--rate", type=parse_rate, default=100_000_000, help="of the server's link (100M)"
    )
    parser.add_argument("--host-rate", type=parse_rate, help="of all other links (--rate)")
    parser.add_argument(
        "--batch-wait", type=float, default=0.05, help="seconds until a batch is closed (0.05)"
    )
    parser.add_argument("--rounds", type=int, default=5, help="after a warm-up (5)")
    parser.add_argument(
        "--seconds",
        type=float,
        default=0.0,
        help="of pushing again and again, for each kind, with the most workers (0: none)",
    )
    parser.add_argument("--json", type=Path, help="file that also gets the figures")
    parser.add_argument("--plot", type=Path, help="PNG file of bytes against updates in a sum")
    return parser


def shapes(options: argparse.Namespace) -> list[tuple[ClusterShape, list[int]]]:
    """Return testbeds, and how many workers push at once on each.

    With --merged, each number has a testbed; hosts need two updates more than are in their sums.
    """

    def shape(num_workers: int, batch_max: int) -> ClusterShape:
        return ClusterShape(
            kinds=options.kinds,
            num_workers=num_workers,
            num_idle=options.idle,
            num_values=int(options.megabytes * 1e6) // 4,
            rate_bits_per_s=options.rate,
            host_rate_bits_per_s=options.host_rate or options.rate,
            batch_wait_s=options.batch_wait,
            batch_max=batch_max,
        )

    if options.merged:
        return [(shape(members + 2, members + 1), [members]) for members in options.merged]
    return [(shape(max(options.workers), MOST_REQUESTS), options.workers)]


def main() -> int:
    """Measure and print."""
    options = make_parser().parse_args()
    check_machine(has_torch=False)
    machine = describe_machine(has_torch=False)
    print(machine_line(machine))
    limits = LinkLimits(num_values=int(options.megabytes * 1e6) // 4, rate_bits_per_s=options.rate)
    is_merged = bool(options.merged)
    host_rate = options.host_rate or options.rate
    print(
        f"updates of {limits.update_bytes / 1e6:g} MB, {options.rate / 1e6:g} Mbit/s at the server,"
        f" other links {host_rate / 1e6:g} Mbit/s, hosts that gather: {options.idle};"
        f" {options.rounds} rounds of each kind in turn;"
        " medians (least .. most); every model is the exact sum",
        flush=True,
    )
    found: list[OfNumber] = []
    trained: dict[str, TrainingFigures] = {}
    for shape, numbers in shapes(options):
        with kind_rigs(shape) as rigs:
            found += [
                measure(rigs, number, options.rounds, is_merged=is_merged) for number in numbers
            ]
            if options.seconds:
                trained = {rig.kind: rig.train(options.seconds, max(numbers)) for rig in rigs}
    rounds = [each for kinds in found for pushed in kinds.values() for each in pushed]
    compressed = compressions(rounds, limits)
    print(report(found, limits, compressed, trained, is_merged=is_merged))
    if options.json:
        content: dict[str, Any] = {
            "machine": machine,
            "parameters": parameters_of(options),
            "rounds": [asdict(each) | {"least_bytes": limits.bytes_of(each)} for each in rounds],
            "compression": [
                asdict(each) | {"ideal": each.ideal, "measured": each.measured}
                for each in compressed
            ],
            "trained": {kind: asdict(each) for kind, each in trained.items()},
        }
        write_json(options.json, content)
    if options.plot:
        from benchmarks.scheduler.group_plot import (  # noqa: PLC0415 - takes time to load
            draw_compression,
        )

        draw_compression(compressed, options.plot)
    return 0


if __name__ == "__main__":
    sys.exit(main())
