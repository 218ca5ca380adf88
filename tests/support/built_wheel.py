# SPDX-FileCopyrightText: 2026 The Switchfold Authors
# SPDX-License-Identifier: Apache-2.0
"""The sdist and the wheel of this tree, built once for all processes of a test run."""

from __future__ import annotations

import fcntl
import os
import shutil
import subprocess
import sys
import tempfile
from pathlib import Path

import pytest

from side_by_side import run_folder

ROOT = Path(__file__).resolve().parents[2]


def copy_sources(folder: Path, *more: str) -> None:
    """Copy what the package is built from, and more folders, without anything built."""
    ignored = shutil.ignore_patterns(
        ".*", "__pycache__", "*.egg-info", "*.so", "build", "report", "tests"
    )
    for name in ("src", "bmv2_topos", "controller", "hostlib", "softswitch", *more):
        shutil.copytree(ROOT / name, folder / name, symlinks=True, ignore=ignored)
    shutil.copytree(ROOT / "p4src", folder / "p4src", ignore=shutil.ignore_patterns("__pycache__"))
    for name in ("pyproject.toml", "setup.py", "README.md", "LICENSE"):
        shutil.copy(ROOT / name, folder / name)


def build(
    source: Path, folder: Path, *, is_isolated: bool = False, **variables: str
) -> subprocess.CompletedProcess[str]:
    """Make the sdist of a copy, and from that the wheel, in a folder, as `make wheel` does.

    Unless `is_isolated`, with the setuptools of this environment: no registry is asked.
    """
    command = [sys.executable, "-m", "build", "--outdir", str(folder)]
    if not is_isolated:
        command.append("--no-isolation")
    return subprocess.run(
        [*command, str(source)],
        env={**os.environ, **variables},
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
        check=False,
        timeout=600,
    )


@pytest.fixture(scope="session")
def made(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The folder with the sdist and the wheel of this tree."""
    folder = run_folder(tmp_path_factory) / "package"
    folder.mkdir(exist_ok=True)
    finished = folder / "dist"
    with (folder / "lock").open("w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        if not finished.exists():
            work = Path(tempfile.mkdtemp(dir=folder))
            copy_sources(work / "source")
            done = build(work / "source", work / "dist")
            assert done.returncode == 0, done.stdout
            (work / "dist").rename(finished)
    return finished


@pytest.fixture(scope="session")
def wheel(made: Path) -> Path:
    """The wheel of this tree."""
    (built,) = made.glob("*.whl")
    return built
