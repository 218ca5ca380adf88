# SPDX-FileCopyrightText: 2026 The Switchfold Authors
# SPDX-License-Identifier: Apache-2.0
"""Exchange of bytes and tensors among ranks before training, over a process group."""

from __future__ import annotations

import logging
from datetime import timedelta
from typing import Any, final

import torch
from torch import Tensor

from ..torch_seam import AllgatherOptions, BroadcastOptions

_logger = logging.getLogger("switchfold.hostlib.torch")


@final
class GroupTalk:
    """Collectives of any process group that offers broadcast and allgather."""

    def __init__(self, group: Any, device: torch.device) -> None:
        self.rank: int = group.rank()
        self.num_ranks: int = group.size()
        self._group = group
        backend = str(group.name()).lower() if callable(getattr(group, "name", None)) else ""
        self._device = device if "nccl" in backend else torch.device("cpu")

    def broadcast(self, tensor: Tensor) -> None:
        """Overwrite the tensor with rank 0's."""
        options = BroadcastOptions()
        options.rootRank = 0
        plain = tensor.detach()
        sent = plain.to(self._device).contiguous()
        self._group.broadcast([sent], options).wait()
        if sent.data_ptr() != plain.data_ptr():
            plain.copy_(sent)

    def broadcast_bytes(self, data: bytes) -> bytes:
        """Return rank 0's bytes."""
        size = torch.tensor([len(data)], device="cpu")
        self.broadcast(size)
        padded = torch.zeros(int(size), dtype=torch.uint8, device="cpu")
        if self.rank == 0:
            padded.copy_(torch.frombuffer(bytearray(data), dtype=torch.uint8))
        self.broadcast(padded)
        return padded.numpy().tobytes()

    def gather_bytes(self, data: bytes) -> list[bytes]:
        """Return the bytes of all ranks, by rank."""
        sizes = [int(n) for n in self._gather(torch.tensor([len(data)], device="cpu"))]
        padded = torch.zeros(max(1, *sizes), dtype=torch.uint8, device="cpu")
        padded[: len(data)] = torch.tensor(list(data), dtype=torch.uint8, device="cpu")
        parts = self._gather(padded)
        return [part[:size].numpy().tobytes() for part, size in zip(parts, sizes, strict=True)]

    def meet(self, timeout_s: float) -> bool:
        """Wait until all ranks call this; return False if they do not within `timeout_s`."""
        try:
            self._gather(torch.zeros(1, device="cpu"), timedelta(seconds=timeout_s))
        except RuntimeError as error:  # each backend has errors of its own
            _logger.info("rank %d: not all ranks came: %s", self.rank, error)
            return False
        return True

    def _gather(self, tensor: Tensor, timeout: timedelta | None = None) -> list[Tensor]:
        options = AllgatherOptions()
        if timeout is not None:
            options.timeout = timeout
        sent = tensor.to(self._device)
        parts = [torch.empty_like(sent) for _ in range(self.num_ranks)]
        self._group.allgather([parts], [sent], options).wait()
        return [part.cpu() for part in parts]
