# SPDX-FileCopyrightText: 2026 The Switchfold Authors
# SPDX-License-Identifier: Apache-2.0
"""Collectives that a group runs by its Gloo group; the log names each kind once."""

from __future__ import annotations

import logging
from collections.abc import Iterator, Mapping, Sequence
from typing import Any, Final, cast

import torch
import torch.distributed as dist

from ..profiling import begin_event, events_named, no_events
from ..torch_seam import Gloo, run_as_is
from .call_log import CallLog, CallText
from .delegated_work import DelegatedWork
from .failure_report import FailureReport
from .placement import check_device, check_host_memory
from .rendezvous import RankPlace

logger = logging.getLogger("switchfold.hostlib.torch")

MOVES: Final = "by Gloo: it moves values and adds nothing up"
PARTS: Final = "by Gloo: the switch would send every rank all sums for the part that it keeps"
PAIRS: Final = "by Gloo: it concerns two ranks"
EMPTY: Final = "by Gloo: there is nothing to add up"
NO_TEXT: Final = CallText("", "")


@run_as_is
class GlooCollectives(dist.ProcessGroup):
    """A process group that runs everything by Gloo, as PyTorch's own Gloo group does.

    Each method takes the arguments of the method that it overrides. All methods are overridden, and
    none calls the overridden one: for a group that is written in Python, C++ runs it with Python's
    lock held. Gloo's threads need that lock to free tensors while callers wait for their queue.
    """

    def __init__(
        self,
        place: RankPlace,
        *,
        name: str,
        gloo: Gloo,
        backend: Gloo | None = None,
    ) -> None:
        """Take a Gloo group; with `backend`, collectives run by that wrapper of the group.

        Ranks whose collectives do not end exchange their calls through the store.
        """
        # The stubs name only a form that C++ does not offer to subclasses.
        super().__init__(place.rank, place.num_ranks)  # pyright: ignore[reportCallIssue]
        self.label = name
        """The group's name in torch.distributed."""
        self._timeouts = gloo
        backend = gloo if backend is None else backend
        # A group in C++ only: its methods release Python's lock at once.
        self._gloo: Any = cast("Any", dist.ProcessGroup)(place.rank, place.num_ranks)
        self._said: set[tuple[str, str]] = set()
        self._log = CallLog()
        self._report = FailureReport(place, self._log)
        for group in (self, self._gloo):
            for device in ("cpu", "cuda"):
                group._register_backend(torch.device(device), self.BackendType.GLOO, backend)
            group._set_default_backend(self.BackendType.GLOO)

    def _say(self, collective: str, how: str) -> None:
        """Log once where a collective runs and why."""
        if (collective, how) not in self._said:
            self._said.add((collective, how))
            logger.info("group %s: %s: %s", self.label, collective, how)

    def _place(self, collective: str) -> str:
        return f"rank {self.rank()}, {collective} of group {self.label!r}"

    def _check_host_memory(
        self, kind: str, arguments: Sequence[Any], named: Mapping[str, Any]
    ) -> None:
        tensors = list(_tensors_in((*arguments, *named.values())))
        check_host_memory(self._place(kind), tensors)

    def _settle(self, tensors: Sequence[torch.Tensor]) -> None:
        """Wait until only Gloo uses the memory of these tensors."""

    def _delegate(
        self,
        kind: str,
        how: str,
        method: str,
        arguments: Sequence[Any],
        named: Mapping[str, Any] | None = None,
        *,
        text: CallText = NO_TEXT,
    ) -> DelegatedWork:
        """Run a collective of all ranks by Gloo."""
        named = named or {}
        self._say(kind, how)
        tensors = list(_tensors_in((*arguments, *named.values())))
        check_device(self._place(kind), tensors)
        self._settle(tensors)
        event = begin_event(kind, list(_inputs_in((*arguments, *named.values()))))
        with no_events():
            work = getattr(self._gloo, method)(*arguments, **named)
        call = self._log.add(kind, f"{text.what} by Gloo".lstrip(), f"{text.key} by Gloo")
        return DelegatedWork(work, self._place(call.name), self._report, self._gloo, event)

    def allgather(self, *arguments: Any, **named: Any) -> Any:
        """Run by Gloo."""
        return self._delegate("all_gather", MOVES, "allgather", arguments, named)

    def allgather_coalesced(self, *arguments: Any, **named: Any) -> Any:
        """Run by Gloo."""
        self._check_host_memory("all_gather_coalesced", arguments, named)
        return self._delegate(
            "all_gather_coalesced", MOVES, "allgather_coalesced", arguments, named
        )

    def _allgather_base(self, *arguments: Any, **named: Any) -> Any:
        """Run by Gloo."""
        return self._delegate("all_gather_into_tensor", MOVES, "_allgather_base", arguments, named)

    def all_gather_single(self, *arguments: Any, **named: Any) -> Any:
        """Run by Gloo."""
        return self._delegate(
            "all_gather_into_tensor", MOVES, "all_gather_single", arguments, named
        )

    def all_gather_single_coalesced(self, *arguments: Any, **named: Any) -> Any:
        """Run by Gloo."""
        return self._gather_singles("all_gather_single_coalesced", arguments, named)

    def allgather_into_tensor_coalesced(self, *arguments: Any, **named: Any) -> Any:
        """Run by Gloo: an older name of PyTorch's."""
        return self._gather_singles("allgather_into_tensor_coalesced", arguments, named)

    def _gather_singles(
        self, method: str, arguments: Sequence[Any], named: Mapping[str, Any]
    ) -> DelegatedWork:
        """Gather several tensors: those of a device one by one, since Gloo would crash.

        Its coalesced form takes their memory for the host's (PyTorch's issue 152645).
        """
        outputs, inputs, *options = arguments
        if not inputs or inputs[0].device.type == "cpu":
            kind = "all_gather_into_tensor_coalesced"
            return self._delegate(kind, MOVES, method, arguments, named)
        *others, last = [
            self._allgather_base(*pair, *options, **named)
            for pair in zip(outputs, inputs, strict=True)
        ]
        for work in others:
            work.wait()
        return last

    def gather(self, *arguments: Any, **named: Any) -> Any:
        """Run by Gloo."""
        return self._delegate("gather", MOVES, "gather", arguments, named)

    def scatter(self, *arguments: Any, **named: Any) -> Any:
        """Run by Gloo."""
        return self._delegate("scatter", MOVES, "scatter", arguments, named)

    def reduce_scatter(self, *arguments: Any, **named: Any) -> Any:
        """Run by Gloo."""
        return self._delegate("reduce_scatter", PARTS, "reduce_scatter", arguments, named)

    def _reduce_scatter_base(self, *arguments: Any, **named: Any) -> Any:
        """Run by Gloo."""
        return self._delegate(
            "reduce_scatter_tensor", PARTS, "_reduce_scatter_base", arguments, named
        )

    def reduce_scatter_single(self, *arguments: Any, **named: Any) -> Any:
        """Run by Gloo."""
        return self._delegate(
            "reduce_scatter_tensor", PARTS, "reduce_scatter_single", arguments, named
        )

    def reduce_scatter_single_coalesced(self, *arguments: Any, **named: Any) -> Any:
        """Run by Gloo."""
        return self._delegate(
            "reduce_scatter_tensor_coalesced",
            PARTS,
            "reduce_scatter_single_coalesced",
            arguments,
            named,
        )

    def reduce_scatter_tensor_coalesced(self, *arguments: Any, **named: Any) -> Any:
        """Run by Gloo: an older name of PyTorch's."""
        return self._delegate(
            "reduce_scatter_tensor_coalesced",
            PARTS,
            "reduce_scatter_tensor_coalesced",
            arguments,
            named,
        )

    def alltoall(self, *arguments: Any, **named: Any) -> Any:
        """Run by Gloo."""
        return self._delegate("all_to_all", MOVES, "alltoall", arguments, named)

    def all_to_all_single(self, *arguments: Any, **named: Any) -> Any:
        """Run by Gloo."""
        return self._delegate("all_to_all_single", MOVES, "all_to_all_single", arguments, named)

    def alltoall_base(self, *arguments: Any, **named: Any) -> Any:
        """Run by Gloo: an older name of PyTorch's."""
        return self._delegate("all_to_all_single", MOVES, "alltoall_base", arguments, named)

    def send(self, *arguments: Any, **named: Any) -> Any:
        """Run by Gloo."""
        self._say("send", PAIRS)
        self._check_host_memory("send", arguments, named)
        with events_named("send"):
            return self._gloo.send(*arguments, **named)

    def recv(self, *arguments: Any, **named: Any) -> Any:
        """Run by Gloo."""
        self._say("recv", PAIRS)
        self._check_host_memory("recv", arguments, named)
        with events_named("recv"):
            return self._gloo.recv(*arguments, **named)

    def recv_anysource(self, *arguments: Any, **named: Any) -> Any:
        """Run by Gloo."""
        self._say("recv", PAIRS)
        self._check_host_memory("recv", arguments, named)
        with events_named("recvAnySource"):
            return self._gloo.recv_anysource(*arguments, **named)

    def barrier(self, *arguments: Any, **named: Any) -> Any:
        """Run by Gloo."""
        return self._delegate("barrier", EMPTY, "barrier", arguments, named)

    def monitored_barrier(self, *arguments: Any, **named: Any) -> Any:
        """Run by Gloo."""
        self._say("monitored_barrier", EMPTY)
        self._log.add("monitored_barrier", "by Gloo", "by Gloo")
        return self._gloo.monitored_barrier(*arguments, **named)

    def shutdown(self) -> None:
        """End the threads of Gloo."""
        self._gloo.shutdown()

    def abort(self) -> None:
        """Abort Gloo's pending collectives."""
        self._gloo.abort()


def _tensors_in(arguments: Sequence[Any]) -> Iterator[torch.Tensor]:
    """Yield the tensors among the arguments, also those inside nested lists and tuples."""
    for argument in arguments:
        if isinstance(argument, torch.Tensor):
            yield argument
        elif isinstance(argument, list | tuple):
            yield from _tensors_in(cast("Sequence[Any]", argument))


def _inputs_in(arguments: Sequence[Any]) -> Iterator[torch.Tensor]:
    """Yield the tensors that a collective reads: the inputs if it also takes outputs."""
    has_outputs = len(arguments) > 1 and isinstance(arguments[1], torch.Tensor | list | tuple)
    return _tensors_in(arguments[1:2] if has_outputs else arguments[:1])
