# SPDX-FileCopyrightText: 2026 The Switchfold Authors
# SPDX-License-Identifier: Apache-2.0
"""Updates in many small messages or in few larger ones, with hot rows and without, side by side.

Workers push mini-batches of keys by Zipf's law. The same mini-batch leaves as one push, or as
several with a part of its keys each. All sums are compared with numpy's.
"""

from __future__ import annotations

import argparse
import sys
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final

import numpy as np

ROOT = Path(__file__).resolve().parents[2]
sys.path[:0] = [str(ROOT)]

from benchmarks.hot_rows.client_rig import ClientRig, plan_of  # noqa: E402
from benchmarks.hot_rows.messages_worker import PATHS  # noqa: E402
from benchmarks.support.machine import check_machine, describe_machine, machine_line  # noqa: E402
from benchmarks.support.results import parameters_of, write_json  # noqa: E402

MODULE: Final = "benchmarks.hot_rows.messages_worker"


@dataclass(frozen=True, kw_only=True)
class MessageFigures:
    """What was measured of one contender: medians over the repeats."""

    path: str
    parts: int
    p50_ms: float
    """Of an update, from the push of its mini-batch to its receipt."""
    p99_ms: float
    server_us: float
    """Processor time of all servers for each update."""
    pushes_per_s: float
    """Of all workers."""
    updates_per_s: float
    messages: float
    """Pushes and sums of rows that reach servers, for each 1,000 updates."""

    @classmethod
    def of(cls, path: str, parts: int, workers: Sequence[Any]) -> MessageFigures:
        """Return the figures of what the workers have recorded."""
        own = [
            [each for each in worker if (each["path"], each["parts"]) == (path, parts)]
            for worker in workers
        ]
        rows = [cls._row(repeat) for repeat in zip(*own, strict=True)]
        names = ("p50_ms", "p99_ms", "server_us", "pushes_per_s", "updates_per_s", "messages")
        medians = map(float, np.median(rows, axis=0))
        return cls(path=path, parts=parts, **dict(zip(names, medians, strict=True)))

    @staticmethod
    def _row(repeat: Sequence[Any]) -> list[float]:
        pushes = np.array([push for each in repeat for push in each["pushes"]])
        times_s, sizes = pushes[:, 0], pushes[:, 1].astype(np.int64)
        updates = int(sizes.sum())
        taken_s = max(each["ended_s"] for each in repeat) - min(each["begun_s"] for each in repeat)
        did = repeat[0]["servers"]
        return [
            *np.percentile(np.repeat(1e3 * times_s, sizes), (50, 99)),
            1e6 * did["processor_s"] / updates,
            times_s.size / taken_s,
            updates / taken_s,
            1e3 * (did["pushes"] + did["hot_sums"]) / updates,
        ]


HEADER: Final = (
    f"{'path':8} {'messages':>8} {'p50 ms':>8} {'p99 ms':>8} {'server us/update':>23}"
    f" {'pushes/s':>9} {'updates/s':>23} {'at servers':>11}"
)


def line_of(one: MessageFigures, base: MessageFigures) -> str:
    """Return a line; in brackets: ratios to small messages by TCP."""
    server = f"{one.server_us:.2f} ({one.server_us / base.server_us:.2f})"
    updates = f"{one.updates_per_s:.0f} ({one.updates_per_s / base.updates_per_s:.2f})"
    return (
        f"{one.path:8} {one.parts:8} {one.p50_ms:8.2f} {one.p99_ms:8.2f} {server:>23}"
        f" {one.pushes_per_s:9.0f} {updates:>23} {one.messages:11.1f}"
    )


def report(workers: Sequence[Any], parts: Sequence[int]) -> list[dict[str, Any]]:
    """Print the table; return it."""
    found = [MessageFigures.of(path, each, workers) for path in PATHS for each in parts]
    print(HEADER)
    for one in found:
        print(line_of(one, found[0]))
    return [vars(one) for one in found]


def parse(arguments: Sequence[str] | None = None) -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--workers", type=int, default=8)
    parser.add_argument(
        "--parts", type=int, nargs="+", default=[16, 4, 1], help="messages of a mini-batch"
    )
    parser.add_argument("--batch", type=int, default=512, help="uses of keys in a mini-batch")
    parser.add_argument("--steps", type=int, default=100, help="mini-batches of each worker")
    parser.add_argument("--window", type=int, default=4, help="mini-batches without receipts")
    parser.add_argument("--repeats", type=int, default=3)
    parser.add_argument("--warm-up-s", type=float, default=8.0)
    parser.add_argument("--flush-ms", type=float, default=30.0)
    parser.add_argument("--hot-keys", type=int, default=1408, help="on each server")
    parser.add_argument("--variant", choices=("wide", "narrow"), default="wide")
    parser.add_argument("--json", type=Path, help="file for the figures")
    return parser.parse_args(arguments)


def main() -> None:
    options = parse()
    check_machine(has_torch=False)
    machine = describe_machine(has_torch=False)
    print(machine_line(machine))
    plan = plan_of(options.workers, hot_keys=options.hot_keys, flush_s=options.flush_ms / 1e3)
    print(
        f"{plan.num_workers} workers, {plan.num_servers} servers, mini-batches of {options.batch}"
        f" uses, medians of {options.repeats} turns, all sums verified; in brackets: ratios to the"
        " first line"
    )
    rig = ClientRig(plan, variant=options.variant)
    found = report(rig.run(MODULE, vars(options) | {"json": None}), options.parts)
    if options.json:
        results = {"machine": machine, "parameters": parameters_of(options), "contenders": found}
        write_json(options.json, results)


if __name__ == "__main__":
    main()
