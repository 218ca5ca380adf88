# SPDX-FileCopyrightText: 2026 The Switchfold Authors
# SPDX-License-Identifier: Apache-2.0
# pyright: reportUnknownMemberType=false, reportUnknownArgumentType=false
# pyright: reportUnknownVariableType=false
"""One rank that trains as that of `switchfold tolerance` does, by the contender of the request.

It also times an epoch without sums, and sums as large as the model's gradient without training.
"""

import os
import time
import zlib
from collections.abc import Callable, Mapping
from typing import Any, Final

import numpy as np
import torch
import torch.distributed as dist
from torch._C._distributed_c10d import GradBucket
from torch.distributed.algorithms.ddp_comm_hooks import default_hooks

from benchmarks.transport.among_hosts import join_among_hosts
from benchmarks.transport.worker import Contributions, Floats, Summed
from switchfold.controller.cli.tolerance.errors import ToleranceRunError
from switchfold.controller.cli.tolerance.rank import (
    TIMEOUT,
    Averager,
    RankTrainer,
    find_maker,
    main,
)
from switchfold.hostlib import LossTolerance, Session
from switchfold.hostlib.peers import PeerServer
from switchfold.hostlib.torch import SwitchfoldState
from switchfold.hostlib.torch.training_task import TrainingTask

_PEER_PORT: Final = 29_800
_dist: Any = dist  # its functions are only partly typed


def _by_gloo(_: SwitchfoldState, bucket: GradBucket) -> torch.futures.Future[torch.Tensor]:
    return default_hooks.allreduce_hook(None, bucket)  # type: ignore[arg-type]


class ContenderTrainer(RankTrainer):
    """Trains over the switches, by a session among hosts, or by Gloo."""

    def __init__(self, joined: SwitchfoldState) -> None:
        super().__init__(joined)
        self._among: Session | None = None
        self._given: Contributions | None = None

    @property
    def verbs(self) -> dict[str, Callable[[Mapping[str, Any]], dict[str, Any]]]:
        """What the benchmark may ask for."""
        return {**super().verbs, "compute": self.compute, "sum": self.sum}

    def prepare(self, plan: Mapping[str, Any]) -> dict[str, Any]:
        """Make the model of a plan, and arrays of the size of its gradient."""
        answer = super().prepare(plan)
        assert self._task is not None, "it was made"
        size = sum(parameter.numel() for parameter in self._task.model.parameters())
        self._given = Contributions(self._joined.num_ranks, size)
        return answer

    def state_of(self, plan: Mapping[str, Any]) -> SwitchfoldState:
        """Return the state of the plan's contender."""
        if plan["contender"] != "ring":
            return super().state_of(plan)
        if self._among is None:
            peers = PeerServer(os.environ["SWITCHFOLD_ADDRESS"], _PEER_PORT)
            _dist.barrier()  # all listen before anybody calls
            addresses, rank = plan["addresses"], self._joined.rank
            self._among = join_among_hosts(addresses, rank, peers, TIMEOUT.total_seconds())
        return SwitchfoldState(session=self._among, fill=plan["fill"], timeout=TIMEOUT)

    def averager(self, plan: Mapping[str, Any]) -> Averager:
        """Return what averages the buckets of the plan's contender."""
        return _by_gloo if plan["contender"] == "gloo" else super().averager(plan)

    def compute(self, _: Mapping[str, Any]) -> dict[str, Any]:
        """Time an epoch of a model like the prepared one, without sums."""
        plan, rank, num_ranks = self._plan, self._joined.rank, self._joined.num_ranks
        drawn = torch.get_rng_state()
        task = find_maker(plan["source"])(plan["seed"], rank, num_ranks)
        assert isinstance(task, TrainingTask), "it is prepared"
        task.model.train()
        steps, began_s = 0, time.monotonic()
        for inputs, targets in task.batches:
            task.optimizer.zero_grad()
            task.loss(task.model(inputs), targets).backward()
            task.optimizer.step()
            steps += 1
        seconds = time.monotonic() - began_s
        torch.set_rng_state(drawn)
        return {"compute_s": seconds, "steps": steps}

    def sum(self, request: Mapping[str, Any]) -> dict[str, Any]:
        """Sum once; return when. Raises ToleranceRunError unless the sum is right."""
        number, given = request["round"], self._given
        assert given is not None, "it is prepared"
        array = given.of(number, self._joined.rank)
        began_s = time.monotonic()
        summed = self._add(array)
        ended_s = time.monotonic()
        wrong = np.flatnonzero(summed.total != given.expected(number, summed))
        if wrong.size:
            raise ToleranceRunError(f"{wrong.size} elements are wrong, the first is {wrong[0]}")
        checksum = zlib.crc32(summed.total.tobytes())
        return {"began_s": began_s, "ended_s": ended_s, "checksum": checksum}

    def _add(self, array: Floats) -> Summed:
        if self._plan["contender"] == "gloo":
            total = torch.from_numpy(array)
            _dist.all_reduce(total)
            return Summed(array)
        rate = self._plan["rate"]
        future = self._state.session.allreduce(
            array, precision="block", tolerance=LossTolerance(loss=rate) if rate else None
        )
        return Summed(future.result(), future.delivery)


if __name__ == "__main__":
    main(ContenderTrainer)
