# SPDX-FileCopyrightText: 2026 The Switchfold Authors
# SPDX-License-Identifier: Apache-2.0
"""No collective waits for Gloo with the interpreter's lock held.

Gloo's thread destroys a finished work while it holds its queue's mutex, and objects that a tensor
of the work owns may be Python's. A caller that waits for the mutex and keeps the interpreter's lock
would wait for ever. Here rank 0's thread is stopped at this very point, and a timer lets it go on.
"""

from __future__ import annotations

import threading
from collections.abc import Callable
from datetime import timedelta
from typing import Any

import pytest

from torch_ranks import load_torch, require_torch, run_ranks

require_torch()
NUM_RANKS = 2
DEADLINE_S = 240.0
NEWER_NAMES = {"_allgather_base", "_reduce_scatter_base", "alltoall_base"} | {
    "allgather_into_tensor_coalesced", "reduce_scatter_tensor_coalesced"
}  # fmt: skip
"""What PyTorch calls by other names today; overriding both would hide one of them."""
COLLECTIVES = ("gather", "scatter", "reduce", "cast", "all_to_all", "alltoall", "send", "recv")


class Hurdle:
    """Stops the thread that destroys it until it is let go."""

    def __init__(self) -> None:
        self.reached, self.freed = threading.Event(), threading.Event()

    def stop(self) -> None:
        self.reached.set()
        assert self.freed.wait(DEADLINE_S)


class Burden:
    """An object that a tensor owns."""

    def __init__(self, hurdle: Hurdle) -> None:
        self._hurdle = hurdle

    def __del__(self) -> None:
        self._hurdle.stop()


def calls(group: Any, torch: Any, rank: int) -> dict[str, Callable[[], Any]]:
    """Return a call of every collective, which two ranks complete."""
    one, two = torch.ones(1), torch.ones(2)
    pair = [torch.ones(1), torch.ones(1)]
    rooted = pair if rank == 0 else []
    functional, name = torch.ops._c10d_functional, group.group_name
    return {
        "allreduce": lambda: group.allreduce([one]),
        "allreduce_coalesced": lambda: group.allreduce_coalesced([one]),
        "reduce": lambda: group.reduce(one, 0),
        "broadcast": lambda: group.broadcast([one]),
        "allgather": lambda: group.allgather([pair], [one]),
        "allgather_coalesced": lambda: group.allgather_coalesced([[p] for p in pair], [one]),
        "all_gather_single": lambda: group.all_gather_single(two, one),
        "all_gather_single_coalesced": lambda: group.all_gather_single_coalesced([two], [one]),
        "_allgather_base": lambda: group._allgather_base(two, one),
        "gather": lambda: group.gather(rooted, one, 0),
        "scatter": lambda: group.scatter(one, rooted, 0),
        "reduce_scatter": lambda: group.reduce_scatter([one], [pair]),
        "reduce_scatter_single": lambda: group.reduce_scatter_single(one, two),
        "reduce_scatter_single_coalesced": lambda: group.reduce_scatter_single_coalesced(
            [one], [two]
        ),
        "_reduce_scatter_base": lambda: group._reduce_scatter_base(one, two),
        "all_to_all_single": lambda: group.all_to_all_single(two, torch.ones(2), [], []),
        "barrier": group.barrier,
        "monitored_barrier": group.monitored_barrier,
        "send": lambda: group.recv([one], 0, 3) if rank else group.send([one], 1, 3),
        "recv": lambda: group.send([one], 0, 3) if rank else group.recv([one], 1, 3),
        "recv_anysource": lambda: (
            group.send([one], 0, 3) if rank else group.recv_anysource([one], 3)
        ),
        "functional all_reduce": lambda: functional.all_reduce(one, "sum", name),
        "functional all_gather": lambda: functional.all_gather_into_tensor(one, 2, name),
        "functional reduce_scatter": lambda: functional.reduce_scatter_tensor(two, "sum", 2, name),
    }


def call_all(rank: int) -> list[list[str]]:
    torch, dist = load_torch()
    from switchfold.hostlib.torch.process_group.process_group import SwitchfoldProcessGroup  # noqa: PLC0415 - loads torch

    def create(options: Any, _: Any) -> Any:
        from switchfold.hostlib.torch.process_group.rendezvous import RankPlace  # noqa: PLC0415
        from switchfold.hostlib.torch.torch_seam import make_gloo  # noqa: PLC0415 - loads torch

        return SwitchfoldProcessGroup(
            RankPlace(options.store, rank, NUM_RANKS),
            name="stopped",
            gloo=make_gloo(options),
            session=None,
        )

    dist.Backend.register_backend("gloo_alone", create, extended_api=True, devices=["cpu"])
    dist.init_process_group("gloo_alone")
    group, store = dist.group.WORLD, dist.distributed_c10d._get_default_store()
    backend = group._get_backend(torch.device("cpu"))
    done: list[str] = []
    for name, call in calls(group, torch, rank).items():
        hurdle, timer = Hurdle(), None
        tensor = torch.ones(1)
        if rank == 0:
            tensor.burden = Burden(hurdle)
        else:
            store.wait([name], timedelta(seconds=DEADLINE_S))
        backend.allreduce([tensor])
        del tensor
        if rank == 0:
            # Only now may the sum end: rank 0 holds nothing of it any more.
            store.set(name, "dropped")
            assert hurdle.reached.wait(DEADLINE_S), f"{name}: nothing destroyed the work"
            timer = threading.Timer(0.02, hurdle.freed.set)
            timer.start()
        work = call()
        if isinstance(work, torch.Tensor):
            torch.ops._c10d_functional.wait_tensor(work)
        elif work is not None:
            work.wait()
        if timer is not None:
            timer.join()
        done.append(name)
    dist.destroy_process_group()
    parts = [n for n in dir(dist.ProcessGroup) if not n.startswith("__")]
    offered = {n for n in parts if any(part in n for part in COLLECTIVES)}
    own = vars(SwitchfoldProcessGroup) | vars(SwitchfoldProcessGroup.__base__)
    return [done, sorted(offered - NEWER_NAMES - set(own))]


@pytest.mark.timeout(600)
def test_no_collective_waits_for_gloo_with_the_interpreter_locked() -> None:
    for done, inherited in run_ranks("test_torch_gil:call_all", NUM_RANKS, timeout_s=540.0):
        assert len(done) == len(set(done)) >= 24
        assert inherited == []
