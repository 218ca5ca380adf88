# SPDX-FileCopyrightText: 2026 The Switchfold Authors
# SPDX-License-Identifier: Apache-2.0
"""Runs one test after the other, each in new processes for its ranks.

PyTorch and its tests are loaded once, in a process without threads, which forks the ranks. It
takes a line of JSON for each test from stdin, and answers with one on stdout.
"""

from __future__ import annotations

import contextlib
import gc
import importlib
import json
import multiprocessing
import os
import shutil
import signal
import sys
import tempfile
import time
import traceback
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from torch_suite.cpu_stand_in import OnCpu
from torch_suite.suite import load_suite, skip_codes, test_names

POLL_S = 0.05
LOG_CHARACTERS = 6000


def main(arguments: Sequence[str]) -> None:
    """Serve: `backend ranks`, and a file with each rank's environment."""
    backend, num_ranks, places_file = arguments[0], int(arguments[1]), Path(arguments[2])
    places = json.loads(places_file.read_text(encoding="utf-8"))
    # What is loaded stays till the end: no collection looks at it here or in a rank.
    gc.disable()
    import torch  # noqa: PLC0415

    from switchfold.hostlib.torch import register  # noqa: PLC0415

    torch.set_num_threads(1)
    register()
    for module in (
        "switchfold.hostlib.torch.process_group.group_creation",
        "switchfold.hostlib.control.controller_link",
    ):
        importlib.import_module(module)
    suite = load_suite(backend, num_ranks)
    skips = skip_codes()
    gc.freeze()
    gc.enable()
    threads = os.listdir("/proc/self/task")
    assert len(threads) == 1, f"threads {threads} must not be forked beside"
    signal.signal(signal.SIGTERM, _end)  # and the ranks with this process
    answers = os.fdopen(os.dup(1), "w")
    os.dup2(2, 1)  # what tests print is not an answer
    print(json.dumps(test_names(suite)), file=answers, flush=True)
    for line in sys.stdin:
        order: dict[str, Any] = json.loads(line)
        result = _run_test(suite, order, places[:num_ranks], skips)
        print(json.dumps(result), file=answers, flush=True)


def _end(_number: int, _frame: object) -> None:
    sys.exit(1)


def _run_test(
    suite: Any, order: Mapping[str, Any], places: Sequence[Mapping[str, str]], skips: dict[int, str]
) -> dict[str, Any]:
    began_s = time.monotonic()
    folder = Path(tempfile.mkdtemp(prefix="torch-suite-"))
    for name in ("barrier", "test_dir", "init_dir"):
        (folder / name).mkdir()
    pids: dict[int, int] = {}
    for rank, place in enumerate(places):
        pid = os.fork()  # noqa: TID251 - no thread runs here, see main
        if not pid:
            os.environ.update(
                place,
                SWITCHFOLD_JOB=order["job"],
                TEMP_DIR=str(folder),
                MASTER_PORT=str(order["port"]),
            )
            _be_rank(suite, order["test"], rank, folder)
        pids[pid] = rank
    try:
        codes = _codes_of(pids, began_s + order["limit_s"])
        outcome, why = _judge(codes, skips)
        logs = [(folder / f"{rank}.log").read_text(errors="replace") for rank in codes]
    finally:
        for pid in pids:  # also what the ranks have started
            with contextlib.suppress(ProcessLookupError):
                os.killpg(pid, signal.SIGKILL)
        shutil.rmtree(folder, ignore_errors=True)
    text = "".join(f"--- rank {i}\n{log[-LOG_CHARACTERS:]}\n" for i, log in enumerate(logs))
    return {
        "test": order["test"],
        "outcome": outcome,
        "why": why,
        "seconds": round(time.monotonic() - began_s, 1),
        "log": text if outcome == "fail" else "",
    }


def _be_rank(suite: Any, test: str, rank: int, folder: Path) -> None:
    """Run the test in this process, and end it with the suite's exit code."""
    os.setpgid(0, 0)
    signal.signal(signal.SIGTERM, signal.SIG_DFL)
    log = os.open(folder / f"{rank}.log", os.O_WRONLY | os.O_CREAT)
    os.dup2(log, 1)
    os.dup2(log, 2)
    code = 1
    try:
        mine, theirs = multiprocessing.Pipe()  # the suite reports its failures there, too
        with OnCpu():
            suite._run(rank, test, str(folder / "store"), theirs)
        del mine
    except SystemExit as end:
        code = end.code if isinstance(end.code, int) else 1
    except BaseException:
        traceback.print_exc()
    # What a test leaves behind must not keep its process.
    os._exit(code)


def _codes_of(pids: Mapping[int, int], deadline_s: float) -> dict[int, int]:
    """Wait for all ranks and return their exit codes by rank; kill them after the deadline.

    Once a rank has failed, the others get the rest of ten seconds.
    """
    codes: dict[int, int] = {}
    while len(codes) < len(pids):
        pid, status = os.waitpid(-1, os.WNOHANG)
        if pid in pids:
            code = os.waitstatus_to_exitcode(status)
            codes[pids[pid]] = code
            if code not in (0, *range(72, 90)):
                deadline_s = min(deadline_s, time.monotonic() + 10.0)
        elif time.monotonic() > deadline_s:
            for each, rank in pids.items():
                if rank not in codes:
                    with contextlib.suppress(ProcessLookupError):
                        os.killpg(each, signal.SIGKILL)
            deadline_s = float("inf")
        else:
            time.sleep(POLL_S)
    return dict(sorted(codes.items()))


def _judge(codes: Mapping[int, int], skips: Mapping[int, str]) -> tuple[str, str]:
    kinds = set(codes.values())
    if kinds == {0}:
        return "pass", ""
    if kinds <= {0, *skips}:
        return "skip", skips[max(kinds)]
    if any(code == -signal.SIGKILL for code in kinds):
        return "fail", f"killed at its time limit, or after a rank had failed: {dict(codes)}"
    return "fail", f"exit codes by rank: {dict(codes)}"


if __name__ == "__main__":
    main(sys.argv[1:])
