# SPDX-FileCopyrightText: 2026 The Switchfold Authors
# SPDX-License-Identifier: Apache-2.0
"""The differential fuzzer's commands.

    python -m differential fuzz [--programs NAME ...] [--json FILE ...] [--seconds S] [--seed N]
                                [--seeds N] [--packets N]
    python -m differential replay DIR

Run in tests/. `fuzz` ends with status 1 if it finds a difference, and prints how to replay it.
`--json` compares any program instead of those of this repository: the JSON of p4c-bm2-ss, with its
P4Info next to it as NAME.p4info.txtpb.
"""

from __future__ import annotations

import argparse
import itertools
import sys
import time
from pathlib import Path

from differential.bmv2_switch import RefusedError, missing_reason
from differential.campaign import Found, check, comparable, make_case, prepared, programs
from differential.case import load_case
from differential.comparison import run_case


def _fuzz(options: argparse.Namespace) -> int:
    chosen = [comparable(Found.of(path)) for path in options.json or ()] or [
        prepared(found)
        for found in programs()
        if not options.programs or found.name in options.programs
    ]
    end_s = time.monotonic() + options.seconds
    broken: set[str] = set()
    refused: set[str] = set()
    seeds = itertools.count(options.seed)
    for seed in itertools.islice(seeds, options.seeds):
        for program in chosen:
            if time.monotonic() > end_s or len(broken | refused) == len(chosen):
                return 1 if broken else 0
            if program.name in broken | refused:
                continue
            case = make_case(program, seed, options.packets)
            try:
                result, folder = check(case, program.name)
            except RefusedError as exc:
                print(f"{program.name}: {exc}")
                refused.add(program.name)
                continue
            print(
                f"{program.name} seed {seed}: {len(case.steps)} steps, {result.frames} frames out, "
                f"{len(result.endings)} ended BMv2, {result.leftovers} left out",
                flush=True,
            )
            if folder is not None:
                broken.add(program.name)
                print(f"{result.difference}\n  replay: python -m differential replay {folder}")
    return 1 if broken else 0


def _replay(folder: Path) -> int:
    result = run_case(load_case(folder))
    print(result.difference or "no difference")
    return 1 if result.difference else 0


def main() -> int:
    parser = argparse.ArgumentParser(prog="python -m differential", description=__doc__)
    commands = parser.add_subparsers(dest="command", required=True)
    fuzz = commands.add_parser("fuzz", help="random cases until time is up")
    fuzz.add_argument("--programs", nargs="*", help="names of programs; default: all")
    fuzz.add_argument("--json", nargs="*", type=Path, help="other programs; P4Info next to each")
    fuzz.add_argument("--seconds", type=float, default=60.0)
    fuzz.add_argument("--seed", type=int, default=1, help="the first seed")
    fuzz.add_argument("--seeds", type=int, help="number of seeds; default: all that time allows")
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
