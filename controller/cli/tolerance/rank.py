# SPDX-FileCopyrightText: 2026 The Switchfold Authors
# SPDX-License-Identifier: Apache-2.0
# pyright: reportUnknownMemberType=false, reportUnknownArgumentType=false
# pyright: reportUnknownVariableType=false
"""One rank: trains as the command asks for it on a socket, one training after the other.

Runs as a process of its own, `python -m switchfold.controller.cli.tolerance.rank SOCKET`, in the
environment of a worker and of torch.distributed. A request is a line of JSON; so is the answer.

DDP compares the hook's annotations with classes, so this module does not turn them into strings.
"""

import contextlib
import copy
import hashlib
import importlib
import json
import os
import socket
import sys
import time
from collections.abc import Callable, Mapping
from datetime import timedelta
from typing import Any, Final, cast

import torch
import torch.distributed as dist
from torch import nn
from torch._C._distributed_c10d import GradBucket
from torch.nn.parallel import DistributedDataParallel

from ....hostlib.loss_tolerance import NO_LOSS, Delivery, LossTolerance
from ....hostlib.torch import SwitchfoldState, allreduce_hook
from ....hostlib.torch.training_task import TrainingTask
from .errors import ToleranceRunError
from .models import MODELS

TIMEOUT: Final = timedelta(seconds=120)
"""Of an allreduce."""
_WARM_UP_PASSES: Final = 2
"""DDP arranges its buckets after the first backward pass, and tells the other ranks by Gloo."""
MakeTask = Callable[[int, int, int], object]
_dist: Any = dist  # its functions are only partly typed


class Missing:
    """What the sums of a training lacked."""

    def __init__(self) -> None:
        self.most = 0.0
        self._elements = self._lost = 0.0

    @property
    def mean(self) -> float:
        """Share of all ranks' gradients; 0 of none."""
        return self._lost / self._elements if self._elements else 0.0

    def note(self, delivery: Delivery) -> None:
        """Add the sum of a bucket."""
        missing = 1 - delivery.coverage
        self.most = max(self.most, missing)
        self._elements += delivery.num_elements
        self._lost += missing * delivery.num_elements


Averager = Callable[[SwitchfoldState, GradBucket], torch.futures.Future[torch.Tensor]]


class _Hooked:
    """The state that takes a model's buckets: one without tolerance until links lose packets."""

    def __init__(self, state: SwitchfoldState, average: Averager) -> None:
        self.state, self.average = state, average


def _hook(hooked: _Hooked, bucket: GradBucket) -> torch.futures.Future[torch.Tensor]:
    return hooked.average(hooked.state, bucket)


class RankTrainer:
    """The trainings of one rank, all by one session."""

    def __init__(self, joined: SwitchfoldState) -> None:
        """`joined` has the session, and no tolerance."""
        self._joined = joined
        self._task: TrainingTask | None = None
        self._state = joined
        self._hooked = _Hooked(joined, allreduce_hook)
        self._wrapped: Any = None
        self._plan: Mapping[str, Any] = {}

    def prepare(self, plan: Mapping[str, Any]) -> dict[str, Any]:
        """Make the model of a plan, over links that lose nothing."""
        rank, num_ranks, seed = self._joined.rank, self._joined.num_ranks, plan["seed"]
        torch.manual_seed(seed)
        make = find_maker(plan["source"])
        task = make(seed, rank, num_ranks)
        if not isinstance(task, TrainingTask):
            raise ToleranceRunError(
                f"{plan['source']} returned a {type(task).__name__}; it must return a"
                " switchfold.hostlib.torch.TrainingTask"
            )
        self._task, self._plan = task, plan
        self._hooked = _Hooked(self._joined, self.averager(plan))
        # Ranks compare their options, by Gloo as well.
        self._state = self.state_of(plan)
        self._wrapped = DistributedDataParallel(task.model, broadcast_buffers=False)
        self._wrapped.register_comm_hook(self._hooked, _hook)
        self._warm_up(task)
        torch.manual_seed(seed + rank)
        return {}

    def state_of(self, plan: Mapping[str, Any]) -> SwitchfoldState:
        """Return the state by which a plan's model trains."""
        return SwitchfoldState(
            session=self._joined.session,
            tolerance=LossTolerance(loss=plan["rate"]),
            fill=plan["fill"],
            timeout=TIMEOUT,
        )

    def averager(self, plan: Mapping[str, Any]) -> Averager:
        """Return what averages the buckets of a plan's model."""
        return allreduce_hook

    @property
    def verbs(self) -> dict[str, Callable[[Mapping[str, Any]], dict[str, Any]]]:
        """What the command may ask for."""
        return {"prepare": self.prepare, "train": self.train}

    def train(self, _: Mapping[str, Any]) -> dict[str, Any]:
        """Train as prepared; return what came of it."""
        task, plan, missing = self._task, self._plan, Missing()
        assert task is not None, "a training without its preparation"
        epochs = plan["epochs"] or task.epochs
        with self._state as state:
            self._hooked.state = state
            metrics, epoch_seconds = [self._measure(task)], list[float]()
            for _epoch in range(epochs):
                began_s = time.monotonic()
                self._train_epoch(task, state, missing)
                epoch_seconds.append(time.monotonic() - began_s)
                metrics.append(self._measure(task))
        weights = hashlib.sha256()
        for values in task.model.parameters():
            weights.update(values.detach().numpy().tobytes())
        return {
            "metrics": metrics,
            "epoch_seconds": epoch_seconds,
            "missing": missing.mean,
            "most_missing": missing.most,
            "weights": weights.hexdigest(),
        }

    def _warm_up(self, task: TrainingTask) -> None:
        """Let DDP arrange its buckets; the model stays as it is."""
        before = copy.deepcopy(task.model.state_dict())
        batches = iter(task.batches)
        inputs, targets = next(batches)
        for _ in range(_WARM_UP_PASSES):
            task.loss(self._wrapped(inputs), targets).backward()
        task.model.load_state_dict(before)
        task.optimizer.zero_grad()

    def _train_epoch(self, task: TrainingTask, state: SwitchfoldState, missing: Missing) -> None:
        task.model.train()
        for inputs, targets in task.batches:
            task.optimizer.zero_grad()
            task.loss(self._wrapped(inputs), targets).backward()
            task.optimizer.step()
            for delivery in state.deliveries.values():
                missing.note(delivery)

    def _measure(self, task: TrainingTask) -> float | None:
        """Return the metric on rank 0; all ranks have the same model."""
        if self._joined.rank != 0:
            return None
        model: nn.Module = task.model
        model.eval()
        with torch.no_grad():
            return float(task.metric(model))


MakeTrainer = Callable[[SwitchfoldState], RankTrainer]


def find_maker(source: str) -> MakeTask:
    """Return the built-in model of this name, or a script's function.

    Raises ToleranceRunError.
    """
    if source in MODELS:
        return MODELS[source]
    module, _, function = source.partition(":")
    try:
        made = getattr(importlib.import_module(module), function)
    except (ImportError, AttributeError) as exc:
        raise ToleranceRunError(
            f"cannot load {function!r} of the module {module!r}: {exc}; modules are searched for in"
            f" {os.getcwd()} and in PYTHONPATH"
        ) from exc
    if not callable(made):
        raise ToleranceRunError(f"{source} is a {type(made).__name__}, not a function")
    return cast("MakeTask", made)


def serve(connection: socket.socket, make_trainer: MakeTrainer) -> None:
    """Do what the command asks for, until it closes the connection."""
    with SwitchfoldState(tolerance=NO_LOSS, timeout=TIMEOUT) as joined:
        verbs = make_trainer(joined).verbs
        with connection.makefile("rw", encoding="utf-8") as lines:
            for line in lines:
                request = json.loads(line)
                answer = verbs[request["verb"]](request)
                lines.write(json.dumps(answer) + "\n")
                lines.flush()


def main(make_trainer: MakeTrainer = RankTrainer) -> None:
    """Be one rank. An error ends it, is told to the command, and is in its log."""
    torch.set_num_threads(1)
    with socket.socket(socket.AF_UNIX, socket.SOCK_STREAM) as connection:
        connection.connect(sys.argv[1])
        connection.sendall(json.dumps({"rank": int(os.environ["RANK"])}).encode() + b"\n")
        try:
            _dist.init_process_group("gloo", timeout=TIMEOUT)
            serve(connection, make_trainer)
            _dist.destroy_process_group()
        except Exception as error:
            said = {"error": f"{type(error).__name__}: {error}".partition("\n\nAt:")[0]}
            with contextlib.suppress(OSError):  # the command may have gone first
                connection.sendall(json.dumps(said).encode() + b"\n")
            raise


if __name__ == "__main__":
    main()
