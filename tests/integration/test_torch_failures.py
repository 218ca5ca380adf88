# SPDX-FileCopyrightText: 2026 The Switchfold Authors
# SPDX-License-Identifier: Apache-2.0
"""Errors of the backend name rank, collective and remedy."""

from __future__ import annotations

import json
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import pytest

from time_bound import wait_until
from torch_failure_cases import NUM_RANKS
from torch_ranks import RankFailure, TorchTestbed, require_torch, run_ranks

require_torch()
LIMIT_S = 540.0


def stop_switch(testbed: TorchTestbed, folder: Path) -> None:
    """Stop the switch once the ranks that are left ask for it."""
    asked = [folder / f"stop-{rank}" for rank in (0, 2)]
    wait_until(lambda: all(path.exists() for path in asked), "ranks that are left", LIMIT_S)
    testbed.live.made.stop_switch("s1")
    (folder / "stopped").touch()


def check_end(end: list[Any], kind: str, *texts: str) -> None:
    assert end[0] == kind, end
    for text in texts:
        assert text in end[1], end


def check_disagreement(seen: dict[str, Any], rank: int) -> None:
    """Check the errors of ranks whose collectives differ."""
    mismatch = "CollectiveMismatchError"
    kinds = ("all_reduce", "all_reduce", "barrier")
    check_end(
        seen["operations"],
        mismatch,
        f"rank {rank}, {kinds[rank]} 1 of group 'default'",
        "rank 0 all_reduce 1, sum of float32 (10,); rank 1 all_reduce 1, PRODUCT of float32 (10,)"
        " by Gloo; rank 2 barrier 1, by Gloo; call the same ones",
    )
    barrier = "ranks [0, 2] barrier 1, by Gloo; rank 1 all_gather 1, by Gloo; call the same"
    check_end(seen["by Gloo alone"], mismatch, barrier)
    means = "rank 1 all_reduce 2, mean of float32 (10,)"
    sums = "ranks [0, 2] all_reduce 2, sum of float32 (10,)"
    check_end(seen["averages"], mismatch, f"rank {rank}, all_reduce 2 of", means, sums)


@pytest.mark.timeout(600)
def test_failures_are_named(torch_testbed: TorchTestbed, tmp_path: Path) -> None:
    with ThreadPoolExecutor(1) as pool:
        stopped = pool.submit(stop_switch, torch_testbed, tmp_path)
        results = run_ranks(
            "torch_failure_cases:fail",
            NUM_RANKS,
            testbed=torch_testbed,
            arguments={"folder": str(tmp_path)},
            preload=("torch._dynamo",),
            timeout_s=LIMIT_S,
            check=False,
        )
        stopped.result(LIMIT_S)
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
        check_end(seen["address"], "GroupJoinError", *apart, missing)
        away = "ranks [0, 1, 2]: no controller answers at 127.0.0.1:9; start one"
        check_end(seen["controller"], "GroupJoinError", apart[0], away)
        bare = (": no credentials: make certificates with", "or SWITCHFOLD_INSECURE=1")
        check_end(seen["credentials"], "GroupJoinError", apart[0], *bare)
        place = f"rank {rank}, all_reduce 1 of group 'default'"
        different = ("called different collectives", "rank 1 all_reduce 1, sum of")
        mismatch = (place, *different, "on all ranks")
        check_end(seen["shapes"], "CollectiveMismatchError", *mismatch, "float32 (12,)")
        check_end(seen["dtypes"], "CollectiveMismatchError", *mismatch, "int32 (10,)")
        check_disagreement(seen, rank)
        check_end(
            seen["mixed"], "CollectiveInputError", f"rank {rank}, all_reduce_coalesced",
            "different dtypes (torch.float32, torch.int32)", "call it once",
        )  # fmt: skip
        device = "tensors on device 'meta' cannot be sent; the backend serves cpu and cuda"
        check_end(seen["one device"], "CollectiveInputError", f"rank {rank}", device)
        check_end(seen["by Gloo"], "CollectiveInputError", f"rank {rank}, all_gather", device)
        check_end(seen["two devices"], "CollectiveInputError", "devices (cpu, meta)")
        strided = (
            f"[{[[3.0] * 3, [1.0] * 3] * 2}, [[0.0, 3.0, 6.0], [9.0, 12.0, 15.0]], [2.0], {rank}.0]"
        )
        check_end(seen["strided"], "", strided)
        check_end(seen["saturation"], "", "left the int32 range", "Gloo", "; [3.0, 3.0]")
        late = "[['CollectiveTimeoutError', False, None], True, True, [3.0, 3.0, 3.0]]"
        check_end(seen["short wait"], "", late)
        check_end(seen["dropped works"], "", "[3.0, 3.0]")
        check_end(seen["ddp"], "RuntimeError", f"rank {rank}, all_reduce", "worker 1")
        left = (f"rank {rank}, all_reduce 2", "worker 1 lost", "torchrun", "restart the ranks")
        check_end(seen["exit"], "RankExitedError", *left)
        # Two ranks that ask at different times may be told of it in different words.
        whose = "ranks [0, 1]:" if "ranks [0, 1]:" in seen["switch"][1] else "; ranks [1]:"
        unreachable = (whose, "switch s1 at", "is not reachable", "is it running")
        check_end(seen["switch"], "GroupJoinError", *unreachable)
        assert seen["threads"] == []
        assert seen["native threads"] == []
    abort = results[0]["abort"]
    check_end(abort, "", "['GroupDestroyedError', 'GroupDestroyedError']")
