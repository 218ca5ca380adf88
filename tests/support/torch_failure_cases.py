# SPDX-FileCopyrightText: 2026 The Switchfold Authors
# SPDX-License-Identifier: Apache-2.0
"""Collectives that cannot end well: each in a process group of its own, its end timed."""

from __future__ import annotations

import contextlib
import gc
import json
import os
import threading
from collections.abc import Callable, Generator
from contextlib import contextmanager
from datetime import timedelta
from pathlib import Path
from typing import Any

from time_bound import wait_until
from torch_ranks import load_torch

NUM_RANKS = 3
TIMEOUT_S = 5.0
"""One that a case reaches: the ranks come to it less than this apart."""
LONG_S = 60.0
"""A timeout that no case may reach."""
JOIN_TIMEOUT_S = 60.0
AWAY_S = 4.5
"""Less than the longest time that a worker waits for a controller."""


class Failures:
    """One rank's process groups, one after the other."""

    def __init__(self, rank: int, folder: str) -> None:
        self.torch, self.dist = load_torch()
        self.rank, self.num_ranks = rank, NUM_RANKS
        self._folder = folder
        self.seen: dict[str, Any] = {}

    @contextmanager
    def group(self, name: str, timeout_s: float, join_timeout_s: float) -> Generator[None]:
        """Make the default group; its collectives may take so long."""
        self.dist.init_process_group(
            "switchfold",
            init_method=f"file://{self._folder}/{name}",
            rank=self.rank,
            world_size=self.num_ranks,
            timeout=timedelta(seconds=join_timeout_s),
        )
        # Joining may be slow on a busy machine; collectives are what is timed.
        self.dist.distributed_c10d._set_pg_timeout(timedelta(seconds=timeout_s))
        try:
            yield
        finally:
            if self.dist.is_initialized():
                self.dist.destroy_process_group()

    def joins(self, name: str, timeout_s: float = JOIN_TIMEOUT_S) -> None:
        """Make a group that cannot be; note the error's type and text."""
        self.meet(f"joins {name}")
        try:
            with self.group(name, TIMEOUT_S, timeout_s):
                self.seen[name] = ["", "joined"]
        except RuntimeError as error:
            self.seen[name] = [type(error).__name__, str(error)]

    def ends(self, name: str, call: Callable[[], Any], timeout_s: float = TIMEOUT_S) -> None:
        """Run a call in a group and note its error's type and text, or result."""
        with self.group(name, timeout_s, JOIN_TIMEOUT_S):
            self.meet(f"ends {name}")
            try:
                self.seen[name] = ["", str(call())]
            except Exception as error:
                self.seen[name] = [type(error).__name__, str(error)]

    def meet(self, name: str) -> None:
        """Wait for all ranks: what is timed after it is not how late one of them comes to it."""
        paths = [Path(self._folder, f"{name} {rank}") for rank in range(self.num_ranks)]
        paths[self.rank].touch()
        wait_until(lambda: all(path.exists() for path in paths), f"all ranks at {name!r}")

    def summed(self, count: int, dtype: str = "float32", op: str = "SUM") -> Any:
        tensor = self.torch.ones(count, dtype=getattr(self.torch, dtype))
        self.dist.all_reduce(tensor, op=getattr(self.dist.ReduceOp, op))
        return tensor.tolist()


def _strided(torch: Any, dist: Any) -> Any:
    """Sum and broadcast every second value, and a transposed matrix, of larger memory."""
    base, matrix = torch.ones(4, 3), torch.arange(6.0).reshape(2, 3)
    dist.all_reduce(base[::2])
    dist.all_reduce(matrix.T)
    sent = torch.full((200_000,), float(dist.get_rank()))
    dist.broadcast(sent[::2], src=2)
    return [base.tolist(), matrix.tolist(), sent[::2].unique().tolist(), sent[1].item()]


OF_PYTORCH = ("cuda", "pt_autograd_")
"""How the names of threads begin that PyTorch keeps on machines with a GPU."""


def _native_threads() -> list[str]:
    tasks = [task for task in Path("/proc/self/task").iterdir() if task.name != str(os.getpid())]
    names: list[str] = []
    for task in tasks:
        with contextlib.suppress(FileNotFoundError, ProcessLookupError):  # it has just ended
            names.append((task / "comm").read_text().strip())
    return sorted(name for name in names if not name.startswith(OF_PYTORCH))


def _those_that_stay(names: Callable[[], list[str]]) -> list[str]:
    """Return the names once there are none, or else what there is after a long time."""
    with contextlib.suppress(AssertionError):
        wait_until(lambda: not names(), "the end of all threads", 20.0)
    return names()


def _value(done: Any) -> Any:
    return done.value()


def fail(rank: int, folder: str) -> dict[str, Any]:
    gc.freeze()  # collections need not look at all of torch
    f = Failures(rank, folder)
    odd, torch, dist = rank == 1, f.torch, f.dist
    place = dict(os.environ)
    os.environ["SWITCHFOLD_CONTROLLER"] = "127.0.0.1:9"
    if rank == 0:
        os.environ["SWITCHFOLD_ADDRESS"] = ""
    # Only rank 0 has no address: all ranks must report it, and none may wait for the controller.
    f.joins("address")
    os.environ.update(place | {"SWITCHFOLD_CONTROLLER": "127.0.0.1:9"})
    f.joins("controller", AWAY_S)
    os.environ.update(place | {"SWITCHFOLD_CREDENTIALS": ""})
    f.joins("credentials")
    os.environ.update(place)
    f.ends("shapes", lambda: f.summed(12 if odd else 10), timeout_s=10)
    f.ends("dtypes", lambda: f.summed(10, "int32" if odd else "float32"), timeout_s=10)

    def disagree() -> Any:
        if rank:  # which run by Gloo
            return f.summed(10, op="PRODUCT") if odd else dist.barrier()
        work = dist.all_reduce(torch.ones(10), async_op=True)
        future = work.get_future().then(_value)
        try:
            return future.wait()
        except RuntimeError as error:
            f.seen["future"] = str(error)
        return work.wait()

    f.ends("averages", lambda: [f.summed(4), f.summed(10, op="AVG" if odd else "SUM")], LONG_S)
    mixed = [torch.ones(1), torch.ones(1).int()]
    f.ends("mixed", lambda: dist.group.WORLD.allreduce_coalesced(mixed), LONG_S)
    f.ends("strided", lambda: _strided(torch, dist), LONG_S)

    def saturate() -> Any:
        meta = torch.ones(2, device="meta")
        for name, call in {
            "one device": lambda: dist.all_reduce(meta),
            "two devices": lambda: dist.group.WORLD.allreduce_coalesced([mixed[0], meta]),
            "by Gloo": lambda: dist.all_gather([meta] * NUM_RANKS, meta),
        }.items():
            try:
                call()
            except RuntimeError as error:
                f.seen[name] = [type(error).__name__, str(error)]
        tensor = torch.full((4,), 2**31 - 1, dtype=torch.int32)
        try:
            dist.all_reduce(tensor)
        except RuntimeError as error:
            # The group stays usable.
            return f"{type(error).__name__}: {error}; {f.summed(2)}"
        return tensor

    f.ends("saturation", saturate, LONG_S)

    def timed_out(other: int) -> Path:
        return Path(folder, f"timed out {other}")

    def wait_briefly() -> Any:
        if odd:  # after the others have stopped waiting
            wait_until(lambda: all(timed_out(other).exists() for other in (0, 2)), "the others")
            return f.summed(3)
        tensor = torch.ones(3)
        work = dist.all_reduce(tensor, async_op=True)
        try:
            work.wait(timedelta(seconds=0.1))
        except RuntimeError as error:
            unfinished = [type(error).__name__, work.is_completed(), work.exception()]
            timed_out(rank).touch()
            return [unfinished, work.wait(), work.is_completed(), tensor.tolist()]
        return "did not wait"

    f.ends("short wait", wait_briefly, LONG_S)

    def dropped() -> Any:
        for _ in range(20):
            dist.all_reduce(torch.ones(100), async_op=True)
        return f.summed(2)

    f.ends("dropped works", dropped, LONG_S)

    def destroyed() -> Any:
        if rank:
            return None
        work = dist.all_reduce(torch.ones(3), async_op=True)
        group = dist.group.WORLD
        group.abort()
        late = group.allreduce([torch.ones(1)])
        return [type(work.exception()).__name__, type(late.exception()).__name__]

    f.ends("abort", destroyed)

    def ddp() -> Any:
        model = torch.nn.parallel.DistributedDataParallel(torch.nn.Linear(5, 5))
        for step in range(3):
            if step == 2:  # before the second step the ranks agree on buckets, by Gloo
                # Building the model takes long on a busy machine; this is what is timed.
                dist.distributed_c10d._set_pg_timeout(timedelta(seconds=TIMEOUT_S))
                if odd:
                    return None
            model(torch.ones(2, 5)).sum().backward()
        return "trained without rank 1"

    f.ends("ddp", ddp, timeout_s=60)
    gc.collect()  # the model, which holds its group
    main = threading.main_thread()
    f.seen["threads"] = _those_that_stay(
        lambda: [thread.name for thread in threading.enumerate() if thread is not main]
    )
    f.seen["native threads"] = _those_that_stay(_native_threads)

    # From here on Gloo's threads stay: they are at work on what will not end.
    f.ends("operations", disagree, timeout_s=LONG_S)
    blocks = [torch.ones(3)] * NUM_RANKS
    f.ends(
        "by Gloo alone",
        lambda: dist.all_gather(blocks, blocks[0]) if odd else dist.barrier(),
        LONG_S,
    )

    def leave() -> Any:
        f.summed(3)
        if odd:
            (Path(folder) / "seen-1.json").write_text(json.dumps(f.seen))
            os._exit(3)
        return f.summed(3)

    f.ends("exit", leave, timeout_s=30)
    # The test stops the switch; the two ranks that are left try to make a group without it.
    (Path(folder) / f"stop-{rank}").touch()
    wait_until((Path(folder) / "stopped").exists, "the switch's end")
    f.rank, f.num_ranks = rank // 2, 2
    f.joins("switch")
    return f.seen
