# SPDX-FileCopyrightText: 2026 The Switchfold Authors
# SPDX-License-Identifier: Apache-2.0
"""Which collectives run on the switch, and why the others run by Gloo."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, Final

import torch

from ...options import ReduceOperation
from ...summation.maxima import MAXIMA
from ..errors import CollectiveInputError
from ..staging.staging import ARRAY_DTYPES, COMPARED_DTYPES
from ..torch_seam import ReduceOp

SWITCH_DEVICES: Final = ("cpu", "cuda")
_REDUCTIONS: Final[Sequence[tuple[Any, ReduceOperation]]] = (
    (ReduceOp.SUM, "sum"),
    (ReduceOp.AVG, "mean"),
    (ReduceOp.MAX, "max"),
    (ReduceOp.MIN, "min"),
)
MIN_TREE_RANKS: Final = 3
"""With two ranks, Gloo's broadcast and reduce send a tensor only once, as the switch does."""
MIN_TREE_BYTES: Final = 256 << 10
"""Below this size latency dominates: one message of Gloo takes less time than a round."""


def reduction_of(op: Any) -> ReduceOperation | None:
    """Return an operation's name for a session; None if the switch has no such operation."""
    for kind, operation in _REDUCTIONS:
        if op == kind:
            return operation
    return None


def array_dtypes(operation: ReduceOperation) -> Mapping[torch.dtype, torch.dtype]:
    """Return the dtypes that the switch reduces so, and in which the session gets them."""
    return COMPARED_DTYPES if operation in MAXIMA else ARRAY_DTYPES


def reduction_reason(tensors: Sequence[torch.Tensor], op: Any) -> str | None:
    """Return why a reduction of these tensors cannot run on the switch; None if it can."""
    first, operation = tensors[0], reduction_of(op)
    if operation is None:
        return f"by Gloo: switches have no {operation_name(op)}"
    if first.layout != torch.strided:
        return "by Gloo: sparse tensors are not added up on the switch"
    if first.dtype not in array_dtypes(operation):
        verb = "compared" if operation in MAXIMA else "added up"
        return f"by Gloo: {dtype_name(first.dtype)} is not {verb} on the switch"
    if is_one_of(op, ReduceOp.AVG) and not first.dtype.is_floating_point:
        return "by Gloo: the mean of integers is not an integer"
    return None


def tree_reason(tensor: torch.Tensor, num_ranks: int) -> str | None:
    """Return why a broadcast or reduce of this tensor is faster by Gloo; None if it is not."""
    if num_ranks < MIN_TREE_RANKS:
        return "by Gloo: between two ranks the switch saves nothing"
    if tensor.numel() * tensor.element_size() < MIN_TREE_BYTES:
        return f"by Gloo: less than {MIN_TREE_BYTES >> 10} KiB"
    return None


def move_reason(tensor: torch.Tensor, num_ranks: int) -> str | None:
    """Return why a broadcast of this tensor does not run on the switch; None if it does."""
    if tensor.layout != torch.strided or tensor.device.type != "cpu":
        return "by Gloo: not a dense tensor of the CPU"
    return tree_reason(tensor, num_ranks)


def check_alike(place: str, tensors: Sequence[torch.Tensor]) -> None:
    """Raise CollectiveInputError unless the tensors have one device, dtype and memory layout.

    Also raises it if the backend does not serve their device.
    """
    if not tensors:
        raise CollectiveInputError(f"{place}: the list of tensors is empty; pass at least one")
    for what in ("device", "dtype", "layout") if len(tensors) > 1 else ():
        kinds = list(dict.fromkeys(str(getattr(tensor, what)) for tensor in tensors))
        if len(kinds) > 1:
            raise CollectiveInputError(
                f"{place}: the tensors are of different {what}s ({', '.join(kinds)}); call it once"
                f" for the tensors of each {what}"
            )
    check_device(place, tensors[:1])


def check_device(place: str, tensors: Sequence[torch.Tensor]) -> None:
    """Raise CollectiveInputError for tensors on devices that the backend does not serve."""
    for tensor in tensors:
        if tensor.device.type not in SWITCH_DEVICES:
            raise CollectiveInputError(
                f"{place}: tensors on device {str(tensor.device)!r} cannot be sent; the backend"
                f" serves {' and '.join(SWITCH_DEVICES)}: move them there"
            )


def check_host_memory(place: str, tensors: Sequence[torch.Tensor]) -> None:
    """Raise CollectiveInputError for tensors on a device: Gloo would read them as host memory."""
    for tensor in tensors:
        if tensor.device.type != "cpu":
            raise CollectiveInputError(
                f"{place}: tensors on device {str(tensor.device)!r} cannot be sent: Gloo runs this,"
                " and only for tensors in host memory; move them to the CPU"
            )


def dtype_name(dtype: torch.dtype) -> str:
    """Return the name without "torch."."""
    return str(dtype).removeprefix("torch.")


def is_one_of(op: Any, *kinds: Any) -> bool:
    """Return whether an operation is of one of these kinds.

    `in` would call the kind's `==`, which never equals the operation that options hold.
    """
    return any(op == kind for kind in kinds)


def operation_name(op: Any) -> str:
    """Return the operation's name, such as SUM or MAX."""
    return str(getattr(op, "op", op)).rsplit(".", 1)[-1]
