# SPDX-FileCopyrightText: 2026 The Switchfold Authors
# SPDX-License-Identifier: Apache-2.0
"""A rank that never starts: all others name it."""

from __future__ import annotations

from datetime import timedelta
from pathlib import Path

import pytest

from torch_ranks import load_torch, require_torch, run_ranks

require_torch()
NUM_RANKS = 4
ABSENT_RANK = 2


def init_but_one(rank: int, store: str) -> str:
    """Return the error of init_process_group; one rank never calls it."""
    _, dist = load_torch()
    if rank == ABSENT_RANK:
        return "absent"
    try:
        dist.init_process_group(
            "switchfold",
            init_method=f"file://{store}",
            rank=rank,
            world_size=NUM_RANKS,
            timeout=timedelta(seconds=8),  # a rank that comes later is named, too
        )
    except RuntimeError as error:
        return f"{type(error).__name__}: {error}"
    return "no error"


@pytest.mark.timeout(120)
def test_rank_that_never_starts_is_named_by_all_others(tmp_path: Path) -> None:
    said = run_ranks(
        "test_torch_absent_rank:init_but_one",
        NUM_RANKS,
        arguments={"store": str(tmp_path / "store")},
    )
    for rank, text in enumerate(said):
        if rank != ABSENT_RANK:
            assert text.startswith(f"GroupJoinError: rank {rank}: ranks [{ABSENT_RANK}] did not")
