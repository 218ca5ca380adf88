# SPDX-FileCopyrightText: 2026 The Switchfold Authors
# SPDX-License-Identifier: Apache-2.0
"""The comparison of calls before each collective, in a program with a default device of its own."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any

import pytest

from torch_ranks import load_torch, require_torch

require_torch()
torch, _ = load_torch()

from switchfold.hostlib.torch.errors import CollectiveMismatchError  # noqa: E402
from switchfold.hostlib.torch.process_group.call_check import CallCheck  # noqa: E402


def group_of(other: str) -> Any:
    """Return a group of two ranks, the second of which makes another call."""

    def allgather(outputs: Any, inputs: Any) -> Any:
        own, theirs = outputs[0]
        own.copy_(inputs[0])
        text = other.encode().ljust(len(own), b"\0")
        theirs.copy_(torch.frombuffer(bytearray(text), dtype=torch.uint8))
        return SimpleNamespace(wait=lambda: True)

    return SimpleNamespace(allgather=allgather)


def test_calls_are_compared_in_host_memory_whatever_the_default_device() -> None:
    with torch.device("meta"):
        CallCheck(group_of("all_reduce 1"), 2).compare("rank 0", "all_reduce 1")
        with pytest.raises(CollectiveMismatchError, match="rank 1 barrier 1"):
            CallCheck(group_of("barrier 1"), 2).compare("rank 0", "all_reduce 1")
