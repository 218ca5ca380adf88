# SPDX-FileCopyrightText: 2026 The Switchfold Authors
# SPDX-License-Identifier: Apache-2.0
"""Errors of the backend name rank, collective and remedy, and come in time."""

from __future__ import annotations

import json
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import pytest

from time_bound import wait_until
from torch_failure_cases import ENDED_S, LONG_S, NUM_RANKS, TIMEOUT_S
from torch_ranks import RankFailure, TorchTestbed, require_torch, run_ranks

require_torch()
DEADLINE_S = 10.0
SLACK_S = 10.0
"""Ranks hear each other for half a second after a failure; the machine may be busy."""


def stop_switch(testbed: TorchTestbed, folder: Path) -> None:
    """Stop the switch once the ranks that are left ask for it."""
    asked = [folder / f"stop-{rank}" for rank in (0, 2)]
    wait_until(lambda: all(path.exists() for path in asked), "ranks that are left", 160.0)
    testbed.live.made.stop_switch("s1")
    (folder / "stopped").touch()


def check_end(end: list[Any], kind: str, limit_s: float, *texts: str) -> None:
    assert end[0] == kind, end
    for text in texts:
        assert text in end[1], end
    assert end[2] <= limit_s, end


def check_disagreement(seen: dict[str, Any], rank: int) -> None:
    """Look at what every rank is told of ranks whose collectives differ in what they do."""
    mismatch, limit_s = "CollectiveMismatchError", LONG_S / 2
    kinds = ("all_reduce", "all_reduce", "barrier")
    check_end(
        seen["operations"],
        mismatch,
        limit_s,
        f"rank {rank}, {kinds[rank]} 1 of group 'default'",
        "rank 0 all_reduce 1, sum of float32 (10,); rank 1 all_reduce 1, MAX of float32 (10,)"
        " by Gloo; rank 2 barrier 1, by Gloo; call the same ones",
    )
    barrier = "ranks [0, 2] barrier 1, by Gloo; rank 1 all_gather 1, by Gloo; call the same"
    check_end(seen["by Gloo alone"], mismatch, limit_s, barrier)
    means = "rank 1 all_reduce 2, mean of float32 (10,)"
    sums = "ranks [0, 2] all_reduce 2, sum of float32 (10,)"
    check_end(seen["averages"], mismatch, limit_s, f"rank {rank}, all_reduce 2 of", means, sums)


@pytest.mark.timeout(180)
def test_failures_are_named_and_end_in_time(torch_testbed: TorchTestbed, tmp_path: Path) -> None:
    with ThreadPoolExecutor(1) as pool:
        stopped = pool.submit(stop_switch, torch_testbed, tmp_path)
        results = run_ranks(
            "torch_failure_cases:fail",
            NUM_RANKS,
            testbed=torch_testbed,
            arguments={"folder": str(tmp_path)},
            preload=("torch._dynamo",),
            timeout_s=150,
            check=False,
        )
        stopped.result(DEADLINE_S)
    gone = results[1]
    assert isinstance(gone, RankFailure)
    assert "status 3" in gone.text
    check_disagreement(json.loads((tmp_path / "seen-1.json").read_text()), 1)
    assert "CollectiveMismatchError: rank 0, all_reduce 1 of group" in results[0]["future"]
    for rank in (0, 2):
        seen = results[rank]
        assert not isinstance(seen, RankFailure), f"rank {rank}: {seen}"
        apart = (f"rank {rank}: the process group cannot join job 'run-", "ranks [0]:")
        missing = "environment variable SWITCHFOLD_ADDRESS is not set"
        check_end(seen["address"], "GroupJoinError", 10, *apart, missing)
        away = "ranks [0, 1, 2]: no controller answers at 127.0.0.1:9; start one"
        check_end(seen["controller"], "GroupJoinError", 15, apart[0], away)
        place = f"rank {rank}, all_reduce 1 of group 'default'"
        different = ("called different collectives", "rank 1 all_reduce 1, sum of")
        mismatch = (place, *different, "on all ranks")
        check_end(seen["shapes"], "CollectiveMismatchError", 20, *mismatch, "float32 (12,)")
        limit_s = TIMEOUT_S + SLACK_S
        check_end(seen["dtypes"], "CollectiveMismatchError", limit_s, *mismatch, "int32 (10,)")
        check_disagreement(seen, rank)
        check_end(
            seen["mixed"], "CollectiveInputError", ENDED_S, f"rank {rank}, all_reduce_coalesced",
            "different dtypes (torch.float32, torch.int32)", "call it once",
        )  # fmt: skip
        device = "tensors on device 'meta' cannot be sent; the backend serves cpu and cuda"
        check_end(seen["one device"], "CollectiveInputError", 0.0, f"rank {rank}", device)
        check_end(seen["by Gloo"], "CollectiveInputError", 0.0, f"rank {rank}, all_gather", device)
        check_end(seen["two devices"], "CollectiveInputError", 0.0, "devices (cpu, meta)")
        strided = (
            f"[{[[3.0] * 3, [1.0] * 3] * 2}, [[0.0, 3.0, 6.0], [9.0, 12.0, 15.0]], [2.0], {rank}.0]"
        )
        check_end(seen["strided"], "", 20, strided)
        check_end(seen["saturation"], "", ENDED_S, "left the int32 range", "Gloo", "; [3.0, 3.0]")
        late = "[['CollectiveTimeoutError', False, None], True, True, [3.0, 3.0, 3.0]]"
        check_end(seen["impatience"], "", 20, late)
        check_end(seen["dropped works"], "", 20, "[3.0, 3.0]")
        check_end(seen["ddp"], "RuntimeError", 40, f"rank {rank}, all_reduce", "worker 1")
        left = (f"rank {rank}, all_reduce 2", "worker 1 lost", "torchrun", "restart the ranks")
        check_end(seen["exit"], "RankExitedError", 20, *left)
        unreachable = ("ranks [0, 1]:", "switch s1 at", "is not reachable", "is it running")
        check_end(seen["switch"], "GroupJoinError", 15, *unreachable)
        assert seen["threads"] == []
        assert seen["native threads"] == []
    abort = results[0]["abort"]
    check_end(abort, "", ENDED_S + 1, "['GroupDestroyedError', 'GroupDestroyedError']")
