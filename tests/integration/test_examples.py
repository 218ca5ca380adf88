# SPDX-FileCopyrightText: 2026 The Switchfold Authors
# SPDX-License-Identifier: Apache-2.0
"""The examples run unchanged, and the README's example uses the library as it is."""

from __future__ import annotations

import inspect
import os
import re
import subprocess
import sys
from pathlib import Path

import pytest

from switchfold import hostlib

ROOT = Path(__file__).resolve().parents[2]
EXAMPLES = ROOT / "examples"


def run_example(name: str) -> subprocess.CompletedProcess[str]:
    environment = {**os.environ, "PYTHONPATH": str(ROOT / "src")}
    environment = {k: v for k, v in environment.items() if not k.startswith("SWITCHFOLD_")}
    return subprocess.run(
        [sys.executable, str(EXAMPLES / name)],
        capture_output=True,
        text=True,
        check=False,
        timeout=240,
        env=environment,
    )


def test_allreduce_sums_in_one_process() -> None:
    done = run_example("allreduce.py")
    assert done.returncode == 0, done.stderr
    assert "identical on all workers: True" in done.stdout
    found = re.search(r"largest error: (\S+)", done.stdout)
    assert found is not None, done.stdout
    assert float(found[1]) < 1e-6


def test_trees_sum_over_both_spines() -> None:
    done = run_example("trees.py")
    assert done.returncode == 0, done.stdout + done.stderr
    for worker_id in range(4):
        assert f"worker {worker_id}: 2 trees, exact: True" in done.stdout
    (array_bytes,) = map(int, re.findall(r"an array has (\d+) bytes", done.stdout))
    links = re.findall(r"^(s\d) - (s\d): (\d+) up, (\d+) down$", done.stdout, re.MULTILINE)
    assert [link[:2] for link in links] == [("s1", "s3"), ("s1", "s4"), ("s2", "s3"), ("s2", "s4")]
    for first, second in (links[:2], links[2:]):  # of one leaf: half of the slots on each
        for direction in (2, 3):
            carried = [int(first[direction]), int(second[direction])]
            assert min(carried) > 0.4 * array_bytes
            assert sum(carried) > array_bytes


def test_join_job_says_what_it_needs() -> None:
    done = run_example("join_job.py")
    assert done.returncode != 0
    assert "environment variables SWITCHFOLD_CONTROLLER, SWITCHFOLD_JOB," in done.stderr


@pytest.mark.parametrize("path", sorted(EXAMPLES.glob("*.py")), ids=lambda path: path.name)
def test_example_is_short_and_listed(path: Path) -> None:
    assert len(path.read_text("utf-8").splitlines()) <= 100
    assert f"`{path.name}`" in (EXAMPLES / "README.md").read_text("utf-8")


def test_readme_example_fits_the_library() -> None:
    text = (ROOT / "README.md").read_text("utf-8")
    code = text.split("```python")[1].split("```")[0]
    compile(code, "README.md", "exec")
    found = re.search(r"^from switchfold import (.+)$", code, re.MULTILINE)
    assert found is not None
    assert set(found[1].split(", ")) <= set(hostlib.__all__)
    join = re.search(r"Session\.join\((.*?)\) as session", code, re.DOTALL)
    assert join is not None
    used = set(re.findall(r"^\s+(\w+)=", join[1], re.MULTILINE))
    parameters = inspect.signature(hostlib.Session.join).parameters
    named = {n: p for n, p in parameters.items() if p.kind is not inspect.Parameter.VAR_KEYWORD}
    required = {n for n, p in named.items() if p.default is inspect.Parameter.empty}
    assert required <= used <= set(named)
