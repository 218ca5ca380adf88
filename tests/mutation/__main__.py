# SPDX-FileCopyrightText: 2026 The Switchfold Authors
# SPDX-License-Identifier: Apache-2.0
"""The long campaign of mutated frames: python -m mutation [--frames N] [--seed N] [PROGRAM ...].

Run in tests/, or by `make fuzz FRAMES=10000000`. All programs get equal shares of the frames.
"""

from __future__ import annotations

import argparse
import sys
import tempfile
from pathlib import Path

from differential.campaign import prepared, programs
from mutation.frame_fuzzer import FuzzerBuilder
from sanitized_program import run


def main() -> int:
    parser = argparse.ArgumentParser(prog="python -m mutation", description=__doc__)
    parser.add_argument("--frames", type=int, default=10_000_000, help="frames in all")
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("programs", nargs="*", help="names of programs; default: all")
    options = parser.parse_args()
    chosen = [item for item in programs() if not options.programs or item.name in options.programs]
    with tempfile.TemporaryDirectory(prefix="mutation-") as runtime:
        builder = FuzzerBuilder(Path(runtime), "-O1")
        for program in chosen:
            with tempfile.TemporaryDirectory(prefix="mutation-") as folder:
                fuzzer = builder.build(prepared(program).json, Path(folder))
                said = run(fuzzer, options.frames // len(chosen), options.seed)
                print(f"{program.name}: {said.strip().splitlines()[-1]}", flush=True)
    return 0


if __name__ == "__main__":
    sys.exit(main())
