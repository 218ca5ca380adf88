# SPDX-FileCopyrightText: 2026 The Switchfold Authors
# SPDX-License-Identifier: Apache-2.0
"""Check the Promela models of slots, hot rows and tolerated loss: `make model-check`."""

from __future__ import annotations

import re
import shutil
import subprocess
import sys
import tempfile
from dataclasses import dataclass
from pathlib import Path

from model_variant import Variant
from model_variants import VARIANTS

FOLDER = Path(__file__).parent
TIMEOUT_S = 240
MAX_DEPTH = 100_000
"""Steps; a search that needs more counts as incomplete."""
TABLE_LOG2 = 22
"""Of the checker's hash table, for up to a few million states."""


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
        """Whether the variant has an error if it must have one, or none in a complete search."""
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
        shutil.copy(FOLDER / variant.model, folder)
        _run(["spin", *defines, "-a", variant.model], folder)
        compiler = shutil.which("cc") or "gcc"
        level = "-O1" if variant.is_large or variant.is_long else "-O0"
        flags = [level, "-w", "-DMEMLIM=2000"]
        flags.append("-DNFAIR=6" if variant.is_about_progress else "-DSAFETY")
        _run([compiler, *flags, "-o", "pan", "pan.c"], folder)
        how = ["-a", "-f"] if variant.is_about_progress else []
        output = _run(["./pan", f"-m{MAX_DEPTH}", f"-w{TABLE_LOG2}", *how], folder)
        found = re.search(r"errors: (\d+)", output)
        states = re.search(r"(\d+) states, stored", output)
        if found is None or states is None:
            raise RuntimeError(f"the checker of {variant.name!r} gave no verdict:\n{output}")
        error = re.search(r"^pan:1: (.*)$", output, re.MULTILINE)
        trail = ""
        if int(found[1]):
            trail = _run(["spin", *defines, "-t", "-p", "-g", variant.model], folder)
        is_complete = not re.search(r"max search depth|memory bound|Search not completed", output)
        return Verdict(
            variant, int(found[1]), int(states[1]), is_complete, error[1] if error else "", trail
        )


def main() -> int:
    """Check every variant; print the verdicts, and the length of the trail to each error."""
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
            print(f"  trail: {len(verdict.trail.splitlines())} lines")
    return 0 if is_good else 1


if __name__ == "__main__":
    sys.exit(main())
