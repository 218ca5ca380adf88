# SPDX-FileCopyrightText: 2026 The Switchfold Authors
# SPDX-License-Identifier: Apache-2.0
"""Checks of this user's testbeds: whether the switches and the controller of each one live."""

from __future__ import annotations

from ....bmv2_topos.errors import TestbedNotFoundError
from ....bmv2_topos.processes.processes import read_records
from ....bmv2_topos.state import Record, load_record, record_names
from ...api.endpoint import UNIX_PREFIX
from .check import Check, Status, ok


def check_testbeds(controller: str) -> list[Check]:
    """Check every testbed; dead processes are failures in this controller's, else remarks."""
    checks: list[Check] = []
    for name in record_names():
        try:
            checks.append(_check(load_record(name), controller))
        except (TestbedNotFoundError, FileNotFoundError):  # it has just been taken down
            continue
    return checks


def _check(record: Record, asked: str) -> Check:
    name = f"testbed {record.name}"
    address = f"{UNIX_PREFIX}{record.directory}/controller.sock"
    parts = {"controller", *(switch.name for switch in record.topology.switches)}
    dead = [
        process.name
        for process in read_records(record.directory)
        if process.name in parts and not process.is_leader_alive()
    ]
    if not dead:
        what = f"{record.target} ({record.variant}), mode {record.mode}"
        return ok(name, f"{what}, controller at {address}")
    logs = ", ".join(str(record.directory / f"{part}.log") for part in dead)
    return Check(
        name,
        Status.FAIL if asked == address else Status.WARN,
        f"{' and '.join(dead)} died; the controller's address is {address}",
        f"read {logs}; then 'switchfold testbed down --name {record.name}' and up again",
    )
