# SPDX-FileCopyrightText: 2026 The Switchfold Authors
# SPDX-License-Identifier: Apache-2.0
"""Which row servers get rows in a view: those at a root, if each worker has a bit of its own."""

from __future__ import annotations

import dataclasses
from collections.abc import Iterable, Sequence
from typing import Final

from ...hostlib.slots.wire import MAX_WORKERS
from ..jobs.job import PathChoice, RowServer, Tree, Worker

TRANSPOSED_HAS_NO_ROWS: Final = (
    "the job is transposed: it has a root on each worker's host, and hot rows need one for all; "
    "give the workers the path 'auto' or 'switch', or do without hot rows"
)


def can_have_rows(path: PathChoice, workers: Iterable[Worker]) -> bool:
    """Return whether a job with these workers may have hot rows.

    Bitmaps must name every worker, so that a sum tells whose pushes are in it. A transposed job has
    none: a worker pushes to one switch.
    """
    is_transposed = path is PathChoice.TRANSPOSED
    return not is_transposed and all(worker.worker_id < MAX_WORKERS for worker in workers)


def with_row_servers(trees: Sequence[Tree], servers: Iterable[RowServer]) -> tuple[Tree, ...]:
    """Return trees, each with the servers at its root that no tree before it has; without rows."""
    left = sorted(servers, key=lambda server: server.server_id)
    found: list[Tree] = []
    for tree in trees:
        here = tuple(server for server in left if server.switch == tree.root.switch)
        left = [server for server in left if server not in here]
        found.append(dataclasses.replace(tree, row_servers=here))
    return tuple(found)


def placed_servers(
    path: PathChoice,
    servers: Iterable[RowServer],
    workers: Sequence[Worker],
    trees: Sequence[Tree],
) -> tuple[tuple[Tree, ...], tuple[RowServer, ...]]:
    """Return trees with those servers alone that have rows, and all others, each with a reason."""
    unplaced: list[RowServer] = []
    for server in servers:
        mine = [x for tree in trees for x in tree.row_servers if x.server_id == server.server_id]
        if not mine:
            reason = _no_place(path, server, workers, trees)
            unplaced.append(dataclasses.replace(server, reason=reason))
        elif not mine[0].num_rows:
            unplaced.append(mine[0])
    kept = tuple(
        dataclasses.replace(
            tree, row_servers=tuple(server for server in tree.row_servers if server.num_rows)
        )
        for tree in trees
    )
    return kept, tuple(unplaced)


def _no_place(
    path: PathChoice, server: RowServer, workers: Sequence[Worker], trees: Sequence[Tree]
) -> str:
    if path is PathChoice.TRANSPOSED:
        return TRANSPOSED_HAS_NO_ROWS
    if not trees:
        return "the job runs between the hosts"
    if not can_have_rows(path, workers):
        return f"the job has a worker id above {MAX_WORKERS - 1}"
    roots = ", ".join(tree.root.switch for tree in trees)
    return f"the server is at switch {server.switch}, the root of the job's trees is {roots}"
