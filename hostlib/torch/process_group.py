# SPDX-FileCopyrightText: 2026 The Switchfold Authors
# SPDX-License-Identifier: Apache-2.0
"""The process group: sums on the switch, everything else by the Gloo group inside."""

from __future__ import annotations

import contextlib
import logging
from datetime import timedelta
from typing import Any, Final, cast

import torch
import torch.distributed as dist

from hostlib.errors import HostlibError
from hostlib.options import ReduceOperation
from hostlib.session import Session
from hostlib.torch.staging import ARRAY_DTYPES, HostStaging, Staging
from hostlib.torch.switch_queue import SwitchQueue, Transfer
from hostlib.torch.timeline import Recording
from hostlib.torch.torch_seam import (
    AllreduceCoalescedOptions,
    AllreduceOptions,
    Gloo,
    ReduceOp,
    Store,
    default_timeout,
)
from hostlib.torch.work import NO_TIMEOUT, SwitchfoldWork

_logger = logging.getLogger("hostlib.torch")

LEAVE_S: Final = 5.0
"""How long a group that is destroyed waits for ranks that still need its results."""
NO_SESSION = ""


class SwitchfoldProcessGroup(dist.ProcessGroup):
    """A torch.distributed process group whose sums are made in the network.

    What it does not override runs as in a Gloo group, through the one registered here.
    """

    def __init__(
        self,
        store: Store,
        rank: int,
        num_ranks: int,
        *,
        name: str,
        gloo: Gloo,
        session: Session | None,
        recording: Recording | None = None,
    ) -> None:
        super().__init__(rank, num_ranks)  # pyright: ignore[reportCallIssue]  # stubs name one form
        self._store = store
        self._rank, self._name, self._gloo, self._session = rank, name, gloo, session
        for device in ("cpu", "cuda"):
            self._register_backend(torch.device(device), self.BackendType.GLOO, gloo)
        self._set_default_backend(self.BackendType.GLOO)
        self._recording = recording
        timeline = None
        if recording is not None:
            timeline = recording.timeline
            recording.enter_group()
        self._queue = SwitchQueue(session, name, timeline) if session is not None else None
        self._said: set[tuple[str, str]] = set()
        self._sequence = 0

    @property
    def session(self) -> Session | None:
        """The group's membership in its job; None where all runs on Gloo."""
        return self._session

    def get_group_store(self) -> Store:
        """Return the store that the group was made with."""
        return self._store

    def getBackendName(self) -> str:  # noqa: N802
        """Return "switchfold"; the name is PyTorch's."""
        return "switchfold"

    def allreduce(  # pyright: ignore[reportIncompatibleMethodOverride]  # bound by position
        self,
        tensors: list[torch.Tensor] | torch.Tensor,
        opts: Any = None,
        timeout: timedelta | None = None,
    ) -> dist.Work:
        """Sum or average over all ranks: on the switch where the dtype allows, else by Gloo."""
        tensors = [tensors] if isinstance(tensors, torch.Tensor) else tensors
        if not isinstance(opts, AllreduceOptions):
            options = AllreduceOptions()
            options.reduceOp = cast("ReduceOp", opts if opts is not None else ReduceOp.SUM)
            if timeout is not None:
                options.timeout = timeout
            opts = options
        reason = self._reason(tensors, opts.reduceOp)
        if len(tensors) != 1:
            reason = "several tensors at once"
        if reason is not None:
            self._say("all_reduce", reason)
            return self._gloo.allreduce(tensors, opts)
        return self._start("all_reduce", HostStaging(tensors), tensors, opts)

    def allreduce_coalesced(self, tensors: list[torch.Tensor], opts: Any = None) -> dist.Work:
        """Sum or average several tensors of one dtype as one."""
        opts = AllreduceCoalescedOptions() if opts is None else opts
        reason = self._reason(tensors, opts.reduceOp)
        if reason is not None:
            self._say("all_reduce_coalesced", reason)
            return self._gloo.allreduce_coalesced(tensors, opts)
        return self._start("all_reduce_coalesced", HostStaging(tensors), tensors, opts)

    def _reason(self, tensors: list[torch.Tensor], op: Any) -> str | None:
        """Return why a sum cannot run on the switch; None if it can."""
        if self._queue is None:
            return NO_SESSION
        # Not `in`: that asks the enum's member, which is never equal to an options' operation.
        if not any(op == known for known in (ReduceOp.SUM, ReduceOp.AVG)):
            return f"{_op_name(op)} is no sum"
        dtype = tensors[0].dtype
        if dtype not in ARRAY_DTYPES:
            return f"{dtype} cannot be summed on the switch"
        if op == ReduceOp.AVG and dtype == torch.int32:
            return "the mean of integers is no integer"
        if tensors[0].layout != torch.strided:
            return "the tensor is sparse"
        return None

    def _start(
        self, collective: str, staging: Staging, tensors: list[torch.Tensor], opts: Any
    ) -> dist.Work:
        assert self._queue is not None
        self._sequence += 1
        self._say(collective, "on the switch")
        tensor = tensors[0]
        operation: ReduceOperation = "mean" if opts.reduceOp == ReduceOp.AVG else "sum"
        shapes = ", ".join(str(tuple(t.shape)) for t in tensors)
        place = (
            f"rank {self._rank}, {collective} {self._sequence} of group {self._name!r}"
            f" ({operation} of {str(tensor.dtype).removeprefix('torch.')} {shapes})"
        )
        work = SwitchfoldWork(place, tensors)
        if not sum(tensor.numel() for tensor in tensors):
            work.finish()
            return work
        name = f"{collective} {self._sequence}"
        self._queue.put(Transfer(work, staging, operation, self._timeout_s(opts), name))
        return work

    def _timeout_s(self, opts: Any) -> float:
        timeout = opts.timeout
        if timeout <= NO_TIMEOUT:
            timeout = default_timeout(self._gloo)
        return timeout.total_seconds()

    def _say(self, collective: str, how: str) -> None:
        """Log, the first time, where a collective runs and why."""
        if how and (collective, how) not in self._said:
            self._said.add((collective, how))
            _logger.info("group %s: %s: %s", self._name, collective, how)

    def shutdown(self) -> None:
        """Leave the job; collectives under way end with GroupDestroyedError."""
        self._leave()
        self._gloo.shutdown()

    def abort(self) -> None:
        """End as `shutdown` does, without a word to the other ranks."""
        self._close()
        self._gloo.abort()

    def _leave(self) -> None:
        session = self._session
        if session is not None and self._queue is not None:
            # A rank that leaves must not take away what others still wait for.
            with contextlib.suppress(HostlibError):
                session.barrier("leave", LEAVE_S)
        self._close()

    def _close(self) -> None:
        if self._session is not None:
            self._session.close()
        if self._queue is not None:
            self._queue.close()
        recording, self._recording = self._recording, None
        if recording is not None:
            recording.leave_group()


def _op_name(op: Any) -> str:
    return str(getattr(op, "op", op)).rsplit(".", 1)[-1]
