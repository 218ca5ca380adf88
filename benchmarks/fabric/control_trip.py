# SPDX-FileCopyrightText: 2026 The Switchfold Authors
# SPDX-License-Identifier: Apache-2.0
"""How long a worker waits for a grant of an idle scheduler: the control RTT, and a plan."""

from __future__ import annotations

import queue
import time
from typing import Final, TypeVar

from benchmarks.fabric.run_record import FabricRunError
from switchfold.bmv2_topos import Testbed
from switchfold.hostlib.control.stations.station import (
    CommitExpected,
    StationEvent,
    StationKind,
    StationRegistered,
    StationRequest,
    TransferDelivered,
    TransferGranted,
    TransferRequested,
    TransferStation,
    UpdatesCommitted,
)
from switchfold.hostlib.errors import HostlibError

JOB: Final = "control-trip"
_SIZE_BYTES: Final = 1000
_WAIT_S: Final = 30.0
Event = TypeVar("Event", bound=StationEvent)


class _Station:
    """A station whose events this thread takes."""

    def __init__(self, testbed: Testbed, kind: StationKind, place: int, credentials: str) -> None:
        self._events: queue.Queue[StationEvent | HostlibError] = queue.Queue()
        request = StationRequest(
            controller=testbed.controller_address,
            job=JOB,
            kind=kind,
            station_id=0,
            host=testbed.topology.hosts[place].name,
            token=testbed.endpoint(place).token,
            credentials=credentials,
        )
        self.station = TransferStation(
            request, on_event=self._events.put, on_failed=self._events.put
        )
        self.station.start()
        self.registration = self.next(StationRegistered).registration

    def next(self, kind: type[Event]) -> Event:
        """Return the next event of a kind; FabricRunError if there is none."""
        try:
            while True:
                event = self._events.get(timeout=_WAIT_S)
                if isinstance(event, HostlibError):
                    raise FabricRunError(f"the scheduler refuses a station: {event}") from event
                if isinstance(event, kind):
                    return event
        except queue.Empty:
            raise FabricRunError(
                f"no {kind.__name__} of the scheduler within {_WAIT_S:g} s; see its log"
            ) from None


def control_trips(testbed: Testbed, count: int) -> list[float]:
    """Return the seconds from request to grant of so many updates, one at a time.

    No update is open then, so the scheduler waits for no other one. Stations talk to the controller
    over its Unix socket: the trip crosses no link of the testbed.
    """
    folder = testbed.endpoint(0).credentials
    last = len(testbed.topology.hosts) - 1
    server = _Station(testbed, StationKind.SERVER, last, str(testbed.server_credentials.folder))
    trips: list[float] = []
    try:
        worker = _Station(testbed, StationKind.WORKER, 0, str(folder))
        try:
            for number in range(1, count + 1):
                request = TransferRequested(number, 0, _SIZE_BYTES, number - 1, 1.0)
                began_s = time.monotonic()
                worker.station.send(request, worker.registration)
                worker.next(TransferGranted)
                trips.append(time.monotonic() - began_s)
                server.next(CommitExpected)
                for report in (TransferDelivered(0, number, True), UpdatesCommitted(number)):
                    server.station.send(report, server.registration)
        finally:
            worker.station.close()
    finally:
        server.station.close()
    return trips
