# SPDX-FileCopyrightText: 2026 The Switchfold Authors
# SPDX-License-Identifier: Apache-2.0
"""Which parameters had a gradient on some rank; the others keep their gradient on all ranks.

This is as with DistributedDataParallel. An optimizer skips a parameter without a gradient, but
applies decay or momentum to one whose gradient is zero. So a rank that did not use a parameter must
know whether another rank did. The ranks sum their flags once per iteration, beside the gradients.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import final

import torch
from torch import Tensor


@final
class UsedParameters:
    """Parameters that this rank used in this iteration, and means that wait for others' flags.

    Any thread may call any method except `learn`, `settle` and `restart`, which run at the end of
    an iteration.
    """

    def __init__(self, parameters: Sequence[Tensor]) -> None:
        self._places = {id(parameter): place for place, parameter in enumerate(parameters)}
        self._here = [False] * len(parameters)
        self._anywhere = [True] * len(parameters)
        self._waiting: list[tuple[Tensor, Tensor]] = []

    @property
    def flags(self) -> list[bool]:
        """For each parameter: whether this rank contributes to its gradient."""
        return list(self._here)

    def note(self, parameter: Tensor) -> None:
        """Note that a backward pass has reached a parameter."""
        self._here[self._places[id(parameter)]] = True

    def put(self, parameter: Tensor, values: Tensor) -> None:
        """Write a mean (in host memory) into `.grad`, or keep it until the flags of all are known.

        A parameter that this rank has used needs no flags of other ranks.
        """
        if self._here[self._places[id(parameter)]]:
            _put(parameter, values)
        else:
            self._waiting.append((parameter, values))

    def learn(self, flags: Sequence[bool]) -> None:
        """Take the combined flags of all ranks."""
        self._anywhere = list(flags)

    def settle(self) -> None:
        """Write the means that waited; a parameter that no rank used keeps its gradient or None."""
        for parameter, values in self._waiting:
            if self._anywhere[self._places[id(parameter)]]:
                _put(parameter, values)
        self.restart()

    def restart(self) -> None:
        """Begin the next iteration."""
        self._here = [False] * len(self._here)
        self._waiting.clear()


def _put(parameter: Tensor, values: Tensor) -> None:
    """Write values into a parameter's gradient; make one if there is none."""
    if parameter.grad is not None and parameter.grad.layout == torch.strided:
        parameter.grad.copy_(values, non_blocking=True)
        return
    gradient = torch.empty_like(parameter)
    gradient.copy_(values, non_blocking=True)
    if gradient.device.type == "cuda":
        # This stream allocated the gradient; the optimizer uses it on another stream.
        gradient.record_stream(torch.cuda.default_stream(gradient.device))
    parameter.grad = gradient
