# SPDX-FileCopyrightText: 2026 The Switchfold Authors
# SPDX-License-Identifier: Apache-2.0
"""Watches the fabric of a running controller, and acts on its changes."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Collection, Mapping

from ..api.fabric_service import FabricService
from ..config import ControllerConfig
from ..database.database import Database
from ..errors import SwitchError
from ..jobs.job import JobNumber, View, ViewState
from ..switches.switch_session import SwitchSession
from .fabric import Fabric
from .fabric_state import FabricState
from .link_meter import LinkMeter
from .replanner import ReplanCallback, Replanner
from .trees.frame_cost import PLANNED_BYTES, VALUES_PER_PACKET, Traffic

_LOGGER = logging.getLogger(__name__)


class FabricWatch:
    """Measures links, moves jobs and routes when the fabric changes, serves its operator API."""

    def __init__(
        self,
        config: ControllerConfig,
        database: Database,
        state: FabricState,
        links: Mapping[str, SwitchSession],
        replan: ReplanCallback,
    ) -> None:
        self._database = database
        self._links = links
        self._applying: dict[str, asyncio.Task[None]] = {}
        traffic = Traffic(
            tensor_bytes=PLANNED_BYTES,
            values_per_packet=VALUES_PER_PACKET[config.variant],
            frame_overhead_bytes=config.frame_overhead_bytes,
        )
        self.meter = LinkMeter(links, self._installed, traffic.frame_bytes)
        self.replanner = Replanner(
            state, self.meter, traffic, views=self._in_use, away=self._away, replan=replan
        )
        self.service = FabricService(database, state, self.meter, self.replanner, traffic)
        state.on_change(self._move_routes)

    async def run(self) -> None:
        """Sample until cancelled."""
        try:
            await self.replanner.run()
        finally:
            for task in self._applying.values():
                task.cancel()
            await asyncio.gather(*self._applying.values(), return_exceptions=True)

    def _installed(self) -> list[View]:
        views = self._database.live_views()
        return [view for view in views if view.state is ViewState.INSTALLED]

    def _in_use(self) -> list[View]:
        """Return the newest installed view of every job."""
        newest: dict[JobNumber, View] = {}
        for view in self._installed():
            newest[view.job_number] = view
        return list(newest.values())

    def _away(self) -> Collection[str]:
        return {name for name, link in self._links.items() if not link.is_ready}

    def _move_routes(self, fabric: Fabric, reason: str) -> None:
        """Write the routes of the changed fabric to all switches."""
        for name, link in self._links.items():
            # An update in progress may have read the older routes: another update follows it.
            before = self._applying.get(name)
            self._applying[name] = asyncio.create_task(self._apply(link, before))

    async def _apply(self, link: SwitchSession, before: asyncio.Task[None] | None) -> None:
        if before is not None:
            await asyncio.wait((before,))
        try:
            await link.apply()
        except SwitchError as exc:
            _LOGGER.warning(
                "switch %s: routes are written once it is ready: %s", link.config.name, exc
            )
