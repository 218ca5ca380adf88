# SPDX-FileCopyrightText: 2026 The Switchfold Authors
# SPDX-License-Identifier: Apache-2.0
"""Prints the C text of a program: python -m switchfold.softswitch.generator program.json."""

import sys
from pathlib import Path

from ..errors import SoftswitchError
from ..program.bmv2_json import read_program
from . import generate


def main() -> int:
    """Run the command; returns the exit status."""
    if len(sys.argv) != 2:
        print("usage: python -m switchfold.softswitch.generator program.json", file=sys.stderr)
        return 2
    try:
        print(generate(read_program(Path(sys.argv[1]))), end="")
    except (SoftswitchError, OSError) as exc:
        print(exc, file=sys.stderr)
        return 1
    return 0


if __name__ == "__main__":
    sys.exit(main())
