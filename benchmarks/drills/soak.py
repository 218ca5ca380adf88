# SPDX-FileCopyrightText: 2026 The Switchfold Authors
# SPDX-License-Identifier: Apache-2.0
"""Soak: mixed jobs with random drills for an hour; nothing may leak, and latency stays flat.

Ends with status 1 if something has leaked, if a log cannot be read, or if latency has risen. The
last is of the machine, too: run it where nothing else does.
"""

from __future__ import annotations

import argparse
import math
import statistics
import sys
import tempfile
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
sys.path[:0] = [str(ROOT), str(ROOT / "tests" / "support")]

from benchmarks.drills.soak_run import Soak, SoakRecord  # noqa: E402
from benchmarks.drills.soak_verdict import (  # noqa: E402
    MOST_DRIFT,
    drift,
    problems,
    repeated_line,
)
from benchmarks.support.machine import (  # noqa: E402
    check_machine,
    describe_machine,
    machine_line,
)
from benchmarks.support.results import write_json  # noqa: E402

PARTS = 6
"""Lines of the table of latencies."""


def figures(record: SoakRecord) -> list[str]:
    """Return what a soak has seen, line by line."""
    lines = [
        f"{record.seconds / 60:.1f} minutes, {record.rounds} rounds; verified: {record.tensors}"
        f" sums, {record.pushes} pushes",
        "time between tensors while nothing happens, over the soak (median of rounds, worst):",
    ]
    size = max(1, -(-len(record.latencies_ms) // PARTS))
    for begin in range(0, len(record.latencies_ms), size):
        part = record.latencies_ms[begin : begin + size]
        median = statistics.median(each[0] for each in part)
        worst = max(each[1] for each in part)
        lines.append(
            f"  rounds {begin + 1} to {begin + len(part)}: {median:.2f} ms, {worst:.0f} ms"
        )
    change = drift(record)
    lines.append(
        "too few rounds to tell whether latency is flat"
        if math.isnan(change)
        else f"last third of the rounds over the first third: {change:.2f} (limit {MOST_DRIFT})"
    )
    for name, samples in record.footprints.items():
        first, last = samples[0], samples[-1]
        lines.append(
            f"{name}: memory {first.memory_bytes / 1e6:.1f} to {last.memory_bytes / 1e6:.1f} MB,"
            f" descriptors {first.descriptors} to {last.descriptors},"
            f" threads {first.threads} to {last.threads}"
            f" (and {first.pool_threads} to {last.pool_threads} that serve calls)"
        )
    for name, log in record.logs.items():
        text, times = repeated_line(log)
        lines.append(f"log of {name}: {len(log)} lines; most often ({times}): {text[:100]}")
    return lines


def main() -> int:
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("--minutes", type=float, default=60.0, help="default %(default)s")
    parser.add_argument("--seed", type=int, default=1, help="of the drills, default %(default)s")
    parser.add_argument("--out", type=Path, default=ROOT / "benchmarks" / "results")
    options = parser.parse_args()
    check_machine(has_torch=False)
    machine = describe_machine(has_torch=False)
    print(machine_line(machine), flush=True)
    with tempfile.TemporaryDirectory(prefix="soak") as folder:
        soak = Soak(Path(folder), options.seed, lambda text: print(f"  {text}", flush=True))
        record = soak.run(60 * options.minutes)
    found = problems(record)
    if drift(record) > MOST_DRIFT:
        found.append(f"latency is not flat: it has risen {drift(record):.2f}-fold")
    print("\n".join(["", *figures(record), *(found or ["nothing has leaked"])]))
    content = {"machine": machine, "figures": figures(record), "problems": found}
    content["latencies_ms"] = record.latencies_ms
    write_json(options.out / "soak.json", content)
    return 1 if found else 0


if __name__ == "__main__":
    sys.exit(main())
