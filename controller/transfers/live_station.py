# SPDX-FileCopyrightText: 2026 The Switchfold Authors
# SPDX-License-Identifier: Apache-2.0
"""A station's right to its place in a job, and the stream that carries its messages."""

from __future__ import annotations

import asyncio
import enum
import ipaddress
from collections.abc import Callable
from typing import Final

from ...hostlib.control.transfers_api import transfers_pb2 as pb
from ..errors import ControllerError, InvalidJobError, NoRoomError, WorkerTakenError
from ..jobs.punctual_timer import PunctualTimer

StationOutbox = asyncio.Queue[pb.SchedulerMessage | ControllerError | None]
"""Messages of one stream; an error or None ends it."""


class StationRole(enum.StrEnum):
    """What a station is to its job."""

    WORKER = "worker"
    SERVER = "server"
    REPLICA = "replica"
    """Of the server with its id; it may become that server."""


MAX_UNREAD: Final = {
    StationRole.WORKER: 1024,
    StationRole.SERVER: 1 << 16,
    StationRole.REPLICA: 1 << 16,
}
"""Answers that may wait for a station to read them; a server gets one for each of many workers."""


class LiveStation:
    """One process in one place; outlives a broken stream for a grace."""

    def __init__(
        self,
        role: StationRole,
        request: pb.Register,
        *,
        lease_s: float,
        grace_s: float,
        on_lost: Callable[[LiveStation], None],
    ) -> None:
        self.role = role
        self.job_name: Final = request.job_name
        self.station_id: Final = request.station_id
        self.identity: Final = request.identity
        self.host: Final = request.host
        self.aggregator: Final = (
            (request.aggregator.address, request.aggregator.port)
            if request.HasField("aggregator")
            else None
        )
        """Where it gathers updates of others; None: it does not."""
        self.relay: Final = (
            (request.relay.address, request.relay.port) if request.HasField("relay") else None
        )
        """Where it takes models from other workers, and it sends its own on; None: it does not."""
        self.momentum: Final = request.momentum if request.HasField("momentum") else None
        """Of a worker's optimiser; None: norms do not bound its steps."""
        self.grace_s = grace_s
        """A station whose connection broke is lost after this time."""
        self._lease_s = lease_s
        self._on_lost = on_lost
        self._outbox: StationOutbox | None = None
        self._timer: PunctualTimer | None = None

    def __str__(self) -> str:
        return f"{self.role} {self.station_id}"

    @property
    def is_attached(self) -> bool:
        """Whether a stream carries this station's messages."""
        return self._outbox is not None

    @property
    def may_relay(self) -> bool:
        """Whether it takes models from other workers now, and sends its own on."""
        return self.relay is not None and self.is_attached

    def is_carried_by(self, outbox: StationOutbox) -> bool:
        """Whether this stream is the one that carries the station's messages."""
        return self._outbox is outbox

    def attach(self) -> StationOutbox:
        """Take a new stream and begin the lease; an older stream gets an error."""
        if self._outbox is not None:
            self._outbox.put_nowait(
                WorkerTakenError(
                    f"{self} of job {self.job_name!r} has registered on another stream, which "
                    "carries its messages from now on; open one stream a process"
                )
            )
        self._outbox = StationOutbox()
        self.renew()
        return self._outbox

    def detach(self, outbox: StationOutbox) -> bool:
        """Note that a stream is over; return whether it was the current one."""
        if self._outbox is not outbox:
            return False
        self._outbox = None
        self._count(self.grace_s)
        return True

    def send(self, message: pb.SchedulerMessage) -> None:
        """Queue a message if a stream is attached; a stream that is not read ends."""
        if self._outbox is None:
            return
        most = MAX_UNREAD[self.role]
        if self._outbox.qsize() < most:
            self._outbox.put_nowait(message)
            return
        while not self._outbox.empty():
            self._outbox.get_nowait()
        self.refuse(
            NoRoomError(
                f"{self} of job {self.job_name!r} has not read {most} answers; register again and "
                "read them as they come"
            )
        )

    def refuse(self, error: ControllerError) -> None:
        """End the stream with an error; the station may come back as after a broken stream."""
        if self._outbox is not None:
            self._outbox.put_nowait(error)
            self.detach(self._outbox)

    def end(self, error: ControllerError) -> None:
        """End the stream with an error, if there is one, and count no time any more."""
        self.release()
        if self._outbox is not None:
            self._outbox.put_nowait(error)
            self._outbox = None

    def renew(self) -> None:
        """Give the station its lease from now on."""
        self._count(self._lease_s)

    def release(self) -> None:
        """Count no time any more."""
        if self._timer is not None:
            self._timer.cancel()
            self._timer = None

    def _count(self, delay_s: float) -> None:
        self.release()
        self._timer = PunctualTimer(delay_s, lambda: self._on_lost(self))


def check_places(role: StationRole, request: pb.Register, who: str) -> None:
    """Raise InvalidJobError unless others could reach the places that a station announces."""
    if request.HasField("aggregator"):
        _check_place(role, request.aggregator.address, f"{who} gathers updates")
    if request.HasField("relay"):
        _check_place(role, request.relay.address, f"{who} takes models of other workers")


def _check_place(role: StationRole, address: str, what: str) -> None:
    try:
        ipaddress.IPv4Address(address)
    except ValueError:
        is_address = False
    else:
        is_address = True
    if role is not StationRole.WORKER or not is_address:
        raise InvalidJobError(f"{what} at {address!r}; workers do so, at a dotted IPv4 address")
