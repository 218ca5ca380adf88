# SPDX-FileCopyrightText: 2026 The Switchfold Authors
# SPDX-License-Identifier: Apache-2.0
"""The fabric as it is now: the configured one without what is taken down or found dead."""

from __future__ import annotations

import enum
import logging
from collections.abc import Callable

from ..config import ControllerConfig, LinkConfig
from ..database.database import Database
from ..errors import UnknownNameError
from ..jobs.job import JobNumber
from .fabric import Fabric
from .link_meter import LinkUsage

_LOGGER = logging.getLogger(__name__)

FabricCallback = Callable[[Fabric, str], None]
"""Called with the changed fabric and what happened, such as "link s1-s3 is down"."""


class Condition(enum.StrEnum):
    """The condition of a link."""

    UP = "up"
    DOWN = "down"
    """The operator took it out of use."""
    DEAD = "dead"
    """One end sends frames into it, and none arrive."""


class FabricState:
    """Keeps the fabric; what operators took down is stored and survives a restart."""

    def __init__(self, config: ControllerConfig, database: Database) -> None:
        self._database = database
        self._configured = Fabric.of(config)
        self._down = set(database.down())
        self._dead: set[str] = set()
        self._callbacks: list[FabricCallback] = []
        self.fabric = self._configured
        """As it is now; replaced whenever it changes."""
        self._fabrics: dict[JobNumber, Fabric] = {}
        self._usage = LinkUsage()
        self._rebuild()

    def on_change(self, callback: FabricCallback) -> None:
        """Have `callback` called when a link or switch goes down or comes up."""
        self._callbacks.append(callback)

    def condition(self, link: LinkConfig) -> Condition:
        """Return the condition of a link."""
        if link.key in self._down:
            return Condition.DOWN
        return Condition.DEAD if link.key in self._dead else Condition.UP

    def set_link(self, name: str, *, is_up: bool) -> LinkConfig:
        """Take a link out of use or back into use, also over restarts; "up" revives a dead one.

        Raises UnknownNameError if no link, or more than one, has this name.
        """
        link = self._configured.find_link(name)
        was_up = self.condition(link) is Condition.UP
        self._store(link.key, is_up=is_up)
        self._dead.discard(link.key)
        if was_up is not is_up:
            self._changed(f"link {link.name} is {'up' if is_up else 'down'}")
        return link

    def set_switch(self, name: str, *, is_up: bool) -> None:
        """Take a switch out of use or back into use, also over restarts.

        Raises UnknownNameError if it is not configured.
        """
        if name not in self._configured.switches:
            known = ", ".join(self._configured.switches)
            raise UnknownNameError(f"no switch {name!r}; known: {known}")
        was_up = name not in self._down
        self._store(name, is_up=is_up)
        if was_up is not is_up:
            self._changed(f"switch {name} is {'up' if is_up else 'down'}")

    def mark_dead(self, link: LinkConfig) -> None:
        """Take a link out of use until the operator sets it to "up" or frames arrive again."""
        if self.condition(link) is Condition.UP:
            self._dead.add(link.key)
            self._changed(f"link {link.name} is dead: frames enter it and none arrive")

    def mark_alive(self, link: LinkConfig) -> None:
        """Take a dead link back into use."""
        if link.key in self._dead:
            self._dead.discard(link.key)
            self._changed(f"link {link.name} is alive again")

    def set_usage(self, usage: LinkUsage) -> None:
        """Set the measured traffic; this calls no callback."""
        self._usage = usage
        self._rebuild()

    def fabric_for(self, job_number: JobNumber) -> Fabric:
        """Return the fabric as a job finds it: what its own trees send counts as free."""
        own = self._usage.own.get(job_number)
        if not own:
            return self.fabric
        if job_number not in self._fabrics:
            used = {
                direction: max(rate - own.get(direction, 0.0), 0.0)
                for direction, rate in self._usage.total.items()
            }
            self._fabrics[job_number] = self.fabric.with_use(used)
        return self._fabrics[job_number]

    def _store(self, key: str, *, is_up: bool) -> None:
        self._database.set_down(key, is_down=not is_up)
        if is_up:
            self._down.discard(key)
        else:
            self._down.add(key)

    def _changed(self, reason: str) -> None:
        _LOGGER.warning("%s", reason)
        self._rebuild()
        for callback in self._callbacks:
            callback(self.fabric, reason)

    def _rebuild(self) -> None:
        out = self._down | self._dead
        switches = {name for name in self._configured.switches if name in out}
        self.fabric = self._configured.without(switches=switches, links=out - switches).with_use(
            self._usage.total
        )
        self._fabrics.clear()
