# SPDX-FileCopyrightText: 2026 The Switchfold Authors
# SPDX-License-Identifier: Apache-2.0
"""Commands of `switchfold testbed` in processes of their own, with records of a test."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

from switchfold.bmv2_topos.config import child_environment

TESTBED = """
import sys
from pathlib import Path
from switchfold.bmv2_topos import state
state.records_directory = lambda: Path(sys.argv[1])
from switchfold.bmv2_topos.commands.testbed import testbed
testbed(sys.argv[2:])
"""


def run_testbed(
    records: Path, *words: str, folder: Path | None = None
) -> subprocess.CompletedProcess[str]:
    """Run `switchfold testbed`, in `folder` if it is given."""
    return subprocess.run(
        [sys.executable, "-c", TESTBED, str(records), *words],
        cwd=folder,
        capture_output=True,
        text=True,
        check=False,
        timeout=400,
        env=child_environment(records),
    )
