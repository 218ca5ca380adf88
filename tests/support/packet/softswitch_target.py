# SPDX-FileCopyrightText: 2026 The Switchfold Authors
# SPDX-License-Identifier: Apache-2.0
"""softswitch as a packet test's target: frames through its synchronous mem ports."""

from __future__ import annotations

import contextlib

from p4runtime_control import P4RuntimeControl
from packet_frames import CPU_PORT
from packet_target import PORTS
from switchfold import p4src
from switchfold.bmv2_topos.processes.daemons import NUM_PRIORITIES
from switchfold.hostlib.slots.wire import VALUES_PER_PACKET_NARROW, VALUES_PER_PACKET_WIDE
from switchfold.softswitch import compile_program
from switchfold.softswitch.p4runtime.service.serve import serve
from switchfold.softswitch.p4runtime.service.status import RequestError
from switchfold.softswitch.switch.switch import Switch


class SoftswitchTarget:
    """A softswitch in this process, controlled through its own P4Runtime server."""

    is_fast = True

    def __init__(self, variant: p4src.Variant) -> None:
        self.values_per_packet = {
            "narrow": VALUES_PER_PACKET_NARROW,
            "wide": VALUES_PER_PACKET_WIDE,
        }[variant]
        # finsy gives a switch 10 s to take a program: less than a compiler takes on a busy machine.
        compile_program(p4src.artefacts(variant).json)
        with contextlib.ExitStack() as stack:
            self._switch = stack.enter_context(Switch(priority_queues=NUM_PRIORITIES))
            for port in PORTS:
                self._switch.ports.add(port, "mem")
            self._server = stack.enter_context(serve(self._switch, address="127.0.0.1:0"))
            self._control = P4RuntimeControl(variant, self._server.address)
            stack.callback(self._control.close)
            self.insert = self._control.insert
            self.delete = self._control.delete
            self.set_multicast_group = self._control.set_multicast_group
            self.direct_counter = self._control.direct_counter
            self._resources = stack.pop_all()

    def exchange(self, port: int, frame: bytes) -> list[tuple[int, bytes]]:
        """See Target."""
        return sorted(self._switch.process(port, frame))

    def packet_out(self, port: int, frame: bytes) -> list[tuple[int, bytes]]:
        """See Target."""
        return self.exchange(CPU_PORT, (port << 7).to_bytes(2, "big") + frame)

    def counters(self, name: str) -> list[int]:
        """See Target; asks the server in this process, because tests do so after every packet.

        A call by gRPC takes most of a property test's time. It gives the same: test_outcome.
        """
        (found,) = self._server.device.read(self._control.counters_request(name))
        if isinstance(found, RequestError):
            raise found
        return [entity.counter_entry.data.packet_count for entity in found]

    def counters_by_grpc(self, name: str) -> list[int]:
        """Return the same by the connection of the control plane."""
        return self._control.counters(name)

    def close(self) -> None:
        """See Target."""
        self._resources.close()
