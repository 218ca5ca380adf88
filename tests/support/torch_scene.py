# SPDX-FileCopyrightText: 2026 The Switchfold Authors
# SPDX-License-Identifier: Apache-2.0
"""Cases of collectives that run on any backend, and the comparison of their results.

A case takes a Scene and returns what its rank saw: tensors, numbers, texts, lists of them. A case
with sums of floats is marked, since the switch's sums may differ within their bound.
"""

from __future__ import annotations

import contextlib
from collections.abc import Callable, Container
from dataclasses import dataclass, field
from typing import Any

from switchfold.hostlib.summation.quantization import error_bound

Seen = Any
Case = Callable[["Scene"], Seen]
SPAN = 8.0
"""Random floats lie within it, on either side of zero."""


@dataclass
class Scene:
    """One rank's part in a case."""

    torch: Any
    dist: Any
    rank: int
    size: int
    backend: str
    seed: int = 0
    device: str = "cpu"
    groups: dict[str, Any] = field(default_factory=dict[str, Any])

    def random(self, *shape: int, dtype: str = "float32", rank: int | None = None) -> Any:
        """Return the same values for the same case and rank, whatever the backend and device."""
        with self.torch.device("cpu"):
            values = self._random(shape, dtype, self.rank if rank is None else rank)
        return values.to(self.device)

    def _random(self, shape: tuple[int, ...], dtype: str, rank: int) -> Any:
        torch = self.torch
        source = torch.Generator().manual_seed(self.seed * 64 + rank)
        kind = getattr(torch, dtype)
        if kind.is_complex:
            parts = [torch.rand(shape, generator=source) for _ in range(2)]
            return torch.complex(*parts)
        if kind.is_floating_point:
            values = torch.rand(shape, generator=source, dtype=torch.float64) * 2 * SPAN - SPAN
            return values.to(kind)
        if kind == torch.bool:
            return torch.randint(0, 2, shape, generator=source).bool()
        return torch.randint(0, 5, shape, generator=source).to(kind)

    def error(self, call: Callable[[], Any]) -> str:
        """Return the name of the exception that a call raises."""
        try:
            call()
        except Exception as error:
            return next(k.__name__ for k in type(error).__mro__ if k.__module__ == "builtins")
        return "none"


CASES: dict[str, tuple[Case, bool]] = {}
"""Each case by name, and whether it holds sums of floats."""


def case(*, sums: bool = False, name: str = "") -> Callable[[Case], Case]:
    def add(function: Case) -> Case:
        CASES[name or function.__name__] = (function, sums)
        return function

    return add


def run_battery(  # noqa: PLR0913 - the parts of a Scene
    torch: Any,
    dist: Any,
    rank: int,
    size: int,
    backend: str,
    *,
    device: str = "cpu",
    left_out: Container[str] = (),
) -> dict[str, Seen]:
    """Run cases on the default group, with tensors of a device, which is the default one, too.

    Exceptions become results, by type and text.
    """
    seen: dict[str, Seen] = {}
    for number, (name, (function, _)) in enumerate(CASES.items()):
        if name in left_out:
            continue
        scene = Scene(torch, dist, rank, size, backend, seed=number + 1, device=device)
        try:
            with contextlib.nullcontext() if device == "cpu" else torch.device(device):
                seen[name] = _in_host_memory(torch, function(scene))
        except Exception as error:
            seen[name] = f"{type(error).__name__}: {error}"
    return seen


def _in_host_memory(torch: Any, seen: Seen) -> Seen:
    if type(seen) in (list, tuple):
        return type(seen)(_in_host_memory(torch, item) for item in seen)
    return seen.cpu() if isinstance(seen, torch.Tensor) else seen


def battery_differences(
    torch: Any, size: int, expected: dict[str, Seen], found: dict[str, Seen]
) -> list[str]:
    """Return where a backend's results differ from Gloo's by more than they may."""
    texts: list[str] = []
    for name, seen in expected.items():
        tolerance = 0.0
        if CASES[name][1]:
            # The switch's own error, and both backends' rounding to the narrowest dtype.
            dtype = next((d for d in ("bfloat16", "float16", "float64") if d in name), "float32")
            exponent = int(SPAN).bit_length() - 1
            rounding = torch.finfo(getattr(torch, dtype)).eps * 2 * size * SPAN
            if "PRODUCT" in name:
                rounding *= SPAN**size
            tolerance = error_bound(exponent, size, "float32") + rounding
        texts += differences(torch, seen, found[name], tolerance, name)
    return texts


def differences(torch: Any, expected: Seen, found: Seen, tolerance: float, path: str) -> list[str]:
    """Return where two results differ by more than the tolerance; 0: in any bit of a tensor."""
    if type(expected) in (list, tuple) and type(found) in (list, tuple):
        if len(expected) != len(found):
            return [f"{path}: {len(found)} items, not {len(expected)}"]
        pairs = enumerate(zip(expected, found, strict=True))
        items = (differences(torch, a, b, tolerance, f"{path}[{i}]") for i, (a, b) in pairs)
        return [difference for item in items for difference in item]
    if not (isinstance(expected, torch.Tensor) and isinstance(found, torch.Tensor)):
        return [] if expected == found else [f"{path}: {found!r}, not {expected!r}"]
    if (expected.dtype, expected.shape) != (found.dtype, found.shape):
        return [f"{path}: {found.dtype} {found.shape}, not {expected.dtype} {expected.shape}"]
    if not tolerance:
        is_same = _bits(torch, expected) == _bits(torch, found)
        return [] if is_same else [f"{path}: {found}, not {expected}"]
    wide = torch.complex128 if expected.is_complex() else torch.float64
    errors = (expected.to(wide) - found.to(wide)).abs()
    error = float(errors.max()) if errors.numel() else 0.0
    return [] if error <= tolerance else [f"{path}: off by {error}, {tolerance} allowed"]


def _bits(torch: Any, tensor: Any) -> bytes:
    return bytes(tensor.reshape(-1).view(torch.uint8).numpy())
