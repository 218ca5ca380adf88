# SPDX-FileCopyrightText: 2026 The Switchfold Authors
# SPDX-License-Identifier: Apache-2.0
"""A view's slots, numbered through over all of its trees.

Slot g of a view is slot `local[g]` of the tree `tree_ids[g]`. The trees' slots are interleaved in
proportion to their numbers, so that neighbouring chunks take different trees and any range of slots
loads each tree with its share. The order follows from the trees alone: it is the same on all
workers.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

from ..control.view import TreeView

UNKNOWN_SLOT = -1


class SlotMap:
    """Translates between the slots of a view and those of its trees."""

    def __init__(self, trees: Sequence[TreeView]) -> None:
        counts = np.array([tree.slot_count for tree in trees], np.int64)
        trees_of = np.repeat(np.arange(len(trees)), counts)
        local = np.concatenate([np.arange(tree.slot_count, dtype=np.int64) for tree in trees])
        # Slot i of a tree of c slots stands at (i + 1/2) / c; ties go by the order of the trees.
        order = np.lexsort((trees_of, (2 * local + 1) / (2 * counts[trees_of])))
        ids = np.array([tree.tree_id for tree in trees], np.uint32)
        self.tree: NDArray[np.int64] = trees_of[order]
        """Index of each slot's tree."""
        self.tree_ids: NDArray[np.uint32] = ids[trees_of[order]]
        """Wire id of each slot's tree."""
        self.local: NDArray[np.uint32] = local[order].astype(np.uint32)
        """Number of each slot in its tree."""
        self._is_single = len(trees) == 1
        self._slot_count = int(counts.sum())
        if not self._is_single:
            # Row 0 of this table is for unknown tree ids.
            self._rows = np.zeros(1 << 16, np.int16)
            self._rows[ids] = np.arange(1, len(trees) + 1)
            self._width = int(counts.max())
            self._slots = np.full((len(trees) + 1, self._width + 1), UNKNOWN_SLOT)
            self._slots[trees_of[order] + 1, self.local] = np.arange(self._slot_count)

    def slots(self, tree_ids: NDArray[np.uint32], local: NDArray[np.uint32]) -> NDArray[np.int64]:
        """Return the view's slots for pairs (tree id, slot in the tree); UNKNOWN_SLOT: none.

        With one tree the ids are ignored, as the caller compares them.
        """
        if self._is_single:
            slots = local.astype(np.int64)
            slots[slots >= self._slot_count] = UNKNOWN_SLOT
            return slots
        return self._slots[self._rows[tree_ids], np.minimum(local, self._width)]
