# SPDX-FileCopyrightText: 2026 The Switchfold Authors
# SPDX-License-Identifier: Apache-2.0
"""Communication hook for DistributedDataParallel: switches average the buckets.

The hook is for a model whose process group is Gloo or NCCL; the backend "switchfold" needs none.
DDP compares the hook's annotations with classes, so this module does not turn them into strings.
"""

import atexit
import contextlib
import logging
import os
from collections.abc import Mapping
from datetime import timedelta
from types import TracebackType
from typing import Any, Final, Self, cast, final

import torch
import torch.distributed as dist
from torch._C._distributed_c10d import GradBucket
from torch.distributed.constants import default_pg_timeout

from ...config import job_token_from_environment
from ...errors import ConfigurationError, HostlibError
from ...loss_fill import FillPolicy
from ...loss_tolerance import NO_LOSS, Delivery, LossTolerance
from ...options import Precision
from ...session import Session
from ...session_checks import check_large_first_of
from ...step_tolerance import CriticalRegimes, LossGuard, StepTolerance
from ...straggler import WAIT_FOR_ALL, StragglerPolicy
from ...summation.hadamard import RandomizedHadamard
from ..agreement import (
    differences,
    dispersal_text,
    require_equal_replicas,
    tolerance_text,
)
from ..backend import BACKEND_NAME
from ..bounded_loss import (
    BoundedSum,
    BucketLosses,
    ParameterTolerance,
    check_tolerance,
    fill_policy,
)
from ..errors import CollectiveInputError, GroupDestroyedError
from ..layer_priority import BucketPriorities, num_classes
from ..process_group.environment import GroupPlace, draw_run, job_name
from ..process_group.switch_queue import QueuedTransfer, SwitchQueue
from ..process_group.work import SwitchfoldWork
from ..staging.device_staging import DeviceStaging, SideStreams
from ..staging.staging import ARRAY_DTYPES, Staging, SumStaging
from ..timeline import group_recording

LEAVE_S: Final = 5.0
"""How long a closing state waits for ranks that still need its results."""
TensorFuture = torch.futures.Future[torch.Tensor]
_logger = logging.getLogger("switchfold.hostlib.torch")
_dist: Any = dist  # its functions are only partly typed


@final
class SwitchfoldState:
    """State and options of `allreduce_hook`; a context manager.

    `process_group` is that of the DDP model, None for the default group. Its ranks are the job's
    workers, and it carries sparse gradients. All ranks must make their states at the same time,
    because each joins a job as a process group of the backend would: `job`, or the job that the
    SWITCHFOLD_ variables name. With `session`, the state uses that session of the same ranks
    instead and leaves it open. `timeout` is the limit of an allreduce. `straggler` is the job's
    policy for late ranks; gradients are then the mean over the ranks that came in time.
    `tolerance` says what gradients may lack because packets were lost: a LossTolerance for all
    parameters, or a mapping or function from a parameter to its own. A bucket takes the strictest
    of its parameters; a parameter without one lacks nothing. The same on all ranks. None: as
    `straggler`, or the job of `session`, says. `critical` says what gradients may lack in critical
    regimes of the training, if less; `guard` when they lack nothing for a while, because loss takes
    what they may lack. `fill` says what takes the place of what is missing.
    `dispersal`, the same on all ranks, spreads each gradient over the packets of its bucket.
    `front_first` gives buckets of front layers, which the next forward pass needs first, a higher
    priority in the switches' queues; the session must ask for a `max_priority` of 2 or more.
    `large_first`, the same on all ranks: packets of large values lack nothing, and have a higher
    priority where the session has more than one (`Session.allreduce`). Not with a `dispersal`,
    which makes all packets alike.
    `precision` "block" shares a scale per packet; "exact" rounds each mean once, at two to three
    times the packets. Raises the errors of `Session.join`, and ConfigurationError.
    """

    def __init__(  # noqa: PLR0913 - options as in torch's DistributedDataParallel
        self,
        process_group: dist.ProcessGroup | None = None,
        *,
        session: Session | None = None,
        job: str = "",
        timeout: timedelta = default_pg_timeout,
        straggler: StragglerPolicy = WAIT_FOR_ALL,
        precision: Precision = "block",
        tolerance: ParameterTolerance | None = None,
        critical: CriticalRegimes | None = None,
        guard: LossGuard | None = None,
        fill: FillPolicy | str = FillPolicy.MEAN,
        dispersal: RandomizedHadamard | None = None,
        front_first: bool = False,
        large_first: bool = False,
    ) -> None:
        fill = fill_policy(fill)
        if tolerance is not None:
            check_tolerance(tolerance)
            straggler = _tolerant(straggler, tolerance)
        if precision == "exact" and (tolerance is not None or fill is not FillPolicy.MEAN):
            raise ConfigurationError(
                "precision 'exact' with a tolerance or a fill: exact sums of floats lack nothing"
                " that packets lost, and do not say who is late; leave both out, or take 'block'"
            )
        if large_first and (precision == "exact" or dispersal is not None):
            raise ConfigurationError(
                "large_first with precision 'exact', whose sums lack nothing, or with a dispersal,"
                " which makes all packets alike; leave one of them out"
            )
        self.process_group = process_group
        self.timeout = timeout
        self.precision: Precision = precision
        self.rank: int = _dist.get_rank(process_group)
        self.num_ranks: int = _dist.get_world_size(process_group)
        if _dist.get_backend(process_group) == BACKEND_NAME:
            raise ConfigurationError(
                f"the process group has the backend {BACKEND_NAME!r}, which sums on the switch by"
                " itself; train without this hook, or make the group with Gloo or NCCL"
            )
        is_own = tolerance is not None
        if tolerance is None:
            tolerance = (straggler if session is None else session.view.straggler).tolerance
        require_equal_replicas(tolerance)
        # Before a rank refuses an option, or asks for a job, that the others do not.
        self._agree(
            {
                "tolerance": tolerance_text(tolerance),
                "straggler": f"quorum {straggler.quorum} and deadline_s {straggler.deadline_s}",
                "precision": precision,
                "critical": str(critical),
                "guard": str(guard),
                "fill": str(fill),
                "dispersal": dispersal_text(dispersal),
                "large_first": str(large_first),
            }
        )
        self._owns_session = session is None
        if session is not None and session.view.num_workers != self.num_ranks:
            raise ConfigurationError(
                f"rank {self.rank}: the session has {session.view.num_workers} workers, the process"
                f" group {self.num_ranks} ranks: the mean would not be over the model's ranks;"
                " join a job of the group's ranks"
            )
        job = job or self._job_name()
        if session is not None and is_own and not session.view.straggler.tolerance:
            raise ConfigurationError(
                f"rank {self.rank}: a tolerance, but the job of the session waits for all"
                " contributions; join it with StragglerPolicy(tolerance=...) on all ranks"
            )
        self.step_tolerance = StepTolerance(critical, guard, tolerance=tolerance)
        """What the last backward pass tolerated, and why; the same on all ranks."""
        self.session = session or self._join(job, straggler)
        if dispersal is not None and (tolerance is None or precision == "exact"):
            raise ConfigurationError(
                f"rank {self.rank}: a dispersal of sums that lack nothing that packets lost; leave"
                " it out, or give a tolerance and precision 'block'"
            )
        self._priorities = self._bucket_priorities() if front_first else None
        if large_first:
            self._check_large_first()
        self._losses = BucketLosses(
            tolerance,
            fill,
            self.session.view.worker_id,
            dispersal,
            steps=self.step_tolerance,
            large_first=large_first,
            agree=self._agree,
        )
        self._recording = group_recording(self.rank, job)
        timeline = None
        if self._recording is not None:
            timeline = self._recording.timeline
            self._recording.enter_group()
        self._queue = SwitchQueue(self.session, "ddp", timeline, is_partial_allowed=True)
        self._streams = SideStreams()
        self._is_closed = False
        # A rank that exits without leaving makes ranks fail that still wait for results.
        self._process_id = os.getpid()
        atexit.register(self._close_at_exit)
        _logger.info(
            "DDP hook of rank %d of %d: %s, timeout %s, %s, fill %s",
            self.rank, self.num_ranks, self.session.view, timeout, straggler, fill,
        )  # fmt: skip

    @property
    def deliveries(self) -> dict[int, Delivery]:
        """What the gradients of the last backward pass lack, by bucket.

        All ranks read the same. Empty if the precision is "exact".
        """
        return dict(self._losses.deliveries)

    def bounded(self, bucket: GradBucket) -> BoundedSum:
        """Return what the sum of a bucket may lack, for `average`."""
        return self._losses.bounded(bucket.index(), bucket.parameters())

    def priority(self, bucket: GradBucket) -> int:
        """Return the priority of a bucket, for `average`; 0 unless front layers come first."""
        if self._priorities is None:
            return 0
        return self._priorities.of(bucket.index(), is_last=bucket.is_last())

    def average(
        self,
        values: torch.Tensor,
        name: str,
        bounded: BoundedSum | None = None,
        *,
        priority: int = 0,
    ) -> TensorFuture:
        """Start averaging a dense tensor in place over the ranks; the future holds the tensor.

        `values` is float16, bfloat16, float32 or float64, of any shape; the caller must not use it
        until the future is done. Errors call it `name`. Lost packets leave nothing out unless it is
        `bounded`. `priority` is that of `Session.allreduce`. Raises CollectiveInputError and
        GroupDestroyedError.
        """
        place = f"rank {self.rank}, {name} ({values.numel()} of {values.dtype})"
        if self._is_closed:
            raise GroupDestroyedError(f"{place}: the hook's state was closed; make a new one")
        if not values.is_floating_point() or values.dtype not in ARRAY_DTYPES:
            raise CollectiveInputError(
                f"{place}: the switch cannot average this dtype; use float32, or no hook"
            )
        staging = self._staging(values)
        work = SwitchfoldWork(place, [values], staging)
        if values.numel():
            timeout_s = self.timeout.total_seconds()
            self._queue.put(
                QueuedTransfer(
                    work,
                    staging,
                    "mean",
                    timeout_s,
                    name,
                    precision=self.precision,
                    bounded=bounded,
                    priority=priority,
                )
            )
        else:
            work.finish()
        return work.get_future().then(_only_tensor)

    def close(self) -> None:
        """Leave the job; pending averages fail. Never hangs.

        A session that the caller passed stays open, and pending averages end with it.
        """
        if self._owns_session and not self._is_closed:
            # Other ranks may still wait for results that this rank contributes to.
            with contextlib.suppress(HostlibError):
                self.session.barrier("leave", LEAVE_S)
        self._close()

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self,
        exc_type: type[BaseException] | None,
        exc: BaseException | None,
        traceback: TracebackType | None,
    ) -> None:
        if exc_type is None:
            self.close()
        else:
            self._close()

    def _staging(self, values: torch.Tensor) -> Staging:
        if values.device.type == "cpu":
            return SumStaging([values])
        return DeviceStaging([values], self._streams.of(values.device))

    def _job_name(self) -> str:
        group = self.process_group
        if group is None or group is _dist.group.WORLD:
            return job_name("", is_default=True)
        return job_name(cast(Any, group).group_name, is_default=False)

    def _join(self, job: str, straggler: StragglerPolicy) -> Session:
        place = GroupPlace(job, self.rank, self.num_ranks, _dist.get_rank(), run=self._agree_run())
        return place.join(place.open_transport(), self.timeout, straggler=straggler)

    def _bucket_priorities(self) -> BucketPriorities:
        try:
            return BucketPriorities(num_classes(self.session, f"rank {self.rank}"))
        except ConfigurationError:
            if self._owns_session:
                self.session.close()
            raise

    def _check_large_first(self) -> None:
        try:
            check_large_first_of(self.session.view, self.session.options)
        except ConfigurationError:
            if self._owns_session:
                self.session.close()
            raise

    def _agree_run(self) -> str:
        """Return the text of rank 0 that tells this job from others with its token."""
        if not job_token_from_environment():
            return ""
        runs: list[Any] = [draw_run()]
        group = self.process_group or _dist.group.WORLD
        first, *_ = _dist.get_process_group_ranks(group)
        _dist.broadcast_object_list(runs, src=first, group=group)
        return str(runs[0])

    def _agree(self, options: Mapping[str, str]) -> None:
        """Raise ConfigurationError on all ranks if their options differ; all ranks must call it."""
        said: list[Any] = [None] * self.num_ranks
        _dist.all_gather_object(said, dict(options), group=self.process_group)
        text = differences(said)
        if text:
            raise ConfigurationError(
                f"rank {self.rank}: the ranks have different options: {text}; give the same on all"
                " ranks"
            )

    def _close_at_exit(self) -> None:
        # A forked process shares the connections, and must not leave in the parent's place.
        if os.getpid() == self._process_id:
            self._close()

    def _close(self) -> None:
        atexit.unregister(self._close_at_exit)
        self._is_closed = True
        if self._owns_session:
            self.session.close()
        self._queue.close()
        recording, self._recording = self._recording, None
        if recording is not None:
            recording.leave_group()


def allreduce_hook(
    state: SwitchfoldState, bucket: GradBucket
) -> torch.futures.Future[torch.Tensor]:
    """Average a bucket over the ranks: `model.register_comm_hook(state, allreduce_hook)`.

    All ranks get the same bytes. With precision "block" they differ from the exact mean by at most
    the bound in `hostlib.summation.quantization`. bfloat16 is summed as float32 and rounded once.
    With a straggler policy or a tolerance each value is the mean over the ranks that contributed to
    it, unless the state has another fill. Sparse gradients go through the model's process group.
    Compression to float16 gains nothing: the switch adds 32-bit integers, whatever the dtype.
    """
    values = bucket.buffer()
    if values.is_sparse:
        work = _dist.all_reduce(
            values.div_(state.num_ranks), group=state.process_group, async_op=True
        )
        return work.get_future().then(_only_tensor)
    return state.average(
        values,
        f"DDP bucket {bucket.index()}",
        state.bounded(bucket),
        priority=state.priority(bucket),
    )


def _tolerant(straggler: StragglerPolicy, tolerance: ParameterTolerance) -> StragglerPolicy:
    """Return the policy of a job whose sums say what they tolerate."""
    if straggler != WAIT_FOR_ALL:
        raise ConfigurationError(
            f"a tolerance beside {straggler}: a job either leaves out late ranks or bounds what may"
            " be lost; give one or the other"
        )
    of_job = tolerance if isinstance(tolerance, LossTolerance) else NO_LOSS
    return StragglerPolicy(tolerance=of_job)


def _only_tensor(future: Any) -> torch.Tensor:
    return future.value()[0]
