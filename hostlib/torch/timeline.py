# SPDX-FileCopyrightText: 2026 The Switchfold Authors
# SPDX-License-Identifier: Apache-2.0
"""Records a training process: the computation of modules and the transfers of process groups.

SWITCHFOLD_TRACE=FOLDER records a whole run without a change to the script. The recording begins
with the first process group and ends when the last one is destroyed; then it writes the file of
this rank. A program can call `start_recording` and `Recording.stop` instead.

Times are those of the host. The spans of modules that compute on another device show when the work
was launched.
"""

from __future__ import annotations

import atexit
import functools
import itertools
import logging
import os
import threading
import time
from importlib import import_module
from pathlib import Path
from typing import Any, Final, final
from weakref import WeakKeyDictionary

import torch

from ..config import trace_setting
from ..errors import ConfigurationError, TraceError
from ..tracing.timeline import Span, Timeline
from ..tracing.trace_files import trace_path, write_trace

_logger = logging.getLogger("switchfold.hostlib.torch")
_lock: Final = threading.Lock()
untyped: Any = torch  # some of its functions are only partly typed


@final
class Recording:
    """A timeline that hooks fill; at most one at a time in a process."""

    def __init__(self, timeline: Timeline, path: Path | None = None) -> None:
        self.timeline = timeline
        self.path = path
        """File that `stop` writes, if any."""
        self._passes = _Passes(timeline)
        self._handles: list[Any] = []
        self._num_groups = 0

    def start(self) -> None:
        """Hook into all modules and optimizers of this process."""
        modules, optimizers = untyped.nn.modules.module, import_module("torch.optim.optimizer")
        passes = self._passes
        self._handles = [
            modules.register_module_forward_pre_hook(passes.begin_forward),
            modules.register_module_forward_hook(passes.end_forward, always_call=True),
            optimizers.register_optimizer_step_pre_hook(passes.begin_step),
            optimizers.register_optimizer_step_post_hook(passes.end_step),
        ]

    def stop(self) -> Timeline:
        """Remove all hooks, write the file if `path` is set, and return the timeline.

        A second call only returns the timeline. Raises TraceError.
        """
        global _current  # noqa: PLW0603 - hooks are global too
        with _lock:
            if _current is not self:
                return self.timeline
            _current = None
        for handle in self._handles:
            handle.remove()
        self._passes.close()
        if self.path is not None:
            write_trace(self.timeline, self.path)
            _logger.info("trace of rank %d: %s", self.timeline.rank, self.path)
        return self.timeline

    def enter_group(self) -> None:
        """Note a process group that records here; call it when all of its ranks have joined."""
        self._num_groups += 1
        # This point aligns the ranks' clocks; only the first group is sure to have all ranks.
        if not self.timeline.clock.barrier_s:
            self.timeline.note_barrier()

    def leave_group(self) -> None:
        """Stop after the last process group; logs an error if the file cannot be written."""
        self._num_groups -= 1
        if not self._num_groups and self.path is not None:
            self._stop_quietly()

    def _stop_quietly(self) -> None:
        # Training must not fail because a trace cannot be written.
        try:
            self.stop()
        except TraceError as error:
            _logger.error("%s", error)


_current: Recording | None = None


def _forget() -> None:
    """Keep a forked process from writing the file of its parent."""
    global _current  # noqa: PLW0603 - hooks are global too
    _current = None


os.register_at_fork(after_in_child=_forget)
_recording_numbers: Final = itertools.count(1)
"""Numbers of the recordings that SWITCHFOLD_TRACE has started in this process."""


def start_recording(rank: int, path: Path | None = None, *, job: str = "") -> Recording:
    """Record from now on, regardless of SWITCHFOLD_TRACE; `stop` writes `path`.

    Raises ConfigurationError if this process already records.
    """
    global _current  # noqa: PLW0603 - hooks are global too
    with _lock:
        if _current is not None:
            raise ConfigurationError("this process already records a timeline; stop that first")
        _current = recording = Recording(Timeline(rank, job=job), path)
    recording.start()
    return recording


def group_recording(rank: int, job: str) -> Recording | None:
    """Return the recording for a process group of this process, or None.

    The first group starts the recording that SWITCHFOLD_TRACE asks for. Groups that are made after
    all earlier ones were destroyed have a file of their own, such as trace-0.2.json.
    """
    setting = trace_setting()
    if _current is None and setting:
        path = trace_path(setting, rank)
        number = next(_recording_numbers)
        if number > 1:
            path = path.with_suffix(f".{number}.json")
        recording = start_recording(rank, path, job=job)
        # Scripts may end without destroying their groups.
        atexit.register(recording._stop_quietly)  # pyright: ignore[reportPrivateUsage]
    return _current


class _Passes:
    """Forward and backward passes of the modules that are called.

    The backward pass of a leaf begins when the gradient of its output is computed. It ends when
    that of the next leaf begins, or for the last leaf when its last parameter has its gradient.
    """

    def __init__(self, timeline: Timeline) -> None:
        self._timeline = timeline
        self._names: WeakKeyDictionary[Any, str] = WeakKeyDictionary()
        self._handles: list[Any] = []
        self._calls: list[tuple[Any, float]] = []
        self._thread = threading.get_ident()
        self._leaf = ""
        self._leaf_begin_s = 0.0
        self._backward_begin_s = 0.0
        self._gradient_s = 0.0
        self._step_begin_s = 0.0

    def begin_forward(self, module: Any, _inputs: Any) -> None:
        """Note the begin of a module's forward pass."""
        if threading.get_ident() != self._thread:
            return
        if not self._calls:
            self._end_backward()
            if module not in self._names:
                self._meet(module)
        self._calls.append((module, time.monotonic()))

    def end_forward(self, module: Any, _inputs: Any, output: Any) -> None:
        """Record a root or a leaf, and watch for the gradient of a leaf's output."""
        if threading.get_ident() != self._thread or not self._calls:
            return
        called, begin_s = self._calls.pop()
        assert called is module
        is_leaf = not module._modules
        name = self._names.get(module, type(module).__name__)
        if is_leaf or not self._calls:
            self._record(name, "forward", begin_s)
        if is_leaf and isinstance(output, torch.Tensor) and output.requires_grad:
            watched: Any = output
            watched.register_hook(functools.partial(self._begin_leaf, name))

    def _meet(self, root: Any) -> None:
        """Note the module names of a model at its first call, and watch its gradients."""
        for name, module in root.named_modules():
            short = ".".join(part for part in name.split(".") if part != "module")
            self._names[module] = short or type(module).__name__
        for parameter in root.parameters():
            if parameter.requires_grad:
                self._handles.append(
                    parameter.register_post_accumulate_grad_hook(self._note_gradient)
                )

    def _begin_leaf(self, name: str, _gradient: torch.Tensor) -> None:
        self._end_leaf(time.monotonic())
        self._leaf, self._leaf_begin_s = name, time.monotonic()
        if not self._backward_begin_s:
            self._backward_begin_s = self._leaf_begin_s

    def _note_gradient(self, _parameter: torch.Tensor) -> None:
        self._gradient_s = time.monotonic()

    def _end_leaf(self, end_s: float) -> None:
        if self._leaf:
            self._record(self._leaf, "backward", self._leaf_begin_s, end_s)
            self._leaf = ""

    def _end_backward(self) -> None:
        """Record the last leaf and the whole of a backward pass, if there was one."""
        if not self._backward_begin_s:
            return
        end_s = max(self._gradient_s, self._leaf_begin_s)
        self._end_leaf(end_s)
        self._record("backward", "backward", self._backward_begin_s, end_s)
        self._backward_begin_s = 0.0

    def begin_step(self, *_: Any) -> None:
        """Note the begin of an optimizer's step, which ends the backward pass."""
        self._end_backward()
        self._step_begin_s = time.monotonic()

    def end_step(self, optimizer: torch.optim.Optimizer, *_: Any) -> None:
        """Record an optimizer's step."""
        self._record(type(optimizer).__name__, "optimizer", self._step_begin_s)

    def _record(self, name: str, category: str, begin_s: float, end_s: float = 0.0) -> None:
        end_s = end_s or time.monotonic()
        self._timeline.add_span(Span(name=name, category=category, begin_s=begin_s, end_s=end_s))

    def close(self) -> None:
        """Record a pending backward pass, and remove the hooks of parameters."""
        self._end_backward()
        for handle in self._handles:
            handle.remove()
