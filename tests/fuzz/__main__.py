# SPDX-FileCopyrightText: 2026 The Switchfold Authors
# SPDX-License-Identifier: Apache-2.0
"""The long campaign of damaged datagrams: python -m fuzz [--schedules N] [--seed N].

Run in tests/, or by `make fuzz-datagrams SCHEDULES=20000`. `--schedules 1 --seed N` repeats one.
"""

from __future__ import annotations

import argparse
import sys
import tempfile
from pathlib import Path

from fuzz.datagram_fuzzer import build, run


def main() -> int:
    parser = argparse.ArgumentParser(prog="python -m fuzz", description=__doc__)
    parser.add_argument("--schedules", type=int, default=20_000, help="of each kind")
    parser.add_argument("--seed", type=int, default=1, help="of the first; the next has the next")
    options = parser.parse_args()
    with tempfile.TemporaryDirectory(prefix="fuzz-") as folder:
        fuzzer = build(Path(folder))
        for kind in ("faithful", "hostile"):
            counts = run(fuzzer, kind, options.schedules, options.seed)
            print(f"{kind}: {', '.join(f'{n} {name}' for name, n in counts.items())}", flush=True)
    return 0


if __name__ == "__main__":
    sys.exit(main())
