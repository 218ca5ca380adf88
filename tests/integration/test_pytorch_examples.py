# SPDX-FileCopyrightText: 2026 The Switchfold Authors
# SPDX-License-Identifier: Apache-2.0
"""The PyTorch examples train as over Gloo, and differ from their Gloo versions by one line."""

from __future__ import annotations

import importlib
import signal
import subprocess
import sys
from pathlib import Path

import pytest

from switchfold.bmv2_topos import WorkerResult
from torch_ranks import require_torch

require_torch()

FOLDER = Path(__file__).resolve().parents[2] / "examples" / "pytorch"


@pytest.mark.slow
@pytest.mark.parametrize(
    ("example", "length"), [("digits_cnn", "--epochs=1"), ("text_transformer", "--steps=10")]
)
def test_example_trains_as_over_gloo(example: str, length: str) -> None:
    # Most of the time goes to the start of processes that load torch, twice for each worker.
    words = ["--workers=2", "--mbit=1000", length]
    command = [sys.executable, str(FOLDER / "compare.py"), example, *words]
    done = subprocess.run(command, capture_output=True, text=True, check=False, timeout=240)
    assert done.returncode == 0, done.stdout + done.stderr
    assert done.stdout.endswith("different weights: gloo 1, switchfold 1\nproved\n")


class AbortingTestbed:
    """Stands for a testbed on which worker 1 aborts, with or without weights."""

    def __init__(self, folder: Path, *, printed: str) -> None:
        self.folder = folder
        self.printed = printed

    def run_workers(self, *_: object, **__: object) -> list[WorkerResult]:
        whole = f"loss 3.5\nweights {'a' * 64}\n"
        return [
            WorkerResult(worker_id=0, exit_status=0, output=whole, log=self.folder / "0"),
            WorkerResult(
                worker_id=1,
                exit_status=-signal.SIGABRT,
                output=self.printed.format(weights="a" * 64),
                log=self.folder / "1",
            ),
        ]


@pytest.mark.parametrize(
    ("printed", "is_gloo", "is_complete"),
    [
        ("weights {weights}\nterminate called without an active exception\n", True, True),
        ("weights {weights}\nterminate called without an active exception\n", False, False),
        ("terminate called without an active exception\n", True, False),
    ],
)
def test_gloo_alone_may_abort_after_its_training(
    printed: str,
    is_gloo: bool,
    is_complete: bool,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.syspath_prepend(str(FOLDER))
    compare = importlib.import_module("compare")
    monkeypatch.setattr(compare, "sums_made", lambda _: 0)
    testbed = AbortingTestbed(tmp_path, printed=printed)
    if is_complete:
        run = compare.train(testbed, FOLDER / "digits_cnn.py", [], is_gloo=is_gloo)
        assert run.aborted_at_exit == [1]
        assert run.weights == {"a" * 64}
    else:
        with pytest.raises(SystemExit, match=r"digits_cnn.py failed"):
            compare.train(testbed, FOLDER / "digits_cnn.py", [], is_gloo=is_gloo)


@pytest.mark.parametrize("example", ["digits_cnn", "text_transformer"])
def test_diff_is_one_line(example: str) -> None:
    lines = (FOLDER / f"{example}.diff").read_text().splitlines()[2:]
    changes = [line.split() for line in lines if line[0] in "+-"]
    assert changes == [
        ["-", 'dist.init_process_group("gloo")'],
        ["+", 'dist.init_process_group("switchfold")'],
    ]
    after = [line[1:] for line in lines if line[0] in " +"]
    assert "\n".join(after) in (FOLDER / f"{example}.py").read_text()
