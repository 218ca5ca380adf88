# SPDX-FileCopyrightText: 2026 The Switchfold Authors
# SPDX-License-Identifier: Apache-2.0
"""DATAPLANE_ATOMIC batches on a switch that carries packets at the same time."""

import threading
import time

import grpc
import numpy as np
import pytest
from finsy.proto import p4r

from p4runtime_control_plane import hop_member, host
from p4runtime_fixtures import CONTROL_PLANE, BareClient, delete, insert
from switchfold.softswitch.p4runtime.service.serve import serve
from switchfold.softswitch.switch.switch import Switch
from time_bound import wait_until

DEVICE_ID = 1
ATOMIC = p4r.WriteRequest.DATAPLANE_ATOMIC
BATCHES = 100
MAX_PACKETS = 20_000
"""Fewer packets than the receiving ports hold."""
FRAME = bytes(11) + b"\x05\x12\x34" + bytes(50)


def _count(switch: Switch, ports: tuple[int, ...], expected: int) -> int:
    """Count what came to these ports; stop at `expected`."""
    frames, lengths = np.zeros((256, 128), np.uint8), np.zeros(256, np.int32)
    end_s = time.monotonic() + 60
    count = 0
    while count < expected and time.monotonic() < end_s:
        count += sum(switch.ports.mem_port(port).receive(frames, lengths, 0.05) for port in ports)
    return count


class _Sender:
    """Sends packets of one host until it is stopped."""

    def __init__(self, switch: Switch) -> None:
        self._switch = switch
        self._is_done = threading.Event()
        self._thread = threading.Thread(target=self._run)
        self.sent = 0
        self._thread.start()

    def stop(self) -> int:
        self._is_done.set()
        self._thread.join()
        return self.sent

    def _run(self) -> None:
        frames = np.tile(np.frombuffer(FRAME, np.uint8), (16, 1))
        lengths = np.full(16, len(FRAME), np.int32)
        while not self._is_done.wait(0.0005) and self.sent < MAX_PACKETS:
            self.sent += self._switch.ports.mem_port(1).send(frames, lengths)


def test_packets_see_all_of_an_atomic_batch_or_none() -> None:
    with Switch() as switch:
        for number in (1, 2, 3):
            switch.ports.add(number, "mem")
        switch.start()
        with serve(switch, address="127.0.0.1:0") as server, BareClient(server.port) as client:
            client.arbitrate(1, device_id=DEVICE_ID)
            assert client.status() == 0
            info = CONTROL_PLANE.p4info
            client.push(p4info=info, blob=CONTROL_PLANE.json, device_id=DEVICE_ID)
            client.write(insert(host(5, 2)), device_id=DEVICE_ID)
            sender = _Sender(switch)
            wait_until(lambda: sender.sent, "packets")
            # Between the updates of a batch the entry is gone, and packets would be dropped.
            for _ in range(BATCHES):
                moved = (delete(host(5)), insert(host(5, 3)))
                client.write(*moved, device_id=DEVICE_ID, atomicity=ATOMIC)
                failing = (delete(host(5)), insert(hop_member(0)))
                with pytest.raises(grpc.RpcError):
                    client.write(*failing, device_id=DEVICE_ID, atomicity=ATOMIC)
            sent = sender.stop()
            assert _count(switch, (2, 3), sent) == sent
