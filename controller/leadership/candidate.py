# SPDX-FileCopyrightText: 2026 The Switchfold Authors
# SPDX-License-Identifier: Apache-2.0
"""One of several controllers of a database: a standby, a leader, and a standby again."""

from __future__ import annotations

import asyncio
import dataclasses
import logging
from collections.abc import Callable
from typing import Final

from ...hostlib.control.session_api import session_pb2 as pb
from ..config import ControllerConfig
from ..database.postgres_url import PostgresUrl
from ..errors import DatabaseError, SwitchUnreachableError
from ..listening import ApiListener, log_options
from ..server import ControllerServer
from ..switches.switch_probe import SwitchProbe
from .leader_lease import RENEWALS_PER_LEASE, LeaderLease
from .standby import Standby

_LOGGER = logging.getLogger(__name__)
_BEATS_PER_LEASE: Final = 2.5
"""So often the leader shows its workers that it lives."""


class Candidate:
    """Leads whenever it has the lease."""

    def __init__(
        self,
        config: ControllerConfig,
        url: PostgresUrl,
        *,
        on_standby: Callable[[str], None],
        on_leader: Callable[[ControllerServer], None],
    ) -> None:
        """The callbacks are told whenever this controller serves, as what, and where."""
        self._config = config
        self._on_standby = on_standby
        self._on_leader = on_leader
        self._lease = LeaderLease(url, lease_s=config.leader_lease_s, least_term=config.election_id)
        self._standby = Standby(config, self._lease)
        self._taken = asyncio.Event()
        self._probes = [SwitchProbe(switch) for switch in config.switches]
        self._reached = 0
        self._has_looked = asyncio.Event()
        self._has_tended = asyncio.Event()

    async def run(self) -> None:
        """Serve until cancelled; raise what makes that impossible at the start."""
        log_options(self._config)
        ApiListener(self._config).log_openness()
        address = await self._standby.start()
        self._config = dataclasses.replace(self._config, listen=address)
        self._lease.address = self._config.advertise or address
        parts = (self._look(), self._tend(), self._alternate())
        tasks = [asyncio.create_task(part) for part in parts]
        try:
            done, _ = await asyncio.wait(tasks, return_when=asyncio.FIRST_COMPLETED)
            for task in done:
                task.result()  # none ends but by an error
        finally:
            await _cancelled(*tasks)
            await self._resign()
            await self._standby.stop()

    async def _alternate(self) -> None:
        """Lead and stand by in turn."""
        await self._has_tended.wait()
        while True:
            if self._lease.is_leader:
                try:
                    await self._lead()
                except (DatabaseError, SwitchUnreachableError) as exc:
                    _LOGGER.error("this controller cannot lead: %s", exc)
                    await self._resign()
                await self._standby.start()
            self._taken.clear()
            self._lease.stand_by()
            self._on_standby(self._config.listen)
            await self._taken.wait()

    async def _lead(self) -> None:
        """Serve workers and operators as long as the lease is ours."""
        _LOGGER.info("this controller leads in term %d", self._lease.term)
        server = ControllerServer(self._config, self._lease)
        serving = asyncio.create_task(self._serve(server))
        leading = asyncio.create_task(self._until_lost())
        try:
            await asyncio.wait((serving, leading), return_when=asyncio.FIRST_COMPLETED)
        finally:
            await _cancelled(leading, serving)
        if not serving.cancelled():
            serving.result()  # an error
        _LOGGER.warning(
            "this controller does not lead any more: its lease in %s was not renewed or was given "
            "back; running jobs go on on their switches", self._config.database,
        )  # fmt: skip

    async def _serve(self, server: ControllerServer) -> None:
        async with server.serve(self._standby.stop):
            self._on_leader(server)
            beat_s = self._config.leader_lease_s / _BEATS_PER_LEASE

            def presence() -> pb.Controllers:
                return pb.Controllers(addresses=self._lease.controllers, beat_s=beat_s)

            while True:
                server.membership.show_life(presence)
                await asyncio.sleep(beat_s)

    async def _until_lost(self) -> None:
        while left_s := self._lease.left_s:
            await asyncio.sleep(left_s)

    async def _tend(self) -> None:
        """Renew the lease, or take it once it is free, again and again.

        Raises DatabaseError when the database cannot be used at the start.
        """
        await self._has_looked.wait()
        await self._lease.tend(self._reached)
        self._has_tended.set()
        while True:
            await asyncio.sleep(self._config.leader_lease_s / RENEWALS_PER_LEASE)
            try:
                await self._lease.tend(self._reached)
            except DatabaseError as exc:
                if not self._standby.database_error:
                    _LOGGER.warning("the lease cannot be looked at: %s", exc)
                self._standby.database_error = str(exc)
            else:
                self._standby.database_error = ""
                if self._lease.is_leader:
                    self._taken.set()

    async def _resign(self) -> None:
        try:
            await self._lease.resign()
        except DatabaseError as exc:
            _LOGGER.warning("the lease ends later, since it could not be given back: %s", exc)

    async def _look(self) -> None:
        """Count again and again which switches answer."""
        try:
            while True:
                found = await asyncio.gather(*(probe.is_reached() for probe in self._probes))
                self._reached = sum(found)
                self._has_looked.set()
                await asyncio.sleep(self._config.leader_lease_s / RENEWALS_PER_LEASE)
        finally:
            await asyncio.gather(*(probe.close() for probe in self._probes))


async def _cancelled(*tasks: asyncio.Task[None]) -> None:
    for task in tasks:
        task.cancel()
    await asyncio.gather(*tasks, return_exceptions=True)
