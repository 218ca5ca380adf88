# SPDX-FileCopyrightText: 2026 The Switchfold Authors
# SPDX-License-Identifier: Apache-2.0
"""The process group: the switch sums, and a Gloo group runs the other collectives."""

from __future__ import annotations

import contextlib
from collections.abc import Sequence
from dataclasses import dataclass, field
from datetime import timedelta
from typing import Any, Final, cast

import torch

from ...errors import HostlibError
from ...loss_fill import FillPolicy
from ...loss_tolerance import Delivery
from ...options import Precision, Summation
from ...session import Session
from ...summation.maxima import MAXIMA
from ..bounded_loss import BoundedSum, GroupLosses
from ..precision import GroupPrecision, calling_frame, is_ddp_bucket
from ..profiling import begin_event
from ..staging.device_staging import DeviceStaging, SideStreams
from ..staging.staging import BitStaging, Staging, SumStaging
from ..timeline import Recording
from ..torch_seam import (
    AllreduceCoalescedOptions,
    AllreduceOptions,
    BroadcastOptions,
    Gloo,
    ReduceOp,
    ReduceOptions,
    Store,
    default_timeout,
    run_as_is,
)
from .call_check import CallCheck
from .call_log import CallText
from .gloo_collectives import GlooCollectives
from .placement import (
    array_dtypes,
    check_alike,
    dtype_name,
    move_reason,
    operation_name,
    reduction_of,
    reduction_reason,
    tree_reason,
)
from .program_end import open_groups
from .rendezvous import RankPlace
from .switch_queue import QueuedTransfer, SwitchQueue
from .work import NO_TIMEOUT, SwitchfoldWork

LEAVE_S: Final = 5.0
"""How long a group that is being destroyed waits for ranks that may still need its results."""
ON_SWITCH: Final = "on the switch"
_BITS: Final = Summation()
"""Of a broadcast: all ranks but the root add zeros."""

Tensors = Sequence[torch.Tensor]


@dataclass(frozen=True, kw_only=True)
class GroupSettings:
    """What the environment of a process asks of its groups."""

    recording: Recording | None = None
    """None: no trace."""
    check: CallCheck | None = None
    """Compares the ranks' calls before each one; None: only after failures."""
    precision: GroupPrecision = field(default_factory=GroupPrecision)
    fill: FillPolicy = FillPolicy.MEAN
    """What takes the place of what DDP's buckets lack, in a job that tolerates loss."""


@run_as_is
class SwitchfoldProcessGroup(GlooCollectives):
    """A torch.distributed process group that sums in the network.

    Without a session it is a Gloo group. Collectives on the switch return at once, even if others
    are pending, and end in the order in which they were called.
    """

    def __init__(
        self,
        place: RankPlace,
        *,
        name: str,
        gloo: Gloo,
        backend: Gloo | None = None,
        session: Session | None,
        settings: GroupSettings | None = None,
    ) -> None:
        super().__init__(place, name=name, gloo=gloo, backend=backend)
        settings = settings or GroupSettings()
        self._check = settings.check
        self._precision = settings.precision
        self._store = place.store
        self._session = session
        self._recording = settings.recording
        timeline = None
        if self._recording is not None:
            timeline = self._recording.timeline
            self._recording.enter_group()
        self._queue = self._losses = None
        if session is not None:
            tolerance = session.view.straggler.tolerance
            if tolerance is not None:
                self._losses = GroupLosses(tolerance, settings.fill, session.view.worker_id)
            self._queue = SwitchQueue(session, name, timeline, report=self._report)
        self._streams = SideStreams()
        if session is not None:
            open_groups.add(self)

    @property
    def session(self) -> Session | None:
        """The group's session; None if Gloo runs everything."""
        return self._session

    @property
    def deliveries(self) -> tuple[Delivery, ...]:
        """What DDP's buckets of the last backward pass lack, in their order.

        Empty if the job tolerates no loss. All ranks read the same.
        """
        return () if self._losses is None else tuple(self._losses.deliveries)

    def getBackendName(self) -> str:  # noqa: N802
        """Return "switchfold"; the method's name is PyTorch's."""
        return "switchfold"

    def get_group_store(self) -> Store:
        """Return the group's store."""
        return self._store

    def _get_sequence_number_for_group(self) -> int:
        """Return how many collectives the group has begun, without send and receive."""
        return self._log.num_calls

    # PyTorch calls the next methods by position, from Python and from C++.

    def allreduce(  # pyright: ignore[reportIncompatibleMethodOverride]
        self, tensors: Any, opts: Any = None, timeout: timedelta | None = None
    ) -> Any:
        """Reduce over all ranks, on the switch if operation and dtype allow it."""
        tensors = [tensors] if isinstance(tensors, torch.Tensor) else list(tensors)
        if not isinstance(opts, AllreduceOptions):
            options = AllreduceOptions()
            options.reduceOp = cast("Any", ReduceOp.SUM if opts is None else opts)
            opts = _with_timeout(options, timeout)
        check_alike(self._place("all_reduce"), tensors)
        caller = calling_frame()
        precision = self._precision.of_call(caller)
        bounded = None
        # DDP's reducer also sums integers: which parameters were used.
        is_gradient = precision == "block" and tensors[0].is_floating_point()
        if self._losses is not None and is_gradient and is_ddp_bucket(caller):
            bounded = self._losses.bounded()
        reason = self._unless(reduction_reason(tensors, opts.reduceOp))
        if reason is None and len(tensors) > 1:
            reason = "by Gloo: several tensors of one rank are added up, too"
        if reason is not None:
            return self._delegate(
                "all_reduce", reason, "allreduce", (tensors, opts), text=_summed(tensors, opts)
            )
        return self._sum("all_reduce", tensors, opts, precision, bounded=bounded)

    def allreduce_coalesced(self, tensors: Any, opts: Any = None) -> Any:
        """Reduce several tensors as one."""
        tensors = list(tensors)
        opts = AllreduceCoalescedOptions() if opts is None else opts
        check_alike(self._place("all_reduce_coalesced"), tensors)
        reason = self._unless(reduction_reason(tensors, opts.reduceOp))
        if reason is not None:
            return self._delegate(
                "all_reduce_coalesced",
                reason,
                "allreduce_coalesced",
                (tensors, opts),
                text=_summed(tensors, opts),
            )
        return self._sum("all_reduce_coalesced", tensors, opts, self._precision.of_others)

    def reduce(self, tensors: Any, opts: Any = None, *arguments: Any, **named: Any) -> Any:  # pyright: ignore[reportIncompatibleMethodOverride]
        """Reduce into one rank's tensor; the switch leaves the other tensors unchanged."""
        if not isinstance(opts, ReduceOptions):
            reason = "by Gloo: called without options"
            return self._delegate("reduce", reason, "reduce", (tensors, opts, *arguments), named)
        check_alike(self._place("reduce"), tensors)
        reason = self._unless(reduction_reason(tensors, opts.reduceOp))
        reason = reason or tree_reason(tensors[0], self.size())
        if reason is not None or len(tensors) > 1:
            reason = reason or "by Gloo: several tensors of one rank"
            text = _summed(tensors, opts).plus(f" to rank {opts.rootRank}")
            return self._delegate("reduce", reason, "reduce", (tensors, opts), text=text)
        precision = self._precision.of_others
        return self._sum("reduce", tensors, opts, precision, root=opts.rootRank)

    def broadcast(  # pyright: ignore[reportIncompatibleMethodOverride]
        self, tensors: Any, opts: Any = None, timeout: timedelta | None = None
    ) -> Any:
        """Copy the root's bits to all ranks, on the switch if that is faster."""
        tensors = [tensors] if isinstance(tensors, torch.Tensor) else list(tensors)
        if not isinstance(opts, BroadcastOptions):
            options = BroadcastOptions()
            options.rootRank = cast("int", opts or 0)
            opts = _with_timeout(options, timeout)
        check_alike(self._place("broadcast"), tensors)
        reason = self._unless(move_reason(tensors[0], self.size()))
        text = _text(f"from rank {opts.rootRank}, ", tensors)
        if reason is not None or len(tensors) > 1:
            reason = reason or "by Gloo: several tensors of one rank"
            return self._delegate("broadcast", reason, "broadcast", (tensors, opts), text=text)
        staging = BitStaging(tensors[0], is_root=opts.rootRank == self.rank())
        return self._start("broadcast", staging, tensors, opts, text=text)

    def _unless(self, reason: str | None) -> str | None:
        """Return why a collective runs by Gloo: because of the group, or the call's `reason`."""
        return "by Gloo: the group has no session" if self._queue is None else reason

    def _settle(self, tensors: Tensors) -> None:
        if self._queue is not None:
            self._queue.settle(tensors)

    def _sum(
        self,
        collective: str,
        tensors: Tensors,
        opts: Any,
        precision: Precision,
        root: int | None = None,
        *,
        bounded: BoundedSum | None = None,
    ) -> Any:
        operation = reduction_of(opts.reduceOp)
        assert operation is not None, "else it has a reason to run by Gloo"
        is_kept, dtypes = root is None or root == self.rank(), array_dtypes(operation)
        staging: Staging
        if tensors[0].device.type == "cpu":
            staging = SumStaging(tensors, is_kept=is_kept, dtypes=dtypes)
        else:
            self._settle(tensors)  # before DeviceStaging starts the copies to the host
            stream = self._streams.of(tensors[0].device)
            staging = DeviceStaging(tensors, stream, is_kept=is_kept, dtypes=dtypes)
        text = _text(f"{operation} of ", tensors)
        if root is not None:
            text = text.plus(f" to rank {root}")
        if operation not in MAXIMA and precision == "block" and tensors[0].is_floating_point():
            text = text.plus(" in blocks")
        return self._start(
            collective,
            staging,
            tensors,
            opts,
            text=text,
            summation=Summation(operation=operation, precision=precision),
            bounded=bounded,
        )

    def _start(  # noqa: PLR0913 - all that a collective is made of
        self,
        collective: str,
        staging: Staging,
        tensors: Tensors,
        opts: Any,
        *,
        text: CallText,
        summation: Summation = _BITS,
        bounded: BoundedSum | None = None,
    ) -> SwitchfoldWork:
        assert self._queue is not None
        self._say(collective, ON_SWITCH)
        call = self._log.add(collective, *text)
        place = f"{self._place(call.name)}, {text.what}"
        if self._check is not None:
            self._check.compare(place, str(call))
        work = SwitchfoldWork(place, tensors, staging, begin_event(collective, tensors))
        if any(tensor.numel() for tensor in tensors):
            timeout = opts.timeout if opts.timeout > NO_TIMEOUT else default_timeout(self._timeouts)
            self._queue.put(
                QueuedTransfer(
                    work,
                    staging,
                    summation.operation,
                    timeout.total_seconds(),
                    name=call.name,
                    label=f"{collective} {text.key}",
                    precision=summation.precision,
                    bounded=bounded,
                )
            )
        else:
            work.finish()
        return work

    def shutdown(self) -> None:
        """Leave the job; pending collectives end with GroupDestroyedError."""
        self.wait_for_others()
        self.close()
        super().shutdown()

    def abort(self) -> None:
        """Leave the job without waiting for other ranks."""
        self.close()
        super().abort()

    def wait_for_others(self) -> None:
        """Wait until the other ranks need nothing more from this one, at most LEAVE_S."""
        if self._session is not None and self in open_groups:
            # Other ranks may still wait for results that this rank contributes to. A rank that
            # does not come to this barrier is busy or has failed.
            with contextlib.suppress(HostlibError):
                self._session.barrier("leave", LEAVE_S)

    def close(self) -> None:
        """Leave the job without waiting for other ranks; the Gloo group stays usable."""
        open_groups.discard(self)
        if self._session is not None:
            self._session.close()
        if self._queue is not None:
            self._queue.close()
        recording, self._recording = self._recording, None
        if recording is not None:
            recording.leave_group()


def _with_timeout(options: Any, timeout: timedelta | None) -> Any:
    if timeout is not None:
        options.timeout = timeout
    return options


def _described(tensors: Tensors) -> str:
    shapes = ", ".join(str(tuple(tensor.shape)) for tensor in tensors[:4])
    more = f" and {len(tensors) - 4} more" if len(tensors) > 4 else ""
    return f"{dtype_name(tensors[0].dtype)} {shapes}{more}"


def _measured(tensors: Tensors) -> str:
    """Return dtype and number of values, which must be the same on all ranks."""
    return f"{dtype_name(tensors[0].dtype)} {sum(tensor.numel() for tensor in tensors)}"


def _text(verb: str, tensors: Tensors) -> CallText:
    return CallText(verb + _described(tensors), verb + _measured(tensors))


def _summed(tensors: Tensors, opts: Any) -> CallText:
    """Return the text of a sum that Gloo runs."""
    if tensors[0].layout != torch.strided:  # may differ in size
        return CallText("sparse tensors", "sparse")
    return _text(f"{operation_name(opts.reduceOp)} of ", tensors)
