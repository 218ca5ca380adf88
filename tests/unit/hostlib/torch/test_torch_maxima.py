# SPDX-FileCopyrightText: 2026 The Switchfold Authors
# SPDX-License-Identifier: Apache-2.0
# pyright: reportUnknownMemberType=false
"""MAX and MIN of tensors: which the switch takes, and that they are PyTorch's own to the bit."""

from __future__ import annotations

from contextlib import ExitStack
from datetime import timedelta
from typing import Any

import pytest

from torch_ranks import load_torch, require_torch

require_torch()
torch, dist = load_torch()

from fake_side_stream import FakeStream  # noqa: E402
from fake_switch import FakeSwitch  # noqa: E402
from switchfold.hostlib.loss_tolerance import LossTolerance  # noqa: E402
from switchfold.hostlib.session import Session  # noqa: E402
from switchfold.hostlib.straggler import WAIT_FOR_ALL, StragglerPolicy  # noqa: E402
from switchfold.hostlib.torch.process_group.placement import (  # noqa: E402
    array_dtypes,
    reduction_of,
    reduction_reason,
)
from switchfold.hostlib.torch.process_group.switch_queue import QueuedTransfer, SwitchQueue  # noqa: E402
from switchfold.hostlib.torch.process_group.work import SwitchfoldWork  # noqa: E402
from switchfold.hostlib.torch.staging.device_staging import DeviceStaging  # noqa: E402
from switchfold.hostlib.torch.staging.staging import SumStaging  # noqa: E402
from switchfold.hostlib.torch.torch_seam import AllreduceOptions, ReduceOptions  # noqa: E402
from view_driver import QUICK  # noqa: E402

WAIT_S = 60.0
COMPARED = ("float16", "bfloat16", "float32", "int32")


def special(dtype: str) -> list[Any]:
    """Return two ranks' tensors, with all pairs of special numbers."""
    kind = getattr(torch, dtype)
    if not kind.is_floating_point:
        numbers = torch.tensor([torch.iinfo(kind).min, -1, 0, 1, torch.iinfo(kind).max], dtype=kind)
    else:
        info = torch.finfo(kind)
        few = [0.0, info.smallest_normal, info.smallest_normal / 4, 1.0, info.max, float("inf")]
        numbers = torch.tensor([*few, *(-x for x in few), float("nan")], dtype=kind)
    return [numbers.repeat_interleave(len(numbers)), numbers.repeat(len(numbers))]


def expected(pair: list[Any], op: str) -> Any:
    """Return what PyTorch's own operator says; of equal zeros it takes any."""
    result = (torch.maximum if op == "MAX" else torch.minimum)(*pair)
    if result.dtype.is_floating_point:
        signs = [torch.signbit(tensor) for tensor in pair]
        is_negative = signs[0] & signs[1] if op == "MAX" else signs[0] | signs[1]
        zero = torch.zeros_like(result)
        result = torch.where(result == 0, torch.where(is_negative, -zero, zero), result)
    return result


def same_bits(left: Any, right: Any) -> bool:
    """Return whether two tensors have the same bits; the bits of a NaN do not matter."""
    if left.dtype != right.dtype:
        return False
    if left.dtype.is_floating_point:
        if not bool((left.isnan() == right.isnan()).all()):
            return False
        one = torch.ones_like(left)
        left, right = (torch.where(tensor.isnan(), one, tensor) for tensor in (left, right))
    octets = [bytes(tensor.contiguous().view(torch.uint8).numpy()) for tensor in (left, right)]
    return octets[0] == octets[1]


def reduce_both(switch: FakeSwitch, pair: list[Any], op: str, *, on_device: bool = False) -> None:
    """Reduce two ranks' tensors in place, as the process group does."""
    operation = reduction_of(getattr(dist.ReduceOp, op))
    assert operation is not None
    dtypes = array_dtypes(operation)
    with ExitStack() as stack:
        works: list[SwitchfoldWork] = []
        for rank, tensor in enumerate(pair):
            session = stack.enter_context(
                Session.direct(switch.view(rank), switch.transport(rank), QUICK)
            )
            queue = SwitchQueue(session, f"rank {rank}")
            stack.callback(queue.close)
            staging: Any = (
                DeviceStaging([tensor], FakeStream(), dtypes=dtypes)
                if on_device
                else SumStaging([tensor], dtypes=dtypes)
            )
            works.append(SwitchfoldWork(f"rank {rank}, all_reduce", [tensor], staging))
            queue.put(QueuedTransfer(works[-1], staging, operation, WAIT_S, precision="block"))
        for work in works:
            assert work.wait(timedelta(seconds=WAIT_S))


@pytest.mark.parametrize("op", ["MAX", "MIN"])
@pytest.mark.parametrize("dtype", COMPARED)
def test_ranks_get_what_pytorch_says(dtype: str, op: str) -> None:
    pair = special(dtype)
    wanted = expected(pair, op)
    reduce_both(FakeSwitch(2, loss=0.05, duplication=0.05), pair, op)
    for tensor in pair:
        assert same_bits(tensor, wanted)


@pytest.mark.parametrize("dtype", COMPARED)
def test_tensors_of_a_device_keep_their_bits(dtype: str) -> None:
    pair = special(dtype)
    wanted = expected(pair, "MAX")
    reduce_both(FakeSwitch(2), pair, "MAX", on_device=True)
    for tensor in pair:
        assert same_bits(tensor, wanted)


@pytest.mark.parametrize("tolerance", [None, LossTolerance(loss=0.2)])
def test_group_that_tolerates_loss_has_whole_maxima(tolerance: LossTolerance | None) -> None:
    policy = WAIT_FOR_ALL if tolerance is None else StragglerPolicy(tolerance=tolerance)
    pair = [torch.randint(-999, 999, (5000,), dtype=torch.int32) for _ in range(2)]
    wanted = torch.maximum(*pair)
    reduce_both(FakeSwitch(2, straggler=policy, loss=0.05), pair, "MAX")
    for tensor in pair:
        assert same_bits(tensor, wanted)


@pytest.mark.parametrize(
    ("op", "dtype", "reason"),
    [
        *((op, dtype, None) for op in ("MAX", "MIN") for dtype in COMPARED),
        ("MAX", "float64", "by Gloo: float64 is not compared on the switch"),
        ("MIN", "int64", "by Gloo: int64 is not compared on the switch"),
        ("SUM", "int64", "by Gloo: int64 is not added up on the switch"),
        ("AVG", "int32", "by Gloo: the mean of integers is not an integer"),
        ("PRODUCT", "float32", "by Gloo: switches have no PRODUCT"),
        ("BOR", "int32", "by Gloo: switches have no BOR"),
    ],
)
def test_reasons_for_gloo(op: str, dtype: str, reason: str | None) -> None:
    tensors = [torch.ones(3).to(getattr(torch, dtype))]
    for options in (AllreduceOptions(), ReduceOptions()):
        options.reduceOp = getattr(dist.ReduceOp, op)
        assert reduction_reason(tensors, options.reduceOp) == reason
