# SPDX-FileCopyrightText: 2026 The Switchfold Authors
# SPDX-License-Identifier: Apache-2.0
"""Ranks of a torch.distributed job as processes of this machine, and a testbed for them.

torch is imported once, in a process that then forks the ranks: four of them start in the time of
one. The tests' own process loads it only for what needs no ranks of its own (`load_torch`).
Every test of torch begins with `require_torch()`, which skips it where torch is missing.
"""

from __future__ import annotations

import contextlib
import gc
import importlib
import importlib.util
import itertools
import json
import os
import signal
import subprocess
import sys
import tempfile
import traceback
from collections.abc import Callable, Generator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest

TORCH_REASON = "PyTorch is not installed; make deps-torch, or pip install '.[torch]'"
NUM_HOSTS = 4
_FOLDER = Path(__file__).parent
_ENDED_UNSAID = "ended without a result"
_run_numbers = itertools.count()


def require_torch() -> None:
    """Skip the calling test, or the module when called on its top, where PyTorch is missing."""
    found = importlib.util.find_spec("torch")
    # A folder of this name beside the tests, such as their own, passes for a package without files.
    if found is None or found.origin is None:
        pytest.skip(TORCH_REASON, allow_module_level=True)


def load_torch() -> tuple[Any, Any]:
    """Return torch and torch.distributed, whose functions are annotated in part only."""
    return importlib.import_module("torch"), importlib.import_module("torch.distributed")


@dataclass(frozen=True)
class RankFailure:
    """How a rank ended that returned nothing."""

    type: str
    """Class name of the exception, or "exit" with the status in the text."""
    text: str
    trace: str = ""


@dataclass(frozen=True)
class RankEnd:
    """How the process of a rank ended, after it had returned its result."""

    status: int
    """Exit status; of a signal, its number below zero."""
    stderr: str


class TorchTestbed:
    """A narrow softswitch and a controller over loopback, with a place for each rank.

    The controller evicts no rank because the machine is busy.
    """

    def __init__(self, num_hosts: int = NUM_HOSTS, **options: Any) -> None:
        # Every test run loads this module; few tests need this import.
        from live_testbed import LiveTestbed  # noqa: PLC0415

        lease = {"controller_options": ("--lease", "60")}
        self.live = LiveTestbed(num_hosts, **lease, **options)
        self.num_hosts = num_hosts

    def place(self, rank: int, num_ranks: int, job: str) -> dict[str, str]:
        """Return the environment of a rank, as `switchfold testbed run` sets it."""
        variables = self.live.made.endpoint(rank).environment(job)
        return {**variables, "SWITCHFOLD_NUM_WORKERS": str(num_ranks)}


@pytest.fixture(scope="module")
def torch_testbed() -> Generator[TorchTestbed]:
    require_torch()
    testbed = TorchTestbed()
    with testbed.live:
        yield testbed


def run_ranks(  # noqa: PLR0913 - a test names the few that differ
    cases: str,
    num_ranks: int,
    *,
    testbed: TorchTestbed | None = None,
    arguments: Mapping[str, Any] | None = None,
    environment: Mapping[str, str] | Callable[[int], Mapping[str, str]] | None = None,
    job: str = "",
    preload: Sequence[str] = (),
    timeout_s: float = 240.0,
    check: bool = True,
    interrupted: Sequence[int] = (),
    ends: list[RankEnd] | None = None,
) -> list[Any]:
    """Call "module:function" as function(rank, **arguments) in one process per rank.

    Returns what they returned, through JSON, or a RankFailure in its place. With `check` any
    failure fails the test, with all ranks' traces. Modules are found in tests/ and its folders.
    Those of `preload` are loaded once, before the ranks are forked, and must not start threads.
    The ranks of `interrupted` get a SIGINT in their last line. `ends` gets how each ended.
    """
    from switchfold.bmv2_topos.processes.free_ports import free_port  # noqa: PLC0415 (not in the process that forks)

    job = job or f"run-{os.getpid()}-{next(_run_numbers)}"
    master = {"MASTER_ADDR": "127.0.0.1", "MASTER_PORT": str(free_port())}
    environments: list[dict[str, str]] = []
    for rank in range(num_ranks):
        place = testbed.place(rank, num_ranks, job) if testbed is not None else {}
        more = environment(rank) if callable(environment) else environment or {}
        ranks = {"RANK": str(rank), "WORLD_SIZE": str(num_ranks), "LOCAL_RANK": str(rank)}
        environments.append({**master, **ranks, **place, **more})
    with tempfile.TemporaryDirectory(prefix="torch-ranks-") as folder:
        plan: dict[str, Any] = {
            "cases": cases,
            "environments": environments,
            "arguments": dict(arguments or {}),
        }
        plan["preload"] = [*preload]
        plan["interrupted"] = [*interrupted]
        (Path(folder) / "plan.json").write_text(json.dumps(plan), encoding="utf-8")
        _run_forker(Path(folder), timeout_s)
        results = [_outcome(Path(folder), rank) for rank in range(num_ranks)]
        if ends is not None:
            ends += [_end(Path(folder), rank) for rank in range(num_ranks)]
    failed = {i: r for i, r in enumerate(results) if isinstance(r, RankFailure)}
    if check and failed:
        texts = [f"rank {i}: {f.type}: {f.text}\n{f.trace}" for i, f in failed.items()]
        pytest.fail("\n".join(texts), pytrace=False)
    return results


def _run_forker(folder: Path, timeout_s: float) -> None:
    # Loaded for pytest: cases may be in the module of their tests.
    paths = [path for path in sys.path if Path(path).is_relative_to(_FOLDER.parent)]
    variables = {name: v for name, v in os.environ.items() if not name.startswith("SWITCHFOLD_")}
    variables.update(
        PYTHONPATH=os.pathsep.join(paths),
        OMP_NUM_THREADS="1",
        TORCH_DEVICE_BACKEND_AUTOLOAD="0",
        # Fork is safe here: no rank runs before it, so no thread of grpc's exists.
        GRPC_ENABLE_FORK_SUPPORT="0",
    )
    with (folder / "forker.stderr").open("wb") as stderr:
        process = subprocess.Popen(
            [sys.executable, __file__, str(folder)],
            env=variables,
            start_new_session=True,
            stdout=subprocess.DEVNULL,
            stderr=stderr,
        )
    try:
        process.wait(timeout_s)
    except subprocess.TimeoutExpired:
        (folder / "timeout").write_text(f"still running after {timeout_s} s", encoding="utf-8")
        # What each rank waits for; faulthandler writes it to its stderr.
        os.killpg(process.pid, signal.SIGUSR1)
        with contextlib.suppress(subprocess.TimeoutExpired):
            process.wait(1.0)
    finally:
        with contextlib.suppress(ProcessLookupError):
            os.killpg(process.pid, signal.SIGKILL)
        process.wait()


def _outcome(folder: Path, rank: int) -> Any:
    written = folder / f"{rank}.json"
    errors = [folder / "timeout", folder / "forker.stderr", folder / f"{rank}.stderr"]
    trace = "\n".join(p.read_text(errors="replace")[-6000:] for p in errors if p.exists())
    if not written.exists():
        return RankFailure("exit", _ENDED_UNSAID, trace)
    said = json.loads(written.read_text(encoding="utf-8"))
    if "failure" in said:
        return RankFailure(said["failure"], said["text"], said["trace"] + trace)
    return said["result"]


def _end(folder: Path, rank: int) -> RankEnd:
    stderr = (folder / f"{rank}.stderr").read_text(errors="replace")
    return RankEnd(int((folder / f"{rank}.status").read_text()), stderr)


def _run_rank(rank: int, folder: Path, plan: Mapping[str, Any]) -> None:
    """Be one rank, in a forked process."""
    import faulthandler  # noqa: PLC0415

    os.environ.update(plan["environments"][rank])
    stderr = os.open(folder / f"{rank}.stderr", os.O_WRONLY | os.O_CREAT)
    os.dup2(stderr, 2)
    faulthandler.register(signal.SIGUSR1)
    module, _, function = plan["cases"].partition(":")
    try:
        call = getattr(importlib.import_module(module), function)
        said = {"result": call(rank, **plan["arguments"])}
        text = json.dumps(said)
    except BaseException as error:
        trace = traceback.format_exc()
        text = json.dumps({"failure": type(error).__name__, "text": str(error), "trace": trace})
    unfinished = folder / f"{rank}.part"
    unfinished.write_text(text, encoding="utf-8")
    unfinished.rename(folder / f"{rank}.json")


def _wait_ranks(folder: Path, pids: Mapping[int, int]) -> None:
    remaining = dict(pids)
    while remaining:
        pid, status = os.wait()
        rank = remaining.pop(pid)
        (folder / f"{rank}.status").write_text(str(os.waitstatus_to_exitcode(status)))
        if not (folder / f"{rank}.json").exists():
            text = f"{_ENDED_UNSAID}: status {os.waitstatus_to_exitcode(status)}"
            said = {"failure": "exit", "text": text, "trace": ""}
            (folder / f"{rank}.json").write_text(json.dumps(said), encoding="utf-8")


def main(arguments: Sequence[str]) -> None:
    """Import torch once, fork a process per rank, and wait for them."""
    folder = Path(arguments[0])
    plan = json.loads((folder / "plan.json").read_text(encoding="utf-8"))
    signal.signal(signal.SIGUSR1, signal.SIG_IGN)
    # What is loaded stays till the end: no collection looks at it here or in a rank.
    gc.disable()
    # The ranks inherit what is loaded; nothing of this may start a thread.
    import torch  # noqa: PLC0415

    from switchfold.hostlib.torch import register  # noqa: PLC0415

    torch.set_num_threads(1)
    register()
    for module in plan["preload"]:
        importlib.import_module(module)
    gc.freeze()
    gc.enable()
    pids: dict[int, int] = {}
    for rank in range(len(plan["environments"])):
        threads = os.listdir("/proc/self/task")
        assert len(threads) == 1, f"threads {threads} must not be forked beside"
        pid = os.fork()  # noqa: TID251
        if not pid:
            _run_rank(rank, folder, plan)
            if rank in plan["interrupted"]:
                signal.signal(signal.SIGINT, signal.default_int_handler)
                signal.raise_signal(signal.SIGINT)
            # As an ordinary interpreter ends: atexit and threads included.
            return
        pids[pid] = rank
    _wait_ranks(folder, pids)


if __name__ == "__main__":
    main(sys.argv[1:])
