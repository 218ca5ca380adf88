# SPDX-FileCopyrightText: 2026 The Switchfold Authors
# SPDX-License-Identifier: Apache-2.0
"""Detects computed gradients, by hooks on parameters."""

from __future__ import annotations

import threading
from collections.abc import Callable
from typing import Any, Protocol, cast, final

import torch
from torch import Tensor
from torch.utils.hooks import RemovableHandle

from .linear_factors import LinearFactors
from .trained_layers import TrainedLayer
from .used_parameters import UsedParameters


class GradientListener(Protocol):
    """Receives reports about backward passes, in autograd's threads."""

    def on_backward_begin(self) -> bool:
        """A backward pass has reached the first parameter; return whether it synchronises."""
        ...

    def on_layer(self, layer: int) -> None:
        """All gradients of a layer are computed; only in passes that synchronise."""
        ...

    def on_backward_end(self) -> None:
        """The pass has ended; only for passes that synchronise."""
        ...


@final
class GradientWatch:
    """Follows backward passes through a model's layers.

    Each weight that is used only through nn.Linear modules gets a LinearFactors, which is not
    installed yet. While no syncer uses it, `dense` names the weight; any factors captured then are
    multiplied before the layer is reported.
    """

    def __init__(
        self, layers: list[TrainedLayer], listener: GradientListener, used: UsedParameters
    ) -> None:
        self.factors: dict[str, LinearFactors] = {}
        """Captured factors by parameter name."""
        self.dense: set[str] = set()
        """Names of the parameters whose gradients are sent themselves, not as factors."""
        self._listener = listener
        self._used = used
        self._lock = threading.Lock()
        self._sizes = [len(layer.parameters) for layer in layers]
        self._missing: list[int] = []
        self._is_inside = False
        self._is_syncing = False
        self._handles: list[RemovableHandle] = []
        for index, layer in enumerate(layers):
            for parameter in layer.parameters:
                self.dense.add(parameter.name)
                if parameter.linears:
                    self.factors[parameter.name] = LinearFactors(
                        parameter.name, list(parameter.linears), self._on_factors(index)
                    )
                else:
                    tensor = cast("Any", parameter.tensor)  # annotated in part only
                    hook = self._on_gradient(index)
                    self._handles.append(tensor.register_post_accumulate_grad_hook(hook))

    def close(self) -> None:
        """Remove all hooks from the model."""
        for handle in self._handles:
            handle.remove()
        for factors in self.factors.values():
            factors.close()

    def forget_pass(self) -> None:
        """Forget a backward pass that did not end."""
        self._is_inside = False

    def _on_gradient(self, layer: int) -> Callable[[Tensor], None]:
        def arrived(parameter: Tensor) -> None:
            self._enter_pass()
            self._used.note(parameter)
            self._count(layer)

        return arrived

    def _on_factors(self, layer: int) -> Callable[[LinearFactors], None]:
        def arrived(factors: LinearFactors) -> None:
            self._enter_pass()
            self._used.note(factors.weight)
            if not self._is_syncing or factors.name in self.dense:
                factors.accumulate()
            self._count(layer)

        return arrived

    def _enter_pass(self) -> None:
        """Notice the first gradient of a backward pass."""
        with self._lock:
            if self._is_inside:
                return
            self._missing = list(self._sizes)
            self._is_syncing = self._listener.on_backward_begin()
            self._is_inside = True  # only after the listener has accepted the pass
            engine: Any = torch.autograd.Variable._execution_engine  # pyright: ignore
            engine.queue_callback(self._leave_pass)

    def _leave_pass(self) -> None:
        self._is_inside = False
        if self._is_syncing:
            self._listener.on_backward_end()

    def _count(self, layer: int) -> None:
        with self._lock:
            self._missing[layer] -= 1
            # Below 0 a gradient has come a second time, which the listener refuses.
            is_whole = self._missing[layer] <= 0
        if is_whole and self._is_syncing:
            self._listener.on_layer(layer)
