# SPDX-FileCopyrightText: 2026 The Switchfold Authors
# SPDX-License-Identifier: Apache-2.0
"""Sufficient factors of the weight gradients of nn.Linear, captured from autograd.

The gradient of a weight W of shape (M, N) over K input rows is a sum of K outer products,

    dW = u^T v      u: (K, M) gradients of the layer's outputs, v: (K, N) its inputs

with all leading dimensions of a tensor flattened: K is batch times sequence length. Two hooks
around the module's forward capture the factors; the model's code does not change:

- before: the weight is marked as a constant, so autograd neither keeps the input for it nor
  computes dW. That saves 2 K M N operations in a backward pass. Whoever rebuilds dW computes it
  once, from the factors of all ranks.
- after: an identity function on the output keeps v and links the weight into the graph. In the
  backward pass it notes (u, v). After all uses of the weight, autograd reaches the weight itself,
  whose factors are then complete.

Other gradients of the weight are in `weight.grad`: from torch.nn.functional.linear with the same
weight, from an embedding tied to it, or from earlier passes. They travel as min(M, N) further
pairs, the identity and the matrix. So the result is always right, but such weights cost more.
Not supported: gradients of gradients (create_graph) through such a layer.
"""

from __future__ import annotations

import logging
from collections.abc import Callable
from typing import Any, final

import torch
from torch import Tensor, nn
from torch.utils.hooks import RemovableHandle

from ...errors import HostlibError

_logger = logging.getLogger("switchfold.hostlib.torch")

_MARK = "_switchfold_mark"
_SAMPLES = 64
"""Number of values of a gradient that are compared to detect a change."""
Factors = tuple[Tensor, Tensor]
"""u of shape (K, M) and v of shape (K, N)."""


class DoubleBackwardError(HostlibError, RuntimeError):
    """A layer whose factors are captured cannot give gradients of gradients."""


def is_linear(module: nn.Module) -> bool:
    """Return whether a module computes x W^T + b with a plain parameter as W."""
    return (
        isinstance(module, nn.Linear)
        and type(module).forward is nn.Linear.forward
        and isinstance(module._parameters.get("weight"), nn.Parameter)  # pyright: ignore[reportPrivateUsage]
    )


def matrix_of(u: Tensor, v: Tensor) -> Tensor:
    """Return u^T v of shape (M, N), in float32 or wider."""
    dtype = torch.promote_types(torch.promote_types(u.dtype, v.dtype), torch.float32)
    return u.to(dtype).t() @ v.to(dtype)


def factors_of(matrix: Tensor) -> Factors:
    """Return factors whose product is the matrix (M, N) itself; K is the smaller of M and N."""
    rows, columns = matrix.shape
    identity = torch.eye(min(rows, columns), dtype=matrix.dtype, device=matrix.device)
    if rows <= columns:
        return identity, matrix
    return matrix.t(), identity


@final
class _FactorTap(torch.autograd.Function):
    """The identity; it notes the factors in the backward pass."""

    @staticmethod
    def forward(ctx: Any, output: Tensor, _weight: Tensor, v: Tensor, taken: Any) -> Tensor:
        ctx.save_for_backward(v)
        ctx.taken = taken
        # An in-place operation, so that other in-place operations (ReLU) may follow.
        ctx.mark_dirty(output)
        return output

    @staticmethod
    def backward(ctx: Any, *gradients: Tensor) -> tuple[Tensor, None, None, None]:
        if torch.is_grad_enabled():
            raise DoubleBackwardError(
                f"layer {ctx.taken.name}: gradients of gradients (create_graph=True) are not"
                " possible with captured factors, which leave the weight out of the graph; give"
                f" this layer the scheme 'ps' or 'ina': scheme={{'{ctx.taken.name}': 'ps'}}"
            )
        (v,) = ctx.saved_tensors
        ctx.taken.note(gradients[0], v)
        return gradients[0], None, None, None


@final
class LinearFactors:
    """Captures the factors of one weight from all nn.Linear modules that use it.

    Each backward pass that reaches the weight calls `on_ready(self)` once, after all uses of the
    weight, in autograd's thread.
    """

    def __init__(
        self, name: str, modules: list[nn.Linear], on_ready: Callable[[LinearFactors], None]
    ) -> None:
        self.name = name
        self.weight: Tensor = modules[0].weight
        self.num_uses = 0
        """Calls of the modules with gradients enabled, since the start."""
        self.num_rows = 0
        """Rows K that the last call of `count_rows` returned."""
        self._counted = 0
        self._modules = modules
        self._on_ready = on_ready
        self._handles: list[RemovableHandle] = []
        self._noted: list[tuple[int, Tensor, Tensor]] = []
        self._held: list[Factors] = []
        self._taken: list[Factors] = []  # the parts that `take` has joined, until `release`
        self._num_noted = 0
        self._is_hidden = False
        self._has_warned = False
        # A parameter holds only a weak reference to its node; kept here, the node stays the same.
        self._node = torch.autograd.graph.get_gradient_edge(self.weight).node
        self._node_handle = self._node.register_hook(self._reach)

    @property
    def is_installed(self) -> bool:
        """Whether forward passes capture factors."""
        return bool(self._handles)

    def install(self) -> None:
        """Capture from the next forward pass on."""
        if self._handles:
            return
        for module in self._modules:
            self._handles += [
                module.register_forward_pre_hook(self._before, with_kwargs=True),
                # Before all other hooks, which may return something other than the product.
                module.register_forward_hook(
                    self._after, prepend=True, with_kwargs=True, always_call=True
                ),
            ]

    def remove(self) -> None:
        """Stop capturing; passes that have begun still yield factors."""
        for handle in self._handles:
            handle.remove()
        self._handles.clear()

    def close(self) -> None:
        """Remove all hooks from the model."""
        self.remove()
        self._node_handle.remove()

    def count_rows(self) -> int:
        """Return the rows K of all uses since the last call."""
        self.num_rows, self._counted = self._counted, 0
        return self.num_rows

    def __deepcopy__(self, _memo: Any) -> LinearFactors:
        # A copy of the model has the hooks, too; they act on this weight only.
        return self

    def __reduce__(self) -> Any:
        return _NoFactors, ()

    def _before(self, module: nn.Module, args: Any, kwargs: Any) -> None:
        is_own = module._parameters.get("weight") is self.weight  # pyright: ignore[reportPrivateUsage]
        if is_own and torch.is_grad_enabled() and self.weight.requires_grad:
            self._is_hidden = True
            self.weight.requires_grad_(False)

    def _after(self, _module: nn.Module, args: Any, kwargs: Any, output: Any) -> Tensor | None:
        if not self._is_hidden:
            return None
        self._is_hidden = False
        self.weight.requires_grad_(True)
        if output is None:  # the module has failed and raises an exception
            return None
        v: Tensor = (args[0] if args else kwargs["input"]).detach()
        # Under autocast the module computed in another dtype than that of its input.
        v = v.to(output.dtype)
        self.num_uses += 1
        self._counted += v.numel() // max(v.shape[-1], 1)
        return _FactorTap.apply(output, self.weight, v, self)  # pyright: ignore[reportUnknownMemberType, reportUnknownVariableType]

    def note(self, u: Tensor, v: Tensor) -> None:
        """Take the factors of one use; only `_FactorTap` calls this."""
        rows = u.detach().reshape(-1, u.shape[-1])
        self._noted.append((_pass_number(), rows, v.reshape(-1, v.shape[-1])))

    def _reach(self, _inputs: Any, gradients: tuple[Tensor | None, ...]) -> None:
        """Note that autograd has passed all uses of the weight."""
        if gradients[0] is not None and not self._has_warned and self.is_installed:
            self._has_warned = True
            _logger.warning(
                "layer %s: its weight is also used outside its nn.Linear; that part of the gradient"
                " is sent as a matrix. The schemes 'ps' and 'ina' are cheaper here",
                self.name,
            )
        # torch.autograd.grad also passes uses of the weight, but never calls this hook.
        number = _pass_number()
        self._noted = [entry for entry in self._noted if entry[0] == number]
        self._on_ready(self)

    def accumulate(self) -> None:
        """Add the product of this backward pass's factors to `weight.grad`, as autograd would."""
        factors = self._take_noted()
        if not factors:
            return
        is_covered = self._covers_gradient()
        with torch.no_grad():
            u, v = _joined(factors)
            matrix = matrix_of(u, v).to(self.weight.dtype)
            if self.weight.grad is None:
                self.weight.grad = matrix
            else:
                self.weight.grad += matrix
        if is_covered and self.is_installed:
            # Copies: later work may reuse this memory, above all that of the inputs.
            self._held += [(u.clone(), v.clone()) for u, v in factors]
            _mark(self.weight.grad)

    def take(self) -> Factors:
        """Return all factors since the last call; their product is to replace `weight.grad`.

        The factors cover everything in `weight.grad`, including what `accumulate` has added. On a
        device they may not be computed yet: call `release` only when the stream has reached this
        point. Shapes: (K, M) and (K, N), on the weight's device, in its dtype or that of the uses.
        K is 0 if there is no gradient.
        """
        factors = self._take_noted()
        if self._covers_gradient():
            factors = self._held + factors
        elif self.weight.grad is not None:
            factors = [factors_of(self.weight.grad.detach()), *factors]
        self._held = []
        self._taken = factors
        if not factors:
            rows, columns = self.weight.shape
            return self.weight.new_zeros(0, rows), self.weight.new_zeros(0, columns)
        u, v = _joined(factors)
        if self.weight.grad is not None and len(u) > min(self.weight.shape):
            # After many small passes the sum, which is already computed, is smaller.
            noted = factors[len(factors) - self._num_noted :]
            matrix = self.weight.grad.detach()
            if noted:
                matrix = matrix + matrix_of(*_joined(noted)).to(matrix.dtype)
            return factors_of(matrix)
        return u, v

    def release(self) -> None:
        """Drop the parts from which the last `take` made its factors.

        The allocator knows that the stream of the backward pass uses this memory, but not that
        another stream reads it. Without the references it would give the memory away too early.
        """
        self._taken = []

    def _take_noted(self) -> list[Factors]:
        factors = [(u, v) for _, u, v in self._noted if len(u)]
        self._noted.clear()
        self._num_noted = len(factors)
        return factors

    def _covers_gradient(self) -> bool:
        """Return whether the held factors make up all of `weight.grad`; drop them if not."""
        gradient = self.weight.grad
        if gradient is not None and _is_as_marked(gradient):
            return True
        # zero_grad has dropped the gradient, or other code has changed it.
        self._held = []
        return gradient is None or not bool(gradient.any())


class _NoFactors:
    """Replaces LinearFactors as the owner of the hooks in a pickled model."""

    def _before(self, module: nn.Module, args: Any, kwargs: Any) -> None:
        return None

    def _after(self, module: nn.Module, args: Any, kwargs: Any, output: Any) -> None:
        return None


def _pass_number() -> int:
    return torch._C._current_graph_task_id()  # pyright: ignore[reportPrivateUsage, reportUnknownMemberType, reportAttributeAccessIssue, reportUnknownVariableType]


def _mark(gradient: Tensor) -> None:
    """Remember the present state of a gradient.

    The mark holds the version, which each operation on the gradient changes, and some values,
    because writes through `gradient.data` or numpy do not change the version.
    """
    setattr(gradient, _MARK, (gradient._version, _sample(gradient)))  # pyright: ignore[reportPrivateUsage]


def _is_as_marked(gradient: Tensor) -> bool:
    version, values = getattr(gradient, _MARK, (None, None))
    if values is None or version != gradient._version:  # pyright: ignore[reportPrivateUsage]
        return False
    return torch.equal(values, _sample(gradient))


def _sample(gradient: Tensor) -> Tensor:
    """Return copies of a few values, spread over the gradient."""
    flat = gradient.detach().reshape(-1)
    return flat[:: max(1, len(flat) // _SAMPLES)].clone()


def _joined(factors: list[Factors]) -> Factors:
    if len(factors) == 1:
        return factors[0]
    dtype = factors[0][0].dtype
    for u, v in factors:
        dtype = torch.promote_types(dtype, torch.promote_types(u.dtype, v.dtype))
    us = [u.to(dtype) for u, _ in factors]
    vs = [v.to(dtype) for _, v in factors]
    return torch.cat(us), torch.cat(vs)
