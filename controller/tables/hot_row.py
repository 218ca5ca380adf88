# SPDX-FileCopyrightText: 2026 The Switchfold Authors
# SPDX-License-Identifier: Apache-2.0
"""Twin of hot_row.p4: table `hot_row`, and the multicast groups of sums and of stored values."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Final, NamedTuple

import numpy as np
from finsy import Action, Match, P4MulticastGroupEntry, P4TableAction, P4TableEntry
from numpy.typing import NDArray

from ...hostlib.slots.wire import EXPONENT_BIAS
from ..jobs.job import Placement, RowServer, TreeId
from .result_delivery import replica_id

TABLE: Final = "hot_row"
_ACTION: Final = "place_row"


class RowKey(NamedTuple):
    """What the table matches; the names are those of hot_row.p4."""

    job_id: TreeId
    row: int


class RowPlace(NamedTuple):
    """The parameters of `place_row`; the names are those of hot_row.p4."""

    slot: int
    value_copy: int
    epoch: int
    exponent: int
    server_group_id: int
    copies_group_id: int


@dataclass(frozen=True)
class RowPlacement:
    """The hot rows of one server at one switch."""

    placement: Placement
    server: RowServer
    rows: NDArray[np.void] | None
    """ROW_DTYPE; None: unknown, so what the switch has stays."""

    def may_keep(self, key: RowKey) -> bool:
        """Return whether a row that nobody has set may stay on the switch."""
        first = self.server.first_row
        is_own = key.job_id == self.placement.tree.tree_id
        return is_own and self.rows is None and first <= key.row < first + self.server.num_rows

    def entries(self) -> Mapping[RowKey, RowPlace]:
        """Return the rows that must be on the switch."""
        if self.rows is None:
            return {}
        tree, node = self.placement.tree, self.placement.node
        first_copy = 2 * (node.row_base + tree.num_rows)
        sums_group_id = self.server.sums_group_id if node.parent is None else 0
        copies_group_id = self.server.copies_group_id if _copies(self.placement, self.server) else 0
        return {
            RowKey(tree.tree_id, row): RowPlace(
                slot=node.row_base + row,
                value_copy=first_copy + row,
                epoch=epoch,
                exponent=exponent + EXPONENT_BIAS,
                server_group_id=sums_group_id,
                copies_group_id=copies_group_id,
            )
            for row, epoch, exponent in self.rows.tolist()
        }


def multicast_groups(placement: Placement) -> list[P4MulticastGroupEntry]:
    """Return the groups of a tree's row servers at a switch."""
    groups: list[P4MulticastGroupEntry] = []
    for server in placement.tree.row_servers:
        if placement.node.parent is None:
            to_server = [(server.port, replica_id(server.child_id))]
            groups.append(P4MulticastGroupEntry(server.sums_group_id, replicas=to_server))
        if copies := _copies(placement, server):
            groups.append(P4MulticastGroupEntry(server.copies_group_id, replicas=copies))
    return groups


def table_entry(key: RowKey, place: RowPlace) -> P4TableEntry:
    """Return the entry of a row."""
    return P4TableEntry(
        TABLE, match=Match(**key._asdict()), action=Action(_ACTION, **place._asdict())
    )


def read_row(entry: P4TableEntry) -> tuple[RowKey, RowPlace]:
    """Return the row of an entry that was read from a switch."""
    action = entry.action
    assert isinstance(action, P4TableAction)
    return (
        RowKey(*(int(entry[name]) for name in RowKey._fields)),
        RowPlace(*(int(action.args[name]) for name in RowPlace._fields)),
    )


def _copies(placement: Placement, server: RowServer) -> list[tuple[int, int]]:
    """Return where a switch sends the values that it has stored: server and switches below."""
    node = placement.node
    replicas = [(x.port, replica_id(x.child_id)) for x in node.children if x.switch]
    if node.parent is None:
        replicas.append((server.port, replica_id(server.child_id)))
    return replicas
