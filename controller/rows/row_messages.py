# SPDX-FileCopyrightText: 2026 The Switchfold Authors
# SPDX-License-Identifier: Apache-2.0
"""What row servers are told of their job's view, and the rows that they ask for."""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np
from numpy.typing import NDArray

from ...hostlib.control.row_server_link import MAX_ROW_SERVERS, ROW_DTYPE
from ...hostlib.control.session_api import session_pb2 as pb
from ...hostlib.slots import wire
from ..errors import InvalidJobError
from ..jobs.job import RowServer, Tree, View
from ..switches.switch_session import SwitchSession

_NOT_PLANNED = "the job's view is older than this server, which gets rows with the next view"


def row_view(
    server: RowServer, view: View | None, links: Mapping[str, SwitchSession]
) -> pb.RowControllerMessage:
    """Return what tells a server of its rows in a view; None: the job has no view yet."""
    link = links[server.switch]
    message = pb.RowView(
        generation=view.generation if view else 0,
        values_per_packet=link.program.values_per_packet,
        worker_id=server.child_id,
        switch_address=link.config.service_address,
        switch_mac=link.config.service_mac,
        switch_udp_port=wire.UDP_PORT,
        reason="the job does not run yet" if view is None else _NOT_PLANNED,
    )
    if view is not None:
        message.num_workers = view.num_workers
        for known in view.row_servers:
            if known.without_rows != server:
                continue
            message.reason = known.reason
            message.first_row, message.num_rows = known.first_row, known.num_rows
            tree = view.tree_of(server.server_id)
            if tree is not None:
                message.tree_id = tree.tree_id
                message.members.extend(_members(tree, links))
    return pb.RowControllerMessage(row_view=message)


def _members(tree: Tree, links: Mapping[str, SwitchSession]) -> list[pb.RowMember]:
    members = [
        pb.RowMember(
            worker_id=child.worker_id,
            child_id=child.child_id,
            worker_bitmap=child.contributor_mask,
            switch_address=links[node.switch].config.service_address,
            switch_udp_port=wire.UDP_PORT,
        )
        for node in tree.nodes
        for child in node.children
        if child.worker_id is not None
    ]
    return sorted(members, key=lambda member: member.worker_id)


def checked_rows(
    message: pb.SetRows, server: RowServer, place: RowServer | None
) -> NDArray[np.void]:
    """Return a set of rows (ROW_DTYPE); InvalidJobError unless all are this server's own."""
    where = f"row server {server.server_id}"
    count = len(message.rows)
    if len(message.epochs) != count or len(message.exponents) != count:
        raise InvalidJobError(
            f"{where}: {count} rows with {len(message.epochs)} epochs and "
            f"{len(message.exponents)} exponents; each row has one of both"
        )
    rows = np.empty(count, ROW_DTYPE)
    rows["row"], rows["epoch"] = message.rows, message.epochs
    rows["exponent"] = message.exponents
    first, num_rows = (place.first_row, place.num_rows) if place else (0, 0)
    foreign = rows["row"][(rows["row"] < first) | (rows["row"] >= first + num_rows)]
    if len(foreign):
        raise InvalidJobError(
            f"{where}: row {foreign[0]} is not in its range [{first}, {first + num_rows}); set the "
            "rows that the last RowView gives"
        )
    if len(np.unique(rows["row"])) != count:
        raise InvalidJobError(f"{where}: a row is named twice in one set")
    epochs = rows["epoch"]
    is_foreign = (epochs < MAX_ROW_SERVERS) | (epochs % MAX_ROW_SERVERS != server.server_id)
    if is_foreign.any():
        raise InvalidJobError(
            f"{where}: epoch {epochs[is_foreign][0]} is not its own; its epochs are "
            f"{MAX_ROW_SERVERS} or more, and {server.server_id} modulo {MAX_ROW_SERVERS}"
        )
    return rows
