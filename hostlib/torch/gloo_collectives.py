# SPDX-FileCopyrightText: 2026 The Switchfold Authors
# SPDX-License-Identifier: Apache-2.0
"""Collectives that a group leaves to the Gloo group inside, and says so once."""

from __future__ import annotations

import logging
from typing import Any, Final, cast

import torch
import torch.distributed as dist

from hostlib.torch.torch_seam import Gloo

logger = logging.getLogger("hostlib.torch")

MOVES: Final = "by Gloo: it moves values and adds nothing up"
PARTS: Final = "by Gloo: the switch would send every rank all sums for the part that it keeps"
PAIRS: Final = "by Gloo: it concerns two ranks"
EMPTY: Final = "by Gloo: there is nothing to add up"


class GlooCollectives(dist.ProcessGroup):
    """A process group that runs everything by Gloo, as PyTorch's own Gloo group does.

    Each method takes what the one it overrides takes. All are overridden, and none calls the one
    that it overrides: what C++ does for a group that is written in Python, it does with Python's
    lock held, and Gloo's threads need that lock to free tensors while callers wait for their queue.
    """

    def __init__(
        self, rank: int, num_ranks: int, *, name: str, gloo: Gloo, backend: Gloo | None = None
    ) -> None:
        """Take a Gloo group, and what to call in its place where that is not the group itself."""
        # The stubs name only a form that C++ does not offer to subclasses.
        super().__init__(rank, num_ranks)  # pyright: ignore[reportCallIssue]
        self.label = name
        """What torch.distributed calls the group."""
        self._timeouts = gloo
        backend = gloo if backend is None else backend
        # A group of C++ alone, whose methods let go of Python's lock at once.
        self._gloo: Any = cast("Any", dist.ProcessGroup)(rank, num_ranks)
        self._said: set[tuple[str, str]] = set()
        for group in (self, self._gloo):
            for device in ("cpu", "cuda"):
                group._register_backend(torch.device(device), self.BackendType.GLOO, backend)
            group._set_default_backend(self.BackendType.GLOO)

    def _say(self, collective: str, how: str) -> None:
        """Log, the first time, where a collective runs and why."""
        if (collective, how) not in self._said:
            self._said.add((collective, how))
            logger.info("group %s: %s: %s", self.label, collective, how)

    def allgather(self, *arguments: Any, **named: Any) -> Any:
        """Run by Gloo."""
        self._say("all_gather", MOVES)
        return self._gloo.allgather(*arguments, **named)

    def allgather_coalesced(self, *arguments: Any, **named: Any) -> Any:
        """Run by Gloo."""
        self._say("all_gather_coalesced", MOVES)
        return self._gloo.allgather_coalesced(*arguments, **named)

    def _allgather_base(self, *arguments: Any, **named: Any) -> Any:
        """Run by Gloo."""
        self._say("all_gather_into_tensor", MOVES)
        return self._gloo._allgather_base(*arguments, **named)

    def all_gather_single(self, *arguments: Any, **named: Any) -> Any:
        """Run by Gloo."""
        self._say("all_gather_into_tensor", MOVES)
        return self._gloo.all_gather_single(*arguments, **named)

    def all_gather_single_coalesced(self, *arguments: Any, **named: Any) -> Any:
        """Run by Gloo."""
        self._say("all_gather_into_tensor_coalesced", MOVES)
        return self._gloo.all_gather_single_coalesced(*arguments, **named)

    def gather(self, *arguments: Any, **named: Any) -> Any:
        """Run by Gloo."""
        self._say("gather", MOVES)
        return self._gloo.gather(*arguments, **named)

    def scatter(self, *arguments: Any, **named: Any) -> Any:
        """Run by Gloo."""
        self._say("scatter", MOVES)
        return self._gloo.scatter(*arguments, **named)

    def reduce_scatter(self, *arguments: Any, **named: Any) -> Any:
        """Run by Gloo."""
        self._say("reduce_scatter", PARTS)
        return self._gloo.reduce_scatter(*arguments, **named)

    def _reduce_scatter_base(self, *arguments: Any, **named: Any) -> Any:
        """Run by Gloo."""
        self._say("reduce_scatter_tensor", PARTS)
        return self._gloo._reduce_scatter_base(*arguments, **named)

    def reduce_scatter_single(self, *arguments: Any, **named: Any) -> Any:
        """Run by Gloo."""
        self._say("reduce_scatter_tensor", PARTS)
        return self._gloo.reduce_scatter_single(*arguments, **named)

    def reduce_scatter_single_coalesced(self, *arguments: Any, **named: Any) -> Any:
        """Run by Gloo."""
        self._say("reduce_scatter_tensor_coalesced", PARTS)
        return self._gloo.reduce_scatter_single_coalesced(*arguments, **named)

    def alltoall(self, *arguments: Any, **named: Any) -> Any:
        """Run by Gloo."""
        self._say("all_to_all", MOVES)
        return self._gloo.alltoall(*arguments, **named)

    def all_to_all_single(self, *arguments: Any, **named: Any) -> Any:
        """Run by Gloo."""
        self._say("all_to_all_single", MOVES)
        return self._gloo.all_to_all_single(*arguments, **named)

    def send(self, *arguments: Any, **named: Any) -> Any:
        """Run by Gloo."""
        self._say("send", PAIRS)
        return self._gloo.send(*arguments, **named)

    def recv(self, *arguments: Any, **named: Any) -> Any:
        """Run by Gloo."""
        self._say("recv", PAIRS)
        return self._gloo.recv(*arguments, **named)

    def recv_anysource(self, *arguments: Any, **named: Any) -> Any:
        """Run by Gloo."""
        self._say("recv", PAIRS)
        return self._gloo.recv_anysource(*arguments, **named)

    def barrier(self, *arguments: Any, **named: Any) -> Any:
        """Run by Gloo."""
        self._say("barrier", EMPTY)
        return self._gloo.barrier(*arguments, **named)

    def monitored_barrier(self, *arguments: Any, **named: Any) -> Any:
        """Run by Gloo."""
        self._say("monitored_barrier", EMPTY)
        return self._gloo.monitored_barrier(*arguments, **named)

    def shutdown(self) -> None:
        """End the threads of Gloo."""
        self._gloo.shutdown()

    def abort(self) -> None:
        """End what is under way by Gloo."""
        self._gloo.abort()
