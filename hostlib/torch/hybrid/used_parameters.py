# SPDX-FileCopyrightText: 2026 The Switchfold Authors
# SPDX-License-Identifier: Apache-2.0
"""Which parameters had a gradient on some rank: the others keep what they have, on all ranks.

As with DistributedDataParallel: an optimizer passes by a parameter without a gradient, but decays
or moves on one whose gradient is zero. So a rank that did not use a parameter needs to know whether
another did; each rank's flags are added up beside the gradients, once per iteration.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import final

import torch
from torch import Tensor


@final
class UsedParameters:
    """What this rank has used since gradients left last, and mean gradients that wait for others.

    Safe from any thread but for `learn`, `settle` and `restart`, which belong to the iteration's
    end.
    """

    def __init__(self, parameters: Sequence[Tensor]) -> None:
        self._places = {id(parameter): place for place, parameter in enumerate(parameters)}
        self._here = [False] * len(parameters)
        self._anywhere = [True] * len(parameters)
        self._waiting: list[tuple[Tensor, Tensor]] = []

    @property
    def flags(self) -> list[bool]:
        """Of each parameter: whether this rank has a part in its gradient."""
        return list(self._here)

    def note(self, parameter: Tensor) -> None:
        """Learn that a backward pass has reached a parameter."""
        self._here[self._places[id(parameter)]] = True

    def put(self, parameter: Tensor, values: Tensor) -> None:
        """Write a mean (in host memory) into `.grad`, once it is known that any rank has a part."""
        if self._here[self._places[id(parameter)]]:
            _put(parameter, values)
        else:
            self._waiting.append((parameter, values))

    def learn(self, flags: Sequence[bool]) -> None:
        """Take the flags of all ranks together."""
        self._anywhere = list(flags)

    def settle(self) -> None:
        """Write what has waited; a parameter that no rank used keeps its gradient, or none."""
        for parameter, values in self._waiting:
            if self._anywhere[self._places[id(parameter)]]:
                _put(parameter, values)
        self.restart()

    def restart(self) -> None:
        """Begin with the gradients of the next iteration."""
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
        # The optimizer uses on its own stream what this one allocated.
        gradient.record_stream(torch.cuda.default_stream(gradient.device))
    parameter.grad = gradient
