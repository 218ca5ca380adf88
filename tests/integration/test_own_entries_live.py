# SPDX-FileCopyrightText: 2026 The Switchfold Authors
# SPDX-License-Identifier: Apache-2.0
"""A user writes to real targets that a controller drives, as `switchfold switch write` does."""

from __future__ import annotations

from pathlib import Path

import pytest
from finsy.proto import p4r

from controller_fixtures import HOSTS, join_all, run, serving
from switch_process import DEADLINE_S, switch_command, target
from switchfold.bmv2_topos.processes.free_ports import free_port
from switchfold.controller.config import ControllerConfig, SwitchConfig
from switchfold.controller.database.database import MAX_TREE_ID
from switchfold.controller.switches.own_entries import PlacedUpdate, deletion, write_own
from switchfold.controller.switches.switch_session import LinkState
from switchfold.controller.switches.table_read import read_table
from time_bound import until

USERS_GROUP = MAX_TREE_ID + 1


def group() -> PlacedUpdate:
    update = p4r.Update(type=p4r.Update.INSERT)
    entry = update.entity.packet_replication_engine_entry.multicast_group_entry
    entry.multicast_group_id = USERS_GROUP
    entry.replicas.add(egress_port=1, instance=1)
    return "line 1", update


@pytest.mark.parametrize("name", [pytest.param("bmv2", marks=pytest.mark.bmv2), "softswitch"])
def test_user_writes_beside_a_controller(tmp_path: Path, name: str) -> None:
    """BMv2 has one primary, so the controller gives way there, and comes back by itself."""

    async def scenario() -> None:
        address = f"127.0.0.1:{free_port()}"
        config = SwitchConfig(name="s1", address=address, hosts=HOSTS)
        settings = ControllerConfig(
            switches=(config,),
            insecure=True,
            listen="127.0.0.1:0",
            database=tmp_path / "controller.sqlite3",
            lease_s=60.0,
            connect_timeout_s=DEADLINE_S,
            switch_gone_s=600.0,
        )
        async with target(switch_command(name, address), address):
            async with serving(settings) as server:
                link = server.links["s1"]
                written = await write_own(config, [group()])
                assert (written.inserted, written.modified) == (1, 0)
                assert written.has_displaced == (name == "bmv2")
                await until(lambda: link.state is LinkState.READY, DEADLINE_S)
                workers = await join_all(server.address, 2)
                for worker in workers:
                    await worker.join_reply()
                found = await read_table(config, link.program.p4info, "worker")
                assert len(found.entries) == 2
                assert found.keys == ("job_id", "worker_id", "ingress_port", "source_address")
                for worker in workers:
                    await worker.close()
            async with serving(settings) as second:  # which has made the switch match its database
                again = await write_own(config, [group()])
                assert (again.inserted, again.modified) == (0, 1), "it was still there"
                where, update = group()
                assert (await write_own(config, [(where, deletion(update))])).deleted == 1
                await until(lambda: second.links["s1"].state is LinkState.READY, DEADLINE_S)

    run(scenario())
