# SPDX-FileCopyrightText: 2026 The Switchfold Authors
# SPDX-License-Identifier: Apache-2.0
"""What a controller has of row servers: their leases, and their rows and groups on a switch."""

from __future__ import annotations

from collections.abc import Mapping

from finsy import P4TableEntry

from controller_fixtures import FakeWorker
from fake_p4runtime import FakeP4Runtime
from fake_row_server import FakeRowServer
from switchfold.controller.rows.row_lease import RowLease
from switchfold.controller.server import ControllerServer
from switchfold.controller.tables.hot_row import TABLE, RowKey, RowPlace, read_row


def rows_on(server: ControllerServer, fake: FakeP4Runtime) -> Mapping[RowKey, RowPlace]:
    """Return the entries of table `hot_row`."""
    schema = server.links["s1"].program.schema
    table_id = schema.tables[TABLE].id
    return dict(
        read_row(P4TableEntry.decode(entity, schema))
        for entity in fake.entities.values()
        if entity.table_entry.table_id == table_id
    )


def groups_on(fake: FakeP4Runtime) -> dict[int, list[tuple[int, int]]]:
    """Return the replicas (port, replica id) of each multicast group."""
    groups = (
        entity.packet_replication_engine_entry.multicast_group_entry
        for entity in fake.entities.values()
        if entity.HasField("packet_replication_engine_entry")
    )
    return {
        group.multicast_group_id: [(one.egress_port, one.instance) for one in group.replicas]
        for group in groups
    }


def lease_of(server: ControllerServer, server_id: int = 0) -> RowLease:
    leases = server.membership.row_servers._leases  # pyright: ignore[reportPrivateUsage]
    return leases["train", server_id]


async def close_all(*ends: FakeWorker | FakeRowServer) -> None:
    for end in ends:
        await end.close()
