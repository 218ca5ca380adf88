# SPDX-FileCopyrightText: 2026 The Switchfold Authors
# SPDX-License-Identifier: Apache-2.0
"""Stand-in for a device's side stream: the order of what it is asked for."""

from __future__ import annotations

import contextlib
from collections.abc import Generator
from typing import Any

from torch_ranks import load_torch

torch, _ = load_torch()


class FakeEvent:
    def __init__(self, log: list[str], name: str) -> None:
        self.log, self.name = log, name

    def synchronize(self) -> None:
        self.log.append(f"synchronize {self.name}")


class FakeStream:
    """A side stream over CPU memory that writes down what it is asked for."""

    def __init__(self) -> None:
        self.log: list[str] = []
        self.num_events = 0

    def after_caller(self) -> None:
        self.log.append("after caller")

    @contextlib.contextmanager
    def entered(self) -> Generator[None]:
        self.log.append("enter")
        yield
        self.log.append("exit")

    def record(self) -> FakeEvent:
        self.num_events += 1
        self.log.append(f"record {self.num_events}")
        return FakeEvent(self.log, str(self.num_events))

    def hold(self, tensor: Any) -> None:
        self.log.append(f"hold {tuple(tensor.shape)}")

    def caller_waits(self, event: Any) -> None:
        self.log.append(f"caller waits for {event.name}")

    def host_buffer(self, num_values: int, dtype: Any) -> Any:
        self.log.append(f"buffer of {num_values}")
        return torch.empty(num_values, dtype=dtype)
