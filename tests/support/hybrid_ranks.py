# SPDX-FileCopyrightText: 2026 The Switchfold Authors
# SPDX-License-Identifier: Apache-2.0
# pyright: reportUnknownMemberType=false
"""Ranks as threads of this process, over one switch and a Gloo group: no process per case."""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack
from datetime import timedelta
from typing import Any, cast

import pytest
import torch
import torch.distributed as dist
from torch import Tensor, nn

from fake_switch import FakeSwitch
from loopback import LOOPBACK
from softswitch_job import SoftswitchJob
from switchfold.hostlib.options import SessionOptions
from switchfold.hostlib.peers import PeerServer
from switchfold.hostlib.session import Session
from switchfold.hostlib.straggler import StragglerPolicy
from switchfold.hostlib.torch.hybrid.hybrid_parallel import HybridParallel

NUM_RANKS = 3
WAIT_S = 60.0
OPTIONS = SessionOptions(timeout_s=120.0, min_rto_s=0.01, initial_rto_s=0.05, max_rto_s=0.2)


class HybridRanks:
    """`num_ranks` places of one job on a switch in this process."""

    def __init__(
        self,
        num_ranks: int,
        *,
        has_switch: bool = True,
        straggler: StragglerPolicy | None = None,
        options: SessionOptions = OPTIONS,
    ) -> None:
        self.num_ranks = num_ranks
        self._stack = ExitStack()
        self.sessions: Sequence[Session | None] = [None] * num_ranks
        if straggler is not None:
            self.sessions = self._partial_sessions(straggler)
        elif has_switch:
            job = SoftswitchJob("narrow", num_ranks, slot_count=64)
            self._stack.callback(job.close)
            self.sessions = self._stack.enter_context(job.sessions(options))
        self._store: Any = cast("Any", dist).HashStore()
        with ThreadPoolExecutor(num_ranks) as pool:
            self.groups = list(pool.map(self._group, range(num_ranks)))

    def _partial_sessions(self, policy: StragglerPolicy) -> list[Session]:
        """Sessions of a simulated switch that drops stragglers, which fetch what they missed."""
        switch = FakeSwitch(self.num_ranks, straggler=policy)
        for worker_id in range(self.num_ranks):
            switch.peers[worker_id] = PeerServer(LOOPBACK)
        return [
            self._stack.enter_context(
                Session.direct(switch.view(i), switch.transport(i), OPTIONS, peers=switch.peers[i])
            )
            for i in range(self.num_ranks)
        ]

    def _group(self, rank: int) -> Any:
        make: Any = dist.ProcessGroupGloo
        return make(self._store, rank, self.num_ranks, timedelta(seconds=WAIT_S))

    def run(self, call: Callable[[int], Any], ranks: Sequence[int] | None = None) -> list[Any]:
        """Call in one thread per rank; the first error is raised, with the rank's trace."""
        ranks = range(self.num_ranks) if ranks is None else ranks
        with ThreadPoolExecutor(self.num_ranks) as pool:
            return [future.result(3 * WAIT_S) for future in [pool.submit(call, r) for r in ranks]]

    def wrap(self, rank: int, module: nn.Module, **options: Any) -> HybridParallel:
        """Wrap a module as a rank does."""
        options = {"session": self.sessions[rank], "timeout_s": WAIT_S, **options}
        return HybridParallel(module, group=self.groups[rank], address=LOOPBACK, **options)

    def close(self) -> None:
        self._stack.close()


def seeded(make: Callable[[], nn.Module], seed: int) -> nn.Module:
    """Make a module from a seed; threads share the generator."""
    with _SEED_LOCK, torch.random.fork_rng():
        torch.manual_seed(seed)
        return make()


_SEED_LOCK = threading.Lock()


def batches(num: int, *shape: int, seed: int = 3) -> list[Tensor]:
    """Return inputs for so many iterations."""
    generator = torch.Generator().manual_seed(seed)
    return [torch.randn(*shape, generator=generator) for _ in range(num)]


def parameters_of(module: nn.Module) -> Tensor:
    """Return all parameters in one row."""
    return torch.cat([parameter.detach().reshape(-1) for parameter in module.parameters()])


@pytest.fixture(scope="module", autouse=True)
def one_thread() -> Iterator[None]:
    """Ranks are threads already."""
    threads = torch.get_num_threads()
    torch.set_num_threads(1)
    yield
    torch.set_num_threads(threads)


@pytest.fixture(scope="module")
def ranks() -> Iterator[HybridRanks]:
    """NUM_RANKS ranks, with a switch."""
    started = HybridRanks(NUM_RANKS)
    yield started
    started.close()


def three_layers() -> nn.Sequential:
    return nn.Sequential(
        nn.Linear(12, 16), nn.Tanh(), nn.Linear(16, 14), nn.Tanh(), nn.Linear(14, 5)
    )


def train(model: nn.Module, inputs: list[Tensor], parameters: Any) -> list[float]:
    return steps(model, torch.optim.SGD(parameters, lr=0.05, momentum=0.9), inputs)


def steps(model: nn.Module, optimizer: Any, inputs: list[Tensor]) -> list[float]:
    losses: list[float] = []
    for x in inputs:
        optimizer.zero_grad()
        loss = (model(x) - x[:, :5].sin()).square().mean()
        loss.backward()
        optimizer.step()
        losses.append(loss.item())
    return losses
