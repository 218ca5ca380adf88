# SPDX-FileCopyrightText: 2026 The Switchfold Authors
# SPDX-License-Identifier: Apache-2.0
"""Parts that syncers exchange: a layer's gradients, factors of its weight, and the used flags."""

from __future__ import annotations

from typing import Any, Protocol, final

import numpy as np
import torch
from torch import Tensor

from ...schemes import Scheme
from ..hybrid.linear_factors import LinearFactors
from ..hybrid.used_parameters import UsedParameters
from ..staging.streams import CopyStream, host_tensor, to_host
from .scheme_channels import (
    USED_KEY,
    DenseChannel,
    FactorChannel,
    FlagChannel,
    Mean,
)
from .submission_order import Submission, SubmissionOrder


class SyncPart(Protocol):
    """One message that a syncer moves, sends, receives and moves back."""

    @property
    def key(self) -> str:
        """Its name, the same on all workers."""
        ...

    @property
    def scheme(self) -> Scheme:
        """The scheme that carries it."""
        ...

    @property
    def is_ordered(self) -> bool:
        """Whether it takes a ticket of the submission order."""
        ...

    @property
    def num_bytes(self) -> int:
        """Bytes that this rank gave to the channel in the last iteration."""
        ...

    def move_out(self, stream: CopyStream) -> None:
        """Copy the gradient into host memory."""
        ...

    def send(self, iteration: int, order: SubmissionOrder, ticket: int) -> None:
        """Submit it to the channel; returns at once."""
        ...

    def receive(self, timeout_s: float) -> None:
        """Wait until everything has arrived."""
        ...

    def move_in(self, stream: CopyStream) -> int:
        """Write the mean gradient; return the least number of workers in any part of it."""
        ...


class _Traffic:
    """Sending and receiving, which all parts share."""

    _submission: Submission | None = None
    _mean: Mean | None = None

    def _submit(self, submission: Submission, order: SubmissionOrder | None, ticket: int) -> None:
        self._submission = submission
        if order is None:
            submission.run()
        else:
            order.put(ticket, submission)

    def _receive(self, timeout_s: float) -> None:
        assert self._submission is not None
        reception = self._submission.reception(timeout_s)
        reception.wait(timeout_s)

    def _take_mean(self) -> Mean:
        assert self._submission is not None
        mean = self._submission.reception(0).mean()
        self._submission = None
        return mean


@final
class DensePart(_Traffic):
    """Gradients of one or more parameters, concatenated in one flat array."""

    def __init__(
        self, key: str, parameters: list[Tensor], channel: DenseChannel, used: UsedParameters
    ) -> None:
        self.key = key
        self.scheme = channel.scheme
        self.is_ordered = channel.is_ordered
        self._parameters = parameters
        self._channel = channel
        self._used = used
        is_long = channel.takes_float64 and any(p.dtype == torch.float64 for p in parameters)
        self._dtype = torch.float64 if is_long else torch.float32
        # A separate array: the channel reads it until all workers have their results.
        size = sum(parameter.numel() for parameter in parameters)
        self._host = host_tensor(size, self._dtype, parameters[0].device)

    @property
    def num_bytes(self) -> int:
        """Bytes of the gradients in the dtype that is sent."""
        return self._host.numel() * self._host.element_size()

    def move_out(self, stream: CopyStream) -> None:
        """Copy the gradients into host memory; a parameter without a gradient gives zeros."""
        with stream.context():
            for place, parameter in self._places(self._host):
                if parameter.grad is None:
                    place.zero_()
                else:
                    place.copy_(_dense(parameter.grad), non_blocking=True)
        stream.synchronize()

    def send(self, iteration: int, order: SubmissionOrder, ticket: int) -> None:
        """Submit the array to the channel; returns at once."""
        values = self._host.numpy()
        start = Submission(lambda: self._channel.send(self.key, values, iteration))
        self._submit(start, order if self.is_ordered else None, ticket)

    def receive(self, timeout_s: float) -> None:
        """Wait for the mean."""
        self._receive(timeout_s)

    def move_in(self, stream: CopyStream) -> int:
        """Write the mean into the gradients."""
        mean = self._take_mean()
        values = torch.from_numpy(mean.values.reshape(-1))  # pyright: ignore[reportUnknownMemberType]
        with stream.context():
            for place, parameter in self._places(values):
                self._used.put(parameter, place)
        stream.synchronize()
        return mean.num_contributors

    def _places(self, flat: Tensor) -> list[tuple[Tensor, Tensor]]:
        places: list[tuple[Tensor, Tensor]] = []
        start = 0
        for parameter in self._parameters:
            end = start + parameter.numel()
            places.append((flat[start:end].view(parameter.shape), parameter))
            start = end
        return places


@final
class FactorPart(_Traffic):
    """The weight gradient of a linear layer, by its factors."""

    def __init__(
        self, key: str, factors: LinearFactors, channel: FactorChannel, used: UsedParameters
    ) -> None:
        self.key = key
        self.scheme = channel.scheme
        self.is_ordered = channel.is_ordered
        self.num_rows = 0
        """Rows K of the last iteration."""
        self._factors = factors
        self._channel = channel
        self._used = used
        self._sent: tuple[Any, Any] | None = None

    @property
    def num_bytes(self) -> int:
        """Bytes of the factors of the last iteration."""
        return 4 * self.num_rows * sum(self._factors.weight.shape)

    def move_out(self, stream: CopyStream) -> None:
        """Copy u and v into host memory."""
        with stream.context():
            # This reference keeps the originals until the copies are made.
            originals = self._factors.take()
            u, v = (to_host(part, torch.float32) for part in originals)
        stream.synchronize()
        self._factors.release()
        self.num_rows = len(u)
        self._sent = (u.numpy(), v.numpy())

    def send(self, iteration: int, order: SubmissionOrder, ticket: int) -> None:
        """Submit the factors to the channel; returns at once."""
        assert self._sent is not None
        u, v = self._sent
        start = Submission(lambda: self._channel.send(self.key, u, v, iteration))
        self._submit(start, order if self.is_ordered else None, ticket)

    def receive(self, timeout_s: float) -> None:
        """Wait for the factors of all ranks, or for the matrix."""
        self._receive(timeout_s)

    def move_in(self, stream: CopyStream) -> int:
        """Compute the mean gradient from the factors and write it."""
        mean = self._take_mean()
        self._sent = None
        weight = self._factors.weight
        matrix = torch.from_numpy(mean.values.reshape(weight.shape))  # pyright: ignore[reportUnknownMemberType]
        with stream.context():
            self._used.put(weight, matrix)
        stream.synchronize()
        return mean.num_contributors


@final
class FlagPart(_Traffic):
    """Flags of the parameters that each rank has used; sent last, after the whole pass."""

    def __init__(self, used: UsedParameters, channel: FlagChannel, fewest: int) -> None:
        self.key = USED_KEY
        self.scheme = channel.scheme
        self.is_ordered = channel.is_ordered
        self._used = used
        self._channel = channel
        self._fewest = fewest
        self._flags = np.zeros(len(used.flags), np.int32)

    @property
    def num_bytes(self) -> int:
        """Bytes of the flags."""
        return self._flags.nbytes

    def move_out(self, stream: CopyStream) -> None:
        """Copy the flags."""
        self._flags[:] = self._used.flags

    def send(self, iteration: int, order: SubmissionOrder, ticket: int) -> None:
        """Submit the flags to the channel; returns at once."""
        start = Submission(lambda: self._channel.poll(self._flags, iteration))
        self._submit(start, order if self.is_ordered else None, ticket)

    def receive(self, timeout_s: float) -> None:
        """Wait for the flags of all ranks."""
        self._receive(timeout_s)

    def move_in(self, stream: CopyStream) -> int:
        """Store the combined flags; if fewer than `fewest` ranks are in them, set all flags."""
        mean = self._take_mean()
        is_whole = mean.num_contributors >= self._fewest
        self._used.learn([bool(each) or not is_whole for each in mean.values.reshape(-1)])
        return mean.num_contributors


def _dense(gradient: Tensor) -> Tensor:
    return gradient.to_dense() if gradient.layout != torch.strided else gradient
