# SPDX-FileCopyrightText: 2026 The Switchfold Authors
# SPDX-License-Identifier: Apache-2.0
"""The layers of a model: the trained parameters, and which of them may have factors."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any, final

from torch import Tensor, nn

from ...errors import ConfigurationError
from ...schemes import Layer
from .linear_factors import is_linear

_CONVOLUTIONS = (nn.Conv1d, nn.Conv2d, nn.Conv3d)
_TRANSPOSED = (nn.ConvTranspose1d, nn.ConvTranspose2d, nn.ConvTranspose3d)


@dataclass(frozen=True)
class TrainedParameter:
    """One parameter that is exchanged."""

    name: str
    """Name in `named_parameters`; the first one if several modules share the parameter."""
    tensor: Tensor
    linears: tuple[nn.Linear, ...] = ()
    """Modules whose factors make up its gradient; empty: the gradient itself is sent."""
    is_convolution: bool = False

    def as_layer(self, *, has_factors: bool) -> Layer:
        """Return the parameter as the cost model's layer: fc with factors, else conv or other."""
        if has_factors:
            rows, columns = self.tensor.shape
            return Layer(name=self.name, kind="fc", rows=rows, columns=columns)
        kind = "conv" if self.is_convolution else "other"
        return Layer(name=self.name, kind=kind, num_values=self.tensor.numel())


@dataclass(frozen=True)
class TrainedLayer:
    """The parameters that one module owns itself; one syncer exchanges them."""

    name: str
    module: nn.Module
    parameters: list[TrainedParameter] = field(default_factory=list[TrainedParameter])


def trained_layers(model: nn.Module) -> list[TrainedLayer]:
    """Return the layers with parameters that require gradients, in the order of registration.

    A parameter that several modules share belongs to the first. Raises ConfigurationError if there
    are none, if they are on different devices, or if one is not initialised or is not of a real
    floating-point dtype.
    """
    users: dict[int, list[nn.Module]] = {}
    for module in model.modules():
        for tensor in _own_parameters(module).values():
            users.setdefault(id(tensor), []).append(module)
    layers: list[TrainedLayer] = []
    seen: set[int] = set()
    named: list[tuple[str, nn.Module]] = list(model.named_modules())  # pyright: ignore[reportUnknownMemberType, reportUnknownArgumentType]
    for name, module in named:
        layer = TrainedLayer(name or type(module).__name__.lower(), module)
        for own_name, tensor in _own_parameters(module).items():
            if not tensor.requires_grad or id(tensor) in seen:
                continue
            seen.add(id(tensor))
            full_name = f"{name}.{own_name}" if name else own_name
            layer.parameters.append(_parameter(full_name, own_name, tensor, users[id(tensor)]))
        if layer.parameters:
            layers.append(layer)
    if not layers:
        raise ConfigurationError("the model has no parameters that require gradients")
    devices = {p.tensor.device for layer in layers for p in layer.parameters}
    if len(devices) > 1:
        raise ConfigurationError(
            f"the model's parameters are on {', '.join(sorted(map(str, devices)))}; move them to"
            " one device before wrapping the model"
        )
    return layers


@final
class KnownParameters:
    """Detects a trained parameter that belongs to none of the layers."""

    def __init__(self, model: nn.Module, layers: list[TrainedLayer]) -> None:
        # Checked in each iteration: `named_parameters` takes milliseconds for a large model.
        modules: list[tuple[str, Any]] = list(model.named_modules())  # pyright: ignore[reportUnknownMemberType, reportUnknownArgumentType]
        self._own = [(name, own._parameters) for name, own in modules]
        self._known = {id(parameter.tensor) for layer in layers for parameter in layer.parameters}

    def check(self) -> None:
        """Raise ConfigurationError if a parameter was replaced, added or unfrozen."""
        for module, parameters in self._own:
            for name, tensor in parameters.items():
                if tensor is None or id(tensor) in self._known:
                    continue
                if tensor.requires_grad and tensor.numel():
                    raise ConfigurationError(
                        f"parameter {f'{module}.{name}'.lstrip('.')} was replaced, added or"
                        " unfrozen after the model was wrapped: its gradients would differ between"
                        " ranks; close the model and wrap it again"
                    )


def _own_parameters(module: nn.Module) -> dict[str, Tensor]:
    own: dict[str, Any] = module._parameters  # pyright: ignore[reportPrivateUsage]
    return {name: tensor for name, tensor in own.items() if tensor is not None and _size(tensor)}


def _size(tensor: Tensor) -> int:
    if nn.parameter.is_lazy(tensor):
        raise ConfigurationError(
            "the model has parameters that get their shape in the first forward pass; run a"
            " forward pass before wrapping the model"
        )
    return tensor.numel()


def _parameter(
    full_name: str, own_name: str, tensor: Tensor, users: list[nn.Module]
) -> TrainedParameter:
    if not tensor.is_floating_point():
        raise ConfigurationError(
            f"parameter {full_name} is {tensor.dtype}; only floating-point gradients can be sent"
        )
    linears = tuple(
        module
        for module in users
        if isinstance(module, nn.Linear) and is_linear(module) and module.weight is tensor
    )
    is_whole = own_name == "weight" and len(linears) == len(users)
    return TrainedParameter(
        name=full_name,
        tensor=tensor,
        linears=linears if is_whole else (),
        is_convolution=own_name == "weight" and isinstance(users[0], _CONVOLUTIONS + _TRANSPOSED),
    )
