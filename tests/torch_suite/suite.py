# SPDX-FileCopyrightText: 2026 The Switchfold Authors
# SPDX-License-Identifier: Apache-2.0
"""The tests that an installed PyTorch carries, taken from it in memory for another backend.

The module decides when it is loaded which tests a backend can run: it is loaded as for Gloo, and
then told the backend's name.
"""

from __future__ import annotations

import importlib
import importlib.util
import os
import sys
import unittest
from types import ModuleType
from typing import Any

from torch_suite.cpu_stand_in import lift_skips, stay_on_cpu

MODULE = "torch.testing._internal.distributed.distributed_test"
BARRIER_S = 120.0
"""For the ranks of a test to meet: a busy machine is no failure."""
MONITORED_BARRIER_FACTOR = 10
"""Monitored barriers that must succeed get 2 s, and those that must fail as much."""
AMENDMENTS = "switchfold.hostlib.torch.process_group.amendments"
SKIP_CODES_OF = "torch.testing._internal.common_distributed"


def load_suite(backend: str, num_ranks: int) -> Any:
    """Return the class whose test methods each rank runs; once in a process."""
    os.environ.update(BACKEND="gloo", WORLD_SIZE=str(num_ranks), MASTER_ADDR="127.0.0.1")
    # It reads its folder when tests run, and only wants to know when loaded that there is one.
    os.environ.setdefault("TEMP_DIR", "/nonexistent")
    _stand_in_for_expecttest()
    lift_skips()
    arguments, sys.argv = sys.argv, sys.argv[:1]  # PyTorch's test tools parse them
    try:
        module: Any = importlib.import_module(MODULE)
    finally:
        sys.argv = arguments
    stay_on_cpu(num_ranks)
    if backend != "gloo":
        # The first group would make them, and replace what replaces.
        importlib.import_module(AMENDMENTS).amend_torch()
    _lengthen_monitored_barriers(module.dist)
    if backend != "gloo":
        _rename_backend(module, backend)

    class Suite(module.TestDistBackend, module.DistributedTest._DistTestBase):
        """All tests, for one rank of one of them at a time."""

        def _barrier(self, *_: Any, **named: Any) -> None:
            module.Barrier.sync(wait_for=named.get("wait_for"), timeout=BARRIER_S)

    return Suite


def _lengthen_monitored_barriers(dist: Any) -> None:
    barrier = dist.monitored_barrier

    def monitored_barrier(
        group: Any = None, timeout: Any = None, wait_all_ranks: bool = False
    ) -> None:
        longer = timeout * MONITORED_BARRIER_FACTOR if timeout else timeout
        barrier(group, longer, wait_all_ranks)

    dist.monitored_barrier = monitored_barrier


def _stand_in_for_expecttest() -> None:
    """Give PyTorch's test tools the base class that they want; none of these tests uses more."""
    if importlib.util.find_spec("expecttest") is None:
        stand_in: Any = ModuleType("expecttest")
        stand_in.TestCase = unittest.TestCase
        sys.modules["expecttest"] = stand_in


class _LikeGloo(str):
    """A backend's name that tests take for Gloo's where they choose what to do."""

    __slots__ = ()

    def __eq__(self, other: object) -> bool:
        return other == "gloo" or str.__eq__(self, other)

    def __ne__(self, other: object) -> bool:
        return not self == other

    __hash__ = str.__hash__


def _rename_backend(module: Any, backend: str) -> None:
    module.BACKEND = _LikeGloo(backend)
    for names in (
        module.PROFILING_SUPPORTED_BACKENDS,
        module.CUDA_PROFILING_SUPPORTED_BACKENDS,
        module.SEND_RECV_PROFILING_SUPPORTED_BACKENDS,
    ):
        names.append(backend)


def test_names(suite: Any) -> list[str]:
    """Return the names of all tests."""
    return sorted(name for name in dir(suite) if name.startswith("test_"))


def skip_codes() -> dict[int, str]:
    """Return what the exit codes of ranks that skip a test mean."""
    module: ModuleType = importlib.import_module(SKIP_CODES_OF)
    skips: Any = module.TEST_SKIPS
    return {skip.exit_code: skip.message for skip in skips.values()}
