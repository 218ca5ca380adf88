# SPDX-FileCopyrightText: 2026 The Switchfold Authors
# SPDX-License-Identifier: Apache-2.0
"""Tests that run alone in a process: no thread of an earlier test opens or closes a file there."""

from __future__ import annotations

import os
import subprocess
import sys

import pytest

MARK = "own_process"
_ALONE = "SWITCHFOLD_TEST_ALONE"


def run_apart(test: pytest.Function) -> bool:
    """Run a marked test by a pytest of its own; False if it is not marked or runs there now."""
    if test.get_closest_marker(MARK) is None or _ALONE in os.environ:
        return False
    environment = {k: v for k, v in os.environ.items() if not k.startswith("PYTEST_")}
    alone = [sys.executable, "-m", "pytest", "-q", "-p", "no:cacheprovider", "-p", "no:xdist"]
    if (seed := test.config.getoption("--thread-delays")) is not None:
        alone += ["--thread-delays", seed]
    ran = subprocess.run(
        [*alone, test.nodeid],
        env=environment | {_ALONE: "1"},
        cwd=test.config.rootpath,
        capture_output=True,
        text=True,
        check=False,
    )
    assert ran.returncode == 0, ran.stdout + ran.stderr
    assert "1 passed" in ran.stdout, ran.stdout
    return True
