# SPDX-FileCopyrightText: 2026 The Switchfold Authors
# SPDX-License-Identifier: Apache-2.0
"""DistributedDataParallel's communication hook: buckets are averaged by switches.

For a model whose process group is Gloo or NCCL; with the backend "switchfold" no hook is needed.
DDP compares the hook's annotations with classes, so this module's annotations stay objects.
"""

import atexit
import logging
import os
import queue
import threading
from types import TracebackType
from typing import Any, Final, Self, cast, final

import torch
import torch.distributed as dist
from numpy.typing import NDArray
from torch._C._distributed_c10d import GradBucket

from hostlib.config import join_from_environment
from hostlib.errors import HostlibError
from hostlib.options import SessionOptions
from hostlib.session import Session
from hostlib.straggler import WAIT_FOR_ALL, StragglerPolicy

DDP_OPTIONS: Final = SessionOptions(nonfinite="propagate", timeout_s=1800.0, taken_wait_s=30.0)
"""NaN travels, as gradient scalers expect; as patient as torch's process groups."""
_JOIN_S: Final = 5.0
_logger = logging.getLogger(__name__)
_dist: Any = dist  # its functions are only partly typed
_torch: Any = torch

TensorFuture = torch.futures.Future[torch.Tensor]


@final
class SwitchfoldState:
    """What `allreduce_hook` needs, and its options; a context manager.

    `process_group` is that of the DDP model, None for the default group: its ranks are the job's
    workers, and it carries sparse gradients. A `session` of your own is used and left open;
    otherwise this worker joins the job that the SWITCHFOLD_ variables name (`job` goes before
    SWITCHFOLD_JOB), which all ranks must do at the same time. The job ends when a rank is lost,
    unless `min_workers` allows fewer ranks; the mean is then over those who are left. `straggler`
    says what the job does about late ranks: gradients that lack some are the mean of those that
    came. Raises what `Session.join` raises.
    """

    def __init__(
        self,
        process_group: dist.ProcessGroup | None = None,
        *,
        session: Session | None = None,
        job: str = "",
        options: SessionOptions = DDP_OPTIONS,
        straggler: StragglerPolicy = WAIT_FOR_ALL,
        min_workers: int | None = None,
    ) -> None:
        self.process_group = process_group
        self.rank = dist.get_rank(process_group)
        self.num_workers = dist.get_world_size(process_group)
        self._owns_session = session is None
        if session is None:
            session = _join(
                job,
                self.rank,
                self.num_workers,
                self.num_workers if min_workers is None else min_workers,
                options=options,
                straggler=straggler,
            )
        self.session = session
        # Tensors are converted here, not in the thread that moves the session's packets.
        self._summed: queue.SimpleQueue[torch.futures.Future[None] | None] = queue.SimpleQueue()
        self._thread = threading.Thread(target=self._finish, name="switchfold-ddp", daemon=True)
        self._thread.start()
        # Who just vanishes fails the ranks that still wait for results.
        atexit.register(self.close)
        _logger.info(
            "DDP hook of rank %d of %d: %s, %s, %s, at least %s workers",
            self.rank, self.num_workers, session.view, options, straggler, min_workers or "all",
        )  # fmt: skip

    def average(self, values: torch.Tensor, name: str) -> TensorFuture:
        """Start averaging a dense tensor over the ranks; the future holds a new tensor.

        Takes float16, bfloat16, float32 and float64 of any shape. `values` must not change until
        the future is done; `name` is how errors call it.
        """
        name = f"rank {self.rank}, {name} ({values.numel()} values, {values.dtype})"
        started = _future_for(values)
        try:
            summed = self.session.allreduce(_to_array(values), op="mean")
        except HostlibError as error:
            raise _named(name, error) from error

        def result(_: object) -> torch.Tensor:
            # What a callback of a future raises is an error to DDP's reducer, in C++;
            # `set_exception` would give it a value of the wrong type.
            error = summed.exception()
            if error is not None:
                raise _named(name, error) from error
            return _to_tensor(summed.result(), values)

        finished = started.then(result)
        summed.add_done_callback(lambda _: self._summed.put(started))
        return finished

    def close(self) -> None:
        """End the session, if it is this state's own; averages under way fail. Never hangs."""
        atexit.unregister(self.close)
        if self._owns_session:
            self.session.close()
        self._summed.put(None)
        if threading.current_thread() is not self._thread:
            self._thread.join(_JOIN_S)

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self,
        exc_type: type[BaseException] | None,
        exc: BaseException | None,
        traceback: TracebackType | None,
    ) -> None:
        self.close()

    def _finish(self) -> None:
        while (started := self._summed.get()) is not None:
            started.set_result(None)


def allreduce_hook(
    state: SwitchfoldState, bucket: GradBucket
) -> torch.futures.Future[torch.Tensor]:
    """Average a bucket over the ranks: `model.register_comm_hook(state, allreduce_hook)`.

    The gradients are within the bound that `hostlib.quantization` states of the exact mean, and the
    same bytes on all ranks. bfloat16 is summed as float32 and rounded once. With a straggler policy
    each value is the mean over the ranks that contributed to it. Sparse gradients go through the
    model's process group. Compressing to float16 beforehand gains nothing: the switch adds 32-bit
    integers, whatever the dtype.
    """
    values = bucket.buffer()
    if values.is_sparse:
        return _average_sparse(state, values)
    if values.numel() == 0:
        return _done(values)
    return state.average(values, f"DDP bucket {bucket.index()}")


def _average_sparse(state: SwitchfoldState, values: torch.Tensor) -> TensorFuture:
    work = _dist.all_reduce(
        values.div_(state.num_workers), group=state.process_group, async_op=True
    )

    def result(future: Any) -> torch.Tensor:
        return future.value()[0]

    return work.get_future().then(result)


def _join(
    job: str,
    rank: int,
    num_workers: int,
    min_workers: int,
    *,
    options: SessionOptions,
    straggler: StragglerPolicy,
) -> Session:
    variables = {
        **os.environ,
        "SWITCHFOLD_JOB": job
        or os.environ.get("SWITCHFOLD_JOB")
        or os.environ.get("TORCHELASTIC_RUN_ID")
        or "torch",
        "SWITCHFOLD_WORKER_ID": str(rank),
        "SWITCHFOLD_NUM_WORKERS": str(num_workers),
        "SWITCHFOLD_MIN_WORKERS": str(min_workers),
    }
    return join_from_environment(options, straggler=straggler, variables=variables)


def _future_for(values: torch.Tensor) -> "torch.futures.Future[None]":
    """Return a future whose callbacks may make tensors where `values` is."""
    devices = [values.device] if values.is_cuda else None
    return torch.futures.Future(devices=cast(Any, devices))


def _done(values: torch.Tensor) -> TensorFuture:
    future = cast(TensorFuture, _future_for(values))
    future.set_result(values)
    return future


def _to_array(values: torch.Tensor) -> NDArray[Any]:
    """Return the values in the host's memory; numpy has no bfloat16."""
    values = values.detach()
    if values.dtype == torch.bfloat16:
        values = values.float()
    return values.cpu().contiguous().numpy()


def _to_tensor(array: NDArray[Any], like: torch.Tensor) -> torch.Tensor:
    return _torch.from_numpy(array).to(device=like.device, dtype=like.dtype)


def _named(name: str, error: Exception) -> HostlibError:
    return HostlibError(f"{name}: {error}")
