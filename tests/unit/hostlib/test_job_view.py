# SPDX-FileCopyrightText: 2026 The Switchfold Authors
# SPDX-License-Identifier: Apache-2.0
from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from switchfold.hostlib.control.view import Endpoint, JobView, Member, TreeView
from switchfold.hostlib.errors import ConfigurationError
from switchfold.hostlib.slots.slot_map import UNKNOWN_SLOT, SlotMap
from switchfold.hostlib.straggler import StragglerPolicy


def trees(*slot_counts: int) -> tuple[TreeView, ...]:
    return tuple(TreeView(tree_id=100 + i, slot_count=n) for i, n in enumerate(slot_counts))


def view(**changes: Any) -> JobView:
    fields: dict[str, Any] = {
        "job": 1,
        "generation": 5,
        "worker_id": 2,
        "members": tuple(Member(worker_id=i) for i in (0, 2, 3)),
        "trees": trees(8, 8),
        "child_id": 1,
        "worker_bitmap": 4,
        "values_per_packet": 32,
        "switch": Endpoint(address="10.0.0.254"),
    }
    return JobView(**{**fields, **changes})


def test_view_counts_members_and_slots() -> None:
    here = view()
    assert (here.num_workers, here.slot_count, here.is_on_switch) == (3, 16, True)
    assert here.missing_workers(0b0101) == [3]
    assert here.present_workers(0b0101) == [0, 2]


def test_view_without_trees_uses_host_allreduce() -> None:
    here = view(trees=(), worker_bitmap=0)
    assert not here.is_on_switch
    assert here.slot_count == 0


def test_bitmaps_of_large_views_name_no_worker() -> None:
    here = view(members=tuple(Member(worker_id=i) for i in range(40)))
    assert not here.has_worker_bitmaps
    assert here.missing_workers(1) == here.present_workers(1) == []


@pytest.mark.parametrize(
    "changes",
    [
        {"worker_id": 1},
        {"members": (Member(worker_id=2), Member(worker_id=2))},
        {"trees": trees(1)},
        {"trees": trees(4, 0)},
        {"trees": trees(4) + trees(4)},
        {"trees": (TreeView(tree_id=1 << 16, slot_count=4),)},
        {"child_id": 32},
        {"worker_bitmap": 0},
        {"values_per_packet": 64},
    ],
)
def test_view_refuses(changes: dict[str, Any]) -> None:
    with pytest.raises(ConfigurationError):
        view(**changes)


@pytest.mark.parametrize("changes", [{"quorum": 0}, {"deadline_s": 0.0}, {"deadline_s": -1.0}])
def test_straggler_policy_refuses(changes: dict[str, Any]) -> None:
    with pytest.raises(ConfigurationError):
        StragglerPolicy(**changes)


def test_straggler_policy_knows_whether_results_may_be_partial() -> None:
    assert not StragglerPolicy().allow_partial
    assert StragglerPolicy(quorum=2).allow_partial
    assert StragglerPolicy(deadline_s=0.1).allow_partial


@pytest.mark.parametrize("slot_counts", [(5,), (4, 4), (6, 2), (1, 7, 3), (1000, 24)])
def test_slots_are_interleaved_by_weight(slot_counts: tuple[int, ...]) -> None:
    slot_map = SlotMap(trees(*slot_counts))
    total = sum(slot_counts)
    # Back and forth is the identity.
    there = slot_map.slots(slot_map.tree_ids, slot_map.local)
    np.testing.assert_array_equal(there, np.arange(total))
    for tree, count in zip(trees(*slot_counts), slot_counts, strict=True):
        is_own = slot_map.tree_ids == tree.tree_id
        np.testing.assert_array_equal(slot_map.local[is_own], np.arange(count))
        # Any prefix holds the tree's share, to within one slot.
        share = np.cumsum(is_own) - np.arange(1, total + 1) * count / total
        assert (np.abs(share) <= 1).all()


def test_slots_of_no_tree_are_unknown() -> None:
    slot_map = SlotMap(trees(3, 2))
    ids = np.array([100, 100, 101, 101, 102, 0, 65535], np.uint32)
    local = np.array([2, 3, 1, 2, 0, 0, 2**32 - 1], np.uint32)
    known = slot_map.slots(ids, local) != UNKNOWN_SLOT
    np.testing.assert_array_equal(known, [True, False, True] + [False] * 4)
    single = SlotMap(trees(3))
    np.testing.assert_array_equal(single.slots(ids, local)[[0, 1, 6]], [2, -1, -1])
