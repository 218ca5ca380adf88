# SPDX-FileCopyrightText: 2026 The Switchfold Authors
# SPDX-License-Identifier: Apache-2.0
"""The newest generation that a switch's slots may have seen, kept in the switch itself.

Slots keep what the last view has left in them, and a switch accepts nothing older there. The mark
lives as long as they do, so it tells a controller that has lost its database, and whose clock is
behind, above which number to begin. It is an entry of table `worker_address` for tree 0, which no
tree has: no packet ever meets it.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Final

from finsy import Action, Match, P4TableAction, P4TableEntry

from ..jobs.job import Generation
from ..tables.worker_admission import TREE_TABLE

TABLE: Final = "worker_address"
_NO_TREE: Final = 0


def mark_entry(generation: Generation) -> P4TableEntry:
    """Return the entry that says that no newer view was on the switch."""
    return P4TableEntry(
        TABLE,
        match=Match(job_id=_NO_TREE, replica_id=0),
        action=Action("set_worker_address", mac=0, address=generation, udp_port=0),
    )


def newest_generation(entries: Iterable[object]) -> Generation:
    """Return the newest generation of entries that were read from a switch; 0 without any."""
    return max((_generation(e) for e in entries if isinstance(e, P4TableEntry)), default=0)


def _generation(entry: P4TableEntry) -> Generation:
    """Return what a mark or an admitted tree says, 0 for all other entries."""
    action = entry.action
    if not isinstance(action, P4TableAction):
        return 0
    if entry.table_id == TREE_TABLE:
        return int(action.args["generation"])
    if entry.table_id == TABLE and int(entry["job_id"]) == _NO_TREE:
        return int(action.args["address"])
    return 0
