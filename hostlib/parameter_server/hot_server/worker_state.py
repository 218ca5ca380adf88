# SPDX-FileCopyrightText: 2026 The Switchfold Authors
# SPDX-License-Identifier: Apache-2.0
"""The hot rows of a server as one worker sees them."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from ...control.row_server_link import RowView
from ...peers.frames import HOT_ROW_DTYPE, HotRowsState, TableRows
from .rounds import RowRounds
from .served_rows import ServedRows


def state_of(
    worker_id: int, rounds: RowRounds, served: ServedRows, view: RowView | None, flush_s: float
) -> HotRowsState:
    """Return what a HOT_ROWS says; `view` None: the server is in no job.

    Rows that are no longer hot follow the others, with table 0 and epoch 0, if they have counted
    the worker: it may still ask for its pushes to them.
    """
    members = {member.worker_id: member for member in view.members} if view is not None else {}
    member = members.get(worker_id)
    if view is None or view.generation != rounds.generation or member is None:
        return HotRowsState(0, rows=_rows_of(worker_id, rounds, ServedRows()))
    return HotRowsState(
        generation=view.generation,
        job_id=view.tree_id,
        switch_address=member.switch.address,
        switch_udp_port=member.switch.udp_port,
        worker_id=member.child_id,
        worker_bitmap=member.worker_bitmap,
        num_workers=view.num_workers,
        values_per_packet=view.values_per_packet,
        flush_us=round(1e6 * flush_s),
        rows=_rows_of(worker_id, rounds, served),
        tables=tuple(TableRows(table, layout.pack()) for table, layout in served.layouts),
    )


def _rows_of(worker_id: int, rounds: RowRounds, served: ServedRows) -> NDArray[np.void]:
    is_old: NDArray[np.bool_] = np.zeros(rounds.next.size, np.bool_)
    has_counts = worker_id < rounds.counted.shape[1]
    if has_counts:
        is_old = rounds.counted[:, worker_id, 1] > 0  # the newer of the two
    is_old[served.rows["row"]] = False
    old = np.flatnonzero(is_old)
    rows = np.zeros(served.rows.size + old.size, HOT_ROW_DTYPE)
    for name in ("row", "table", "epoch", "exponent"):
        rows[name][: served.rows.size] = served.rows[name]
    rows["row"][served.rows.size :] = old
    rows["next"] = rounds.next[rows["row"]]
    rows["is_ahead"] = rounds.is_ahead[rows["row"]]
    if has_counts:
        rows["counted"] = rounds.counted[rows["row"], worker_id]
    return rows
