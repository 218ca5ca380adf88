# SPDX-FileCopyrightText: 2026 The Switchfold Authors
# SPDX-License-Identifier: Apache-2.0
"""Check the Promela model of the slot protocol in its variants: `make model-check`."""

from __future__ import annotations

import re
import shutil
import subprocess
import sys
import tempfile
from dataclasses import dataclass, field
from pathlib import Path

MODEL = Path(__file__).with_name("slot_protocol.pml")
TIMEOUT_S = 240


@dataclass(frozen=True, kw_only=True)
class Variant:
    """One run of the model checker."""

    name: str
    shows: str
    defines: dict[str, int]
    has_error: bool = False
    """Whether the checker must find an error."""
    compile_flags: list[str] = field(default_factory=lambda: ["-DSAFETY"])
    run_flags: list[str] = field(default_factory=list)


VARIANTS = [
    Variant(
        name="exactly-once",
        shows="3 workers, both copies, loss, duplication, any delay, new generation: sums exact",
        defines={"ROUNDS": 8, "GENERATIONS": 2},
    ),
    Variant(
        name="partial",
        shows="any worker may flush at any time: every result of a round is the same and exact",
        defines={"ROUNDS": 3, "GENERATIONS": 1, "PARTIAL": 1},
    ),
    Variant(
        name="progress",
        shows="if retransmissions get through in the end, all rounds of all workers end",
        defines={"ROUNDS": 3, "GENERATIONS": 2, "LIVENESS": 1},
        compile_flags=["-DNFAIR=5"],
        run_flags=["-a", "-f"],
    ),
    Variant(
        name="no round check",
        shows="a version bit in place of the round (SwitchML's rule): a late duplicate corrupts",
        defines={"ROUNDS": 4, "GENERATIONS": 1, "ROUND_CHECK": 0},
        has_error=True,
    ),
]


@dataclass(frozen=True)
class Verdict:
    """What the checker found in one variant."""

    variant: Variant
    num_errors: int
    num_states: int
    is_complete: bool
    error: str
    trail: str

    @property
    def is_as_expected(self) -> bool:
        """Whether errors were found exactly where there must be some, by a complete search."""
        if self.variant.has_error:
            return self.num_errors > 0
        return self.num_errors == 0 and self.is_complete


def _run(command: list[str], folder: Path) -> str:
    done = subprocess.run(
        command, cwd=folder, capture_output=True, text=True, timeout=TIMEOUT_S, check=False
    )
    if done.returncode != 0:
        raise RuntimeError(f"{' '.join(command)} failed: {done.stdout}{done.stderr}")
    return done.stdout


def check(variant: Variant) -> Verdict:
    """Run spin on one variant in a temporary folder.

    Raises:
        RuntimeError: spin, the compiler or the checker itself failed.
    """
    defines = [f"-D{name}={value}" for name, value in variant.defines.items()]
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        shutil.copy(MODEL, folder)
        _run(["spin", *defines, "-a", MODEL.name], folder)
        compiler = shutil.which("cc") or "gcc"
        flags = ["-O2", "-w", "-DMEMLIM=2000", *variant.compile_flags]
        _run([compiler, *flags, "-o", "pan", "pan.c"], folder)
        output = _run(["./pan", "-m1000000", *variant.run_flags], folder)
        found = re.search(r"errors: (\d+)", output)
        states = re.search(r"(\d+) states, stored", output)
        if found is None or states is None:
            raise RuntimeError(f"the checker of {variant.name!r} gave no verdict:\n{output}")
        error = re.search(r"^pan:1: (.*)$", output, re.MULTILINE)
        trail = ""
        if int(found[1]):
            trail = _run(["spin", *defines, "-t", "-p", "-g", MODEL.name], folder)
        is_complete = not re.search(r"max search depth|memory bound|Search not completed", output)
        return Verdict(
            variant, int(found[1]), int(states[1]), is_complete, error[1] if error else "", trail
        )


def main() -> int:
    """Check every variant, print the verdicts and the way to the known corruption."""
    if shutil.which("spin") is None:
        print("model-check: spin is not on the PATH; on Debian or Ubuntu: apt-get install spin")
        return 3
    is_good = True
    for variant in VARIANTS:
        verdict = check(variant)
        is_good = is_good and verdict.is_as_expected
        word = "as expected" if verdict.is_as_expected else "NOT AS EXPECTED"
        print(f"{variant.name}: {variant.shows}")
        print(f"  {verdict.num_states} states, {verdict.num_errors} errors, {word}")
        if verdict.error:
            print(f"  found: {verdict.error}")
            writes = [line for line in verdict.trail.splitlines() if "assert" in line]
            print(
                f"  trail: {len(verdict.trail.splitlines())} lines, ends in: {writes[-1].strip()}"
            )
    return 0 if is_good else 1


if __name__ == "__main__":
    sys.exit(main())
