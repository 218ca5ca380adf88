# SPDX-FileCopyrightText: 2026 The Switchfold Authors
# SPDX-License-Identifier: Apache-2.0
# pyright: reportUnknownMemberType=false, reportUnknownLambdaType=false, reportPrivateUsage=false
# pyright: reportUnknownVariableType=false
"""Factors captured from autograd give the gradient that autograd would have computed."""

from __future__ import annotations

import copy
import logging
import pickle
from collections.abc import Callable, Iterator
from typing import Any

import pytest

from torch_ranks import load_torch, require_torch

require_torch()
torch, _ = load_torch()

from torch import Tensor, nn  # noqa: E402
from torch.nn import functional  # noqa: E402
from torch.utils.checkpoint import checkpoint  # noqa: E402

from switchfold.hostlib.torch.hybrid.linear_factors import (  # noqa: E402
    DoubleBackwardError,
    LinearFactors,
    is_linear,
    matrix_of,
)

Loss = Callable[[nn.Module], Tensor]


@pytest.fixture(autouse=True)
def _seed() -> Iterator[None]:
    torch.manual_seed(5)
    threads = torch.get_num_threads()
    torch.set_num_threads(1)
    yield
    torch.set_num_threads(threads)


def captured(
    module: nn.Module, weight: Tensor, on_ready: Callable[[LinearFactors], None] = lambda _: None
) -> LinearFactors:
    linears = [m for m in module.modules() if isinstance(m, nn.Linear) and m.weight is weight]
    assert all(is_linear(m) for m in linears)
    factors = LinearFactors("layer", linears, on_ready)
    factors.install()
    return factors


def check_same(module: nn.Module, weights: list[str], loss: Loss) -> list[LinearFactors]:
    """Compare with an uncaptured copy: captured weights by their factors, others by .grad."""
    reference = copy.deepcopy(module)
    loss(reference).backward()
    captures = [captured(module, module.get_parameter(name)) for name in weights]
    loss(module).backward()
    for name, capture in zip(weights, captures, strict=True):
        expected = reference.get_parameter(name).grad
        assert expected is not None
        assert capture.weight.requires_grad
        assert (matrix_of(*capture.take()) - expected).abs().max() < 1e-5
    for name, parameter in module.named_parameters():
        if name not in weights:
            torch.testing.assert_close(parameter.grad, reference.get_parameter(name).grad)
    return captures


def test_factors_of_a_stack_equal_its_gradients() -> None:
    stack = nn.Sequential(
        nn.Linear(20, 30), nn.ReLU(inplace=True), nn.Linear(30, 10, bias=False), nn.Tanh()
    )
    x = torch.randn(8, 20)
    first, last = check_same(
        stack, ["0.weight", "2.weight"], lambda m: (m(x) * torch.arange(10.0)).sum()
    )
    assert first.weight.grad is None  # not computed here at all
    assert last.weight.grad is None


@pytest.mark.parametrize("shape", [(6,), (3, 6), (2, 3, 6), (2, 3, 2, 6)])
@pytest.mark.parametrize("bias", [True, False])
def test_operations_in_place_may_follow(shape: tuple[int, ...], bias: bool) -> None:
    x = torch.randn(shape)
    stack = nn.Sequential(nn.Linear(6, 5, bias=bias), nn.ReLU(inplace=True), nn.Linear(5, 5))
    check_same(stack, ["0.weight", "2.weight"], lambda m: m(x).mul_(3).square().sum())
    layer = nn.Linear(6, 5, bias=bias)
    check_same(layer, ["weight"], lambda m: m(x).view(-1).mul_(3).square().sum())


def test_leading_dimensions_are_flattened_and_counted() -> None:
    layer = nn.Linear(6, 4)
    x = torch.randn(3, 5, 2, 6)
    seen: list[tuple[int, ...]] = []
    capture = captured(layer, layer.weight, lambda c: seen.extend(t.shape for t in c.take()))
    layer(input=x).square().sum().backward()
    assert seen == [(30, 4), (30, 6)]
    assert capture.count_rows() == 30
    check_same(nn.Linear(6, 4), ["weight"], lambda m: m(x).square().sum())
    check_same(nn.Linear(6, 4), ["weight"], lambda m: m(x[0, 0, 0]).square().sum())  # one row


class _Tied(nn.Module):
    """One weight in two Linear modules, one of them used twice, and an embedding."""

    def __init__(self, *, has_embedding: bool = False) -> None:
        super().__init__()
        self.a = nn.Linear(7, 7)
        self.b = nn.Linear(7, 7)
        self.b.weight = self.a.weight
        if has_embedding:
            self.embedding = nn.Embedding(7, 7)
            self.embedding.weight = self.a.weight

    def forward(self, x: Tensor) -> Tensor:
        if hasattr(self, "embedding"):
            x = x + self.embedding(torch.arange(5))
        return self.b(torch.tanh(self.a(torch.tanh(self.a(x)))))


def test_shared_weights_and_several_uses_become_one_set_of_factors() -> None:
    ready: list[int] = []
    module, x = _Tied(), torch.randn(5, 7)
    capture = captured(module, module.a.weight, lambda c: ready.append(len(c.take()[0])))
    module(x).sum().backward()
    assert ready == [15]  # once, after all three uses
    assert capture.num_uses == 3
    check_same(_Tied(), ["a.weight"], lambda m: m(x).sum())


def test_uses_outside_the_module_are_not_lost(caplog: pytest.LogCaptureFixture) -> None:
    x = torch.randn(5, 7)
    with caplog.at_level(logging.WARNING, "switchfold.hostlib.torch"):
        check_same(_Tied(has_embedding=True), ["a.weight"], lambda m: m(x).square().sum())
        for shape in ((3, 7), (7, 3)):
            x = torch.randn(5, shape[0])
            check_same(
                nn.Linear(*shape),
                ["weight"],
                lambda m, x=x: (
                    m(x).square().sum()
                    + functional.linear(x, m.get_parameter("weight")).exp().sum()
                ),
            )
    assert "outside its nn.Linear" in caplog.text


def test_only_functional_use_reaches_the_factors_too() -> None:
    check_same(
        nn.Linear(3, 2),
        ["weight"],
        lambda m: functional.linear(torch.ones(4, 3), m.get_parameter("weight")).sum(),
    )


def test_frozen_weights_have_no_factors() -> None:
    layer = nn.Linear(3, 2)
    layer.weight.requires_grad_(False)
    with pytest.raises(RuntimeError):
        captured(layer, layer.weight)
    layer.weight.requires_grad_(True)
    capture = captured(layer, layer.weight)
    layer.weight.requires_grad_(False)  # frozen later
    layer(torch.ones(2, 3)).sum().backward()
    assert [len(part) for part in capture.take()] == [0, 0]
    assert capture.num_uses == 0
    assert layer.bias.grad is not None


def test_evaluation_is_not_touched() -> None:
    layer = nn.Linear(3, 2)
    capture = captured(layer, layer.weight)
    with torch.no_grad():
        assert not layer(torch.ones(2, 3)).requires_grad
    with pytest.raises(RuntimeError, match="shapes"):
        layer(torch.ones(2, 4))
    assert layer.weight.requires_grad  # put back though the module failed
    capture.close()
    assert not layer._forward_hooks
    assert not layer._forward_pre_hooks


@pytest.mark.parametrize("num_small", [1, 3, 20])  # 20 passes of 2 rows: more rows than columns
def test_accumulated_passes_travel_together(num_small: int) -> None:
    layer, reference = nn.Linear(9, 12), nn.Linear(9, 12)
    reference.load_state_dict(layer.state_dict())
    capture = captured(layer, layer.weight)
    for _ in range(num_small):
        x = torch.randn(2, 9)
        for module in (layer, reference):
            module(x).square().sum().backward()
        capture.accumulate()
        torch.testing.assert_close(layer.weight.grad, reference.weight.grad)
    x = torch.randn(2, 9)
    for module in (layer, reference):
        module(x).square().sum().backward()
    u, v = capture.take()
    assert len(u) == min(2 * num_small + 2, 9)
    torch.testing.assert_close(matrix_of(u, v), reference.weight.grad)


def test_memory_of_accumulated_passes_may_be_filled_again() -> None:
    layer, reference = nn.Linear(9, 12), nn.Linear(9, 12)
    reference.load_state_dict(layer.state_dict())
    capture = captured(layer, layer.weight)
    x, gradient = torch.empty(2, 9), torch.empty(2, 12)
    for _ in range(2):
        x.normal_()
        gradient.normal_()
        for module in (layer, reference):
            module(x).backward(gradient)
        capture.accumulate()
    u, v = capture.take()
    assert len(u) == 4
    torch.testing.assert_close(matrix_of(u, v), reference.weight.grad)


@pytest.mark.parametrize("change", ["none", "zero", "scale", "data", "none and functional"])
def test_accumulated_gradients_that_were_changed_travel_as_they_are(change: str) -> None:
    layer, reference = nn.Linear(9, 12), nn.Linear(9, 12)
    reference.load_state_dict(layer.state_dict())
    capture = captured(layer, layer.weight)
    x = torch.randn(2, 9)
    for module in (layer, reference):
        module(x).square().sum().backward()
    capture.accumulate()
    for module in (layer, reference):
        if change == "scale":
            assert module.weight.grad is not None
            module.weight.grad *= 0.5
        elif change == "data":
            assert module.weight.grad is not None
            module.weight.grad.data *= 0.5
        else:
            module.zero_grad(set_to_none=change != "zero")
        if change.endswith("functional"):
            functional.linear(x, module.weight).exp().sum().backward()
            if module is layer:
                capture.accumulate()
        module(x).exp().sum().backward()
    torch.testing.assert_close(matrix_of(*capture.take()), reference.weight.grad)


def test_gradients_of_inputs_alone_leave_no_factors() -> None:
    layer = nn.Linear(3, 2)
    capture = captured(layer, layer.weight)
    x = torch.randn(4, 3, requires_grad=True)
    (gradient,) = torch.autograd.grad(layer(x).sum(), x)
    assert gradient.shape == (4, 3)
    layer(x).sum().backward()
    assert len(capture.take()[0]) == 4
    with pytest.raises(DoubleBackwardError, match="'layer': 'ps'"):
        torch.autograd.grad(layer(x).sum(), x, create_graph=True)


def test_recomputed_passes_have_the_same_factors() -> None:
    stack = nn.Sequential(nn.Linear(6, 8), nn.Tanh(), nn.Linear(8, 4))
    x = torch.randn(3, 6, requires_grad=True)
    check_same(
        stack,
        ["0.weight", "2.weight"],
        lambda m: checkpoint(m, x, use_reentrant=False).square().sum(),
    )


def test_hooks_of_the_users_own_may_change_inputs_and_outputs() -> None:
    def changed(_module: nn.Module, _args: Any, output: Tensor) -> Tensor:
        return output.exp()

    layer = nn.Linear(6, 8)
    layer.register_forward_pre_hook(lambda _, args: (args[0] * 3,))
    layer.register_forward_hook(changed)
    stack = nn.Sequential(layer)
    x = torch.randn(3, 6)
    check_same(stack, ["0.weight"], lambda m: m(x).square().sum())


def test_autocast_factors_are_those_of_the_multiplied_values() -> None:
    layer, x = nn.Linear(6, 4), torch.randn(3, 6)
    reference = copy.deepcopy(layer)
    capture = captured(layer, layer.weight)
    for module in (layer, reference):
        with torch.autocast("cpu", dtype=torch.bfloat16):
            module(x).float().square().sum().backward()
    u, v = capture.take()
    assert u.dtype == v.dtype == torch.bfloat16
    torch.testing.assert_close(matrix_of(u, v), reference.weight.grad, atol=0.05, rtol=0.02)


def test_copies_of_a_model_are_not_captured() -> None:
    layer, x = nn.Linear(3, 2), torch.randn(4, 3)
    capture = captured(layer, layer.weight)
    copies = [copy.deepcopy(layer), pickle.loads(pickle.dumps(layer))]
    for other in copies:
        other(x).sum().backward()
        assert other.weight.grad is not None
    assert capture.num_uses == 0
    layer(x).sum().backward()
    torch.testing.assert_close(matrix_of(*capture.take()), copies[0].weight.grad)


def test_only_plain_linear_modules_are_linear() -> None:
    class Scaled(nn.Linear):
        def forward(self, input: Tensor) -> Tensor:
            return super().forward(input) * 2

    assert is_linear(nn.Linear(2, 2))
    assert not is_linear(Scaled(2, 2))
    assert not is_linear(nn.Conv1d(2, 2, 1))
    assert not is_linear(nn.utils.parametrizations.weight_norm(nn.Linear(2, 2)))
