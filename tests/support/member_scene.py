# SPDX-FileCopyrightText: 2026 The Switchfold Authors
# SPDX-License-Identifier: Apache-2.0
"""Members of allreduces in one process, and what their sums must be."""

from __future__ import annotations

import contextlib
import socket
from collections.abc import Sequence
from concurrent.futures import Future
from types import TracebackType
from typing import Any, Self

import numpy as np

from fake_transfers import FakeTransfers, Policy
from loopback import LOOPBACK
from switchfold.hostlib.parameter_server import ClientOptions
from switchfold.hostlib.parameter_server.rules import Values
from switchfold.hostlib.parameter_server.transfers import FabricMember, TransferOptions

WAIT_S = 120.0
BRIEF_S = 0.1
"""How long members wait for grants that do not come."""


def free_addresses(count: int) -> list[tuple[str, int]]:
    """Return addresses with free ports, which no other process takes."""
    with contextlib.ExitStack() as stack:
        sockets = [stack.enter_context(socket.socket()) for _ in range(count)]
        for each in sockets:
            each.bind((LOOPBACK, 0))
        return [each.getsockname() for each in sockets]


def vectors_of(count: int, num_values: int, seed: int = 0) -> list[Values]:
    """Return vectors whose sum depends on the order of the additions."""
    rng = np.random.default_rng(seed)
    scales = 10.0 ** rng.integers(-4, 5, num_values)
    return [(rng.standard_normal(num_values) * scales).astype(np.float32) for _ in range(count)]


def sum_in_order(vectors: Sequence[Values]) -> Values:
    """Return the float32 sum in the order of the members."""
    total = vectors[0].copy()
    for vector in vectors[1:]:
        total += vector
    return total


class MemberScene:
    """A scheduler, and members that a test opens; without a policy, nobody listens."""

    def __init__(
        self, policy: Policy | None, num_members: int, *, grant_wait_s: float = WAIT_S
    ) -> None:
        self.members = free_addresses(num_members)
        self._stack = contextlib.ExitStack()
        self.fake = self.scheduler(policy or _never, grant_wait_s)
        if policy is None:
            self.fake.stop()

    def scheduler(self, policy: Policy, grant_wait_s: float = WAIT_S) -> FakeTransfers:
        """Start a scheduler."""
        fake = FakeTransfers(policy, grant_wait_s=grant_wait_s)
        self._stack.callback(fake.stop)
        return fake

    def member(
        self, worker_id: int, fake: FakeTransfers | None = None, **client: Any
    ) -> FabricMember:
        """Open a member, at this scheduler or another one."""
        options = TransferOptions(
            controller=(fake or self.fake).address,
            job="sums",
            host=f"h{worker_id}",
            grant_wait_s=BRIEF_S if fake is None and self._is_stopped else WAIT_S,
        )
        fields: dict[str, Any] = {"timeout_s": WAIT_S, "insecure": True} | client
        made = FabricMember(self.members, options, ClientOptions(worker_id=worker_id, **fields))
        self._stack.callback(made.close)
        return made

    def all(self, **client: Any) -> list[FabricMember]:
        """Open all members."""
        return [self.member(number, **client) for number in range(len(self.members))]

    @property
    def _is_stopped(self) -> bool:
        return self.fake.policy is _never

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self,
        exc_type: type[BaseException] | None,
        exc: BaseException | None,
        traceback: TracebackType | None,
    ) -> None:
        self._stack.close()


def reduce_all(members: Sequence[FabricMember], vectors: Sequence[Values]) -> list[Future[Values]]:
    """Let each member call all_reduce."""
    return [member.all_reduce(vector) for member, vector in zip(members, vectors, strict=True)]


def check_sums(futures: Sequence[Future[Values]], vectors: Sequence[Values]) -> None:
    """Check that all members have the bytes of the sum in the members' order."""
    wanted = sum_in_order(vectors).tobytes()
    for worker_id, future in enumerate(futures):
        assert future.result(WAIT_S).tobytes() == wanted, worker_id


def error_of(future: Future[Values]) -> BaseException | None:
    """Return what a call has failed with."""
    return future.exception(WAIT_S)


def _never(*_: object) -> None:
    raise AssertionError("nobody asks this scheduler")
