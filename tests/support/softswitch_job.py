# SPDX-FileCopyrightText: 2026 The Switchfold Authors
# SPDX-License-Identifier: Apache-2.0
"""One job on a softswitch in this process, its tables set without P4Runtime."""

from __future__ import annotations

import socket
from collections.abc import Callable, Generator
from contextlib import ExitStack, contextmanager

from fake_switch import SWITCH, worker_endpoint
from switchfold import p4src
from switchfold.hostlib.control.view import Endpoint, JobView
from switchfold.hostlib.options import SessionOptions
from switchfold.hostlib.session import Session
from switchfold.hostlib.slots.wire import (
    VALUES_PER_PACKET_NARROW,
    VALUES_PER_PACKET_WIDE,
    Outcome,
)
from switchfold.hostlib.transports.base import Transport
from switchfold.hostlib.transports.mem import MemTransport
from switchfold.hostlib.transports.tunnel import TunnelTransport
from switchfold.softswitch.compilation.compiler import compile_program
from switchfold.softswitch.switch.impairments import Impairments
from switchfold.softswitch.switch.switch import Switch
from switchfold.softswitch.switch.table_entries import Match

JOB_ID, GENERATION, GROUP = 7, 1000, 1
VALUES = {"narrow": VALUES_PER_PACKET_NARROW, "wide": VALUES_PER_PACKET_WIDE}
OPTIONS = SessionOptions(timeout_s=120.0, min_rto_s=0.01, initial_rto_s=0.05, max_rto_s=0.2)


class SoftswitchJob:
    """A running switch with one job of `num_workers` on ports 1, 2, ..."""

    def __init__(
        self,
        variant: p4src.Variant,
        num_workers: int,
        *,
        port_kind: str = "mem",
        slot_count: int = 64,
        impairments: Callable[[int], Impairments] | None = None,
    ) -> None:
        self.num_workers = num_workers
        self.values_per_packet = VALUES[variant]
        self.slot_count = slot_count
        self._port_kind = port_kind
        self._program = compile_program(p4src.artefacts(variant).json)
        self.switch = Switch(self._program)
        for worker_id in range(num_workers):
            chosen = impairments(worker_id) if impairments is not None else None
            spec = self.port_spec(worker_id)
            self.switch.ports.add(
                worker_id + 1, spec, impairments_in=chosen, impairments_out=chosen
            )
        self._install()
        self.switch.start()

    def port_spec(self, worker_id: int) -> str:
        """What a worker's port is."""
        return "mem" if self._port_kind == "mem" else "udp:127.0.0.1:0"

    def endpoint(self, worker_id: int) -> Endpoint:
        """A worker's addresses."""
        return worker_endpoint(worker_id)

    def _install(self) -> None:
        num_workers = self.num_workers
        children = (1 << num_workers) - 1
        job = [GENERATION, 0, self.slot_count, children, num_workers, num_workers, GROUP, 0, 0, 0]
        self._insert("job", [JOB_ID], "admit_root", job)
        for worker_id in range(self.num_workers):
            end = self.endpoint(worker_id)
            address = int.from_bytes(socket.inet_aton(end.address), "big")
            mac = int(end.mac.replace(":", ""), 16)
            key = [JOB_ID, worker_id, worker_id + 1, address]
            self._insert("worker", key, "admit_worker", [1 << worker_id, 1 << worker_id, 1])
            self._insert(
                "worker_address",
                [JOB_ID, worker_id + 1],
                "set_worker_address",
                [mac, address, end.udp_port],
            )
        ports = range(1, self.num_workers + 1)
        self.switch.replication.set_multicast_group(GROUP, [(port, port) for port in ports])

    def _insert(
        self, table_name: str, key: list[int], action_name: str, params: list[int]
    ) -> tuple[int, Match]:
        """Insert an entry; return the table's position and the match."""
        (table,) = [
            table
            for table in self._program.model.tables
            if table.name.rsplit(".", 1)[-1] == table_name
        ]
        (action,) = [a for a in table.actions if a.name.rsplit(".", 1)[-1] == action_name]
        widths = [field.width for field in table.key]
        key_bytes = pack(key, widths)
        param_bytes = pack(params, [parameter.width for parameter in action.parameters])
        match = Match(key_bytes)
        self.switch.tables.insert(table.position, match, action.position, param_bytes)
        return table.position, match

    def view(self, worker_id: int) -> JobView:
        return JobView.on_one_switch(
            job=JOB_ID,
            generation=GENERATION,
            worker_id=worker_id,
            num_workers=self.num_workers,
            slot_count=self.slot_count,
            values_per_packet=self.values_per_packet,
            switch=SWITCH,
        )

    def transport(self, worker_id: int) -> Transport:
        if self._port_kind == "mem":
            return MemTransport(
                self.switch.ports.mem_port(worker_id + 1), worker_endpoint(worker_id)
            )
        return TunnelTransport(
            worker_endpoint(worker_id), port_address=self.switch.ports.udp_address(worker_id + 1)
        )

    @contextmanager
    def sessions(self, options: SessionOptions = OPTIONS) -> Generator[list[Session]]:
        with ExitStack() as stack:
            yield [
                stack.enter_context(Session.direct(self.view(i), self.transport(i), options))
                for i in range(self.num_workers)
            ]

    def outcomes(self) -> dict[Outcome, int]:
        """Packets by outcome, from the switch's own counter; those that are not zero."""
        (counter,) = [
            counter
            for counter in self._program.model.counters
            if counter.name.rsplit(".", 1)[-1] == "outcomes"
        ]
        counts = {o: self.switch.arrays.read_counter(counter.position, o)[0] for o in Outcome}
        return {outcome: count for outcome, count in counts.items() if count}

    def close(self) -> None:
        self.switch.close()


def pack(values: list[int], widths: list[int]) -> bytes:
    """Concatenate numbers, each in whole bytes."""
    assert len(values) == len(widths)
    pairs = zip(values, widths, strict=True)
    return b"".join(value.to_bytes((width + 7) // 8, "big") for value, width in pairs)


@contextmanager
def running_job(
    variant: p4src.Variant,
    num_workers: int,
    *,
    port_kind: str = "mem",
    slot_count: int = 64,
    impairments: Callable[[int], Impairments] | None = None,
) -> Generator[SoftswitchJob]:
    job = SoftswitchJob(
        variant,
        num_workers,
        port_kind=port_kind,
        slot_count=slot_count,
        impairments=impairments,
    )
    try:
        yield job
    finally:
        job.close()
