# SPDX-FileCopyrightText: 2026 The Switchfold Authors
# SPDX-License-Identifier: Apache-2.0
"""The differential fuzzer's commands.

    python -m differential fuzz [--programs NAME ...] [--seconds S] [--seed N] [--packets N]
    python -m differential replay DIR

Run in tests/. `fuzz` ends with status 1 when a difference was found, and prints how to replay it.
"""

from __future__ import annotations

import argparse
import itertools
import sys
import time
from pathlib import Path

from differential.bmv2_switch import RefusedError, missing_reason
from differential.campaign import check, make_case, programs
from differential.case import load_case
from differential.comparison import run_case


def _fuzz(options: argparse.Namespace) -> int:
    chosen = [found for found in programs() if options.programs in ([], None)
              or found.name in options.programs]  # fmt: skip
    end_s = time.monotonic() + options.seconds
    broken: set[str] = set()
    for seed in itertools.count(options.seed):
        for program in chosen:
            if time.monotonic() > end_s or len(broken) == len(chosen):
                return 1 if broken else 0
            if program.name in broken:
                continue
            case = make_case(program, seed, options.packets)
            try:
                result, folder = check(case, program.name)
            except RefusedError as exc:
                print(f"{program.name}: {exc}")
                chosen.remove(program)
                break
            print(
                f"{program.name} seed {seed}: {len(case.steps)} steps, {result.frames} frames out, "
                f"{len(result.endings)} ended BMv2, {result.leftovers} left out",
                flush=True,
            )
            if folder is not None:
                broken.add(program.name)
                print(f"{result.difference}\n  replay: python -m differential replay {folder}")
    return 1


def _replay(folder: Path) -> int:
    result = run_case(load_case(folder))
    print(result.difference or "no difference")
    return 1 if result.difference else 0


def main() -> int:
    parser = argparse.ArgumentParser(prog="python -m differential", description=__doc__)
    commands = parser.add_subparsers(dest="command", required=True)
    fuzz = commands.add_parser("fuzz", help="random cases until time is up")
    fuzz.add_argument("--programs", nargs="*", help="names of programs; all unless given")
    fuzz.add_argument("--seconds", type=float, default=60.0)
    fuzz.add_argument("--seed", type=int, default=1, help="the first one")
    fuzz.add_argument("--packets", type=int, default=100, help="packets in each case")
    replay = commands.add_parser("replay", help="run a saved case again")
    replay.add_argument("folder", type=Path)
    options = parser.parse_args()
    reason = missing_reason()
    if reason is not None:
        print(f"cannot compare: {reason}")
        return 2
    return _fuzz(options) if options.command == "fuzz" else _replay(options.folder)


if __name__ == "__main__":
    sys.exit(main())
