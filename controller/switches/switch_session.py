# SPDX-FileCopyrightText: 2026 The Switchfold Authors
# SPDX-License-Identifier: Apache-2.0
"""One switch: connects with finsy, loads the program, keeps its tables equal to the database."""

from __future__ import annotations

import asyncio
import contextlib
import enum
import logging
from collections.abc import AsyncGenerator, Callable, Iterable
from contextlib import asynccontextmanager
from dataclasses import dataclass
from typing import Any, Final

from finsy import P4ClientError, Switch, SwitchEvent, SwitchOptions

from ...hostlib.slots.wire import Outcome
from ..config import ControllerConfig, SwitchConfig
from ..errors import (
    DatabaseError,
    SwitchError,
    SwitchUnreachableError,
    SwitchUpdateError,
    WrongProgramError,
)
from ..fabric.fabric import Fabric
from ..fabric.routes import routes_at
from ..jobs.job import Generation, Placement, TreeId
from ..leadership.leader import Leader
from ..tables import outcome, slot_state
from ..tables.hot_row import RowPlacement
from ..tables.outcome import Count, OrdinaryOutcome
from ..tables.slot_state import CopyIndex, SlotCopy
from .arbitration import arbitrate_by_term, highest_without_primary
from .packet_io import answer_arp
from .program import AggregationProgram, wrong_program_text
from .reconcile import Changes, Reconciler, desired_entities
from .row_reconcile import RowReconciler
from .switch_call import (
    PROGRAM_TIMEOUT_S,
    closing_is_unreachable,
    fetch_pipeline,
    refusal,
    switch_credentials,
    unreachable_error,
)

_LOGGER = logging.getLogger(__name__)
_FIRST_RETRY_S: Final = 0.2
_LAST_RETRY_S: Final = 0.5
_HANDSHAKE_TIMEOUT_S: Final = 10.0
_REQUEST_TIMEOUT_S: Final = 10.0


class LinkState(enum.StrEnum):
    """The state of the controller's session with a switch."""

    CONNECTING = "connecting"
    LOADING = "loading"
    """The switch loads the program; softswitch compiles it first."""
    BACKUP = "backup"
    """Another controller is primary."""
    READY = "ready"
    """Program and tables are as they should be."""
    WRONG_PROGRAM = "wrong program"
    UNREACHABLE = "unreachable"
    FAILED = "failed"
    """The switch answers but refuses something."""


_REACHED: Final = frozenset(
    {LinkState.LOADING, LinkState.READY, LinkState.BACKUP, LinkState.WRONG_PROGRAM}
)
_DECIDED: Final = frozenset(LinkState) - {LinkState.CONNECTING, LinkState.LOADING}


@dataclass(frozen=True, kw_only=True)
class DesiredState:
    """What a switch shall have, asked for whenever it is compared."""

    placements: Callable[[], list[Placement]]
    """Trees that have a place on it."""
    fabric: Callable[[], Fabric] | None = None
    """Switches, hosts and links in use; None: this switch alone."""
    rows: Callable[[], list[RowPlacement]] = list[RowPlacement]
    """Hot rows."""


class SwitchSession:
    """Keeps one switch connected and equal to the desired state."""

    def __init__(
        self,
        config: SwitchConfig,
        program: AggregationProgram,
        settings: ControllerConfig,
        leader: Leader,
        desired: DesiredState,
    ) -> None:
        self.config = config
        self.program = program
        self.state = LinkState.CONNECTING
        self.error: SwitchError | None = None
        """Why the switch is not ready."""
        self.on_lost_state: Callable[[frozenset[TreeId]], None] | None = None
        """Called after the switch had lost the entries of these trees; they are back again."""
        self.on_ready: Callable[[], None] | None = None
        """Called whenever the switch has become ready."""
        self.on_gone: Callable[[], None] | None = None
        """Called when the switch has been out of reach for `switch_gone_s`."""
        self.note_generation: Callable[[Generation], Generation] = lambda seen: seen
        """Told of the newest generation that the switch has seen; returns the newest of all."""
        self._leader = leader
        self._placements = desired.placements
        self._rows = desired.rows
        alone = Fabric(switches={config.name: config})
        self._fabric = desired.fabric or (lambda: alone)
        self._gone_timer: asyncio.TimerHandle | None = None
        self._admitted: frozenset[TreeId] = frozenset()
        """Trees whose entries the switch should still have after a reconnect."""
        self._settings = settings
        self._has_been_ready = False
        self._switch: Switch | None = None
        self._reconciler: Reconciler | None = None
        self._row_reconciler: RowReconciler | None = None
        self._lock = asyncio.Lock()
        self._changed = asyncio.Condition()

    @property
    def is_ready(self) -> bool:
        """Whether program and tables are as they should be."""
        return self.state is LinkState.READY

    async def run(self) -> None:
        """Serve the switch until cancelled; reconnect whenever the connection breaks."""
        delay_s = _FIRST_RETRY_S
        # Trees that an earlier controller installed must still be there, too.
        self._admitted = self._tree_ids()
        try:
            await self._serve_for_ever(delay_s)
        finally:
            self._stop_waiting()

    async def _serve_for_ever(self, delay_s: float) -> None:
        while True:
            was_ready = False
            try:
                await self._serve()
            except SwitchError as exc:
                was_ready = self.is_ready
                await self._fail(exc)
            else:
                continue  # we are primary now: start over at once
            delay_s = _FIRST_RETRY_S if was_ready else min(delay_s * 2, _LAST_RETRY_S)
            await asyncio.sleep(delay_s)

    async def wait_ready(self, timeout_s: float) -> None:
        """Return when the switch is ready or we are its backup; raise its error otherwise.

        A switch that has been reached gets the time that it needs to load the program.
        """
        try:
            await self._wait_for(_REACHED, timeout_s)
            if self.state is LinkState.LOADING:
                await self._wait_for(_DECIDED, PROGRAM_TIMEOUT_S)
        except TimeoutError as exc:
            raise self.error or self._unreachable("no answer") from exc
        if self.state not in (LinkState.READY, LinkState.BACKUP) and self.error is not None:
            raise self.error

    async def wait_back(self, timeout_s: float) -> bool:
        """Wait for a switch that has been ready and is away; return whether it has come back."""
        if self.is_ready or not self._has_been_ready:
            return False
        with contextlib.suppress(TimeoutError):
            await self._wait_for(frozenset({LinkState.READY}), timeout_s)
        return self.is_ready

    async def _wait_for(self, states: frozenset[LinkState], timeout_s: float) -> None:
        async with asyncio.timeout(timeout_s), self._changed:
            await self._changed.wait_for(lambda: self.state in states)

    async def apply(self) -> Changes:
        """Make the switch match the database now; SwitchError when that is not possible.

        Trees that another client has deleted are reported like those that a restart has lost.
        """
        changes, lost = await self._apply()
        self._report_lost(lost)
        return changes

    async def repair(self) -> Changes:
        """Apply, and look for hot rows that others have written or deleted."""
        if self._row_reconciler is not None:
            self._row_reconciler.forget()
        return await self.apply()

    async def apply_rows(self) -> None:
        """Make the switch have the hot rows that servers have set; SwitchError when it cannot."""
        async with self._lock:
            await self._apply_rows()

    async def _apply_rows(self) -> None:
        async with self._calls("an update of hot rows") as (switch, _):
            if self._row_reconciler is None:
                self._row_reconciler = RowReconciler(switch)
            written = await self._row_reconciler.reconcile(self._rows())
        _LOGGER.debug("switch %s: %d hot rows written", self.config.name, written)

    async def _apply(self) -> tuple[Changes, frozenset[TreeId]]:
        """Return what was written, and the trees that should have been there."""
        async with self._lock:
            expected = self._admitted
            placements = self._placements()
            routes = routes_at(self._fabric(), self.config.name)
            desired = desired_entities(
                routes, placements, self._settings.priority_limit(self.config.name)
            )
            async with self._calls("an update") as (_, reconciler):
                changes = await reconciler.reconcile(desired)
            self._admitted = frozenset(placement.tree.tree_id for placement in placements)
            await self._apply_rows()
        if changes:
            _LOGGER.info("switch %s: %s", self.config.name, changes)
        return changes, changes.admitted & expected

    def _report_lost(self, lost: frozenset[TreeId]) -> None:
        if lost and self.on_lost_state is not None:
            _LOGGER.warning("switch %s had lost %d trees", self.config.name, len(lost))
            self.on_lost_state(lost)

    async def read_tree_counts(self, tree_id: TreeId) -> dict[Outcome, Count]:
        """Return an installed tree's counters by outcome."""
        async with self._calls("a read") as (switch, _):
            return await outcome.read_tree_counts(switch, tree_id)

    async def read_switch_counts(self) -> dict[Outcome, Count]:
        """Return the counters of all Switchfold packets by outcome."""
        async with self._calls("a read") as (switch, _):
            return await outcome.read_switch_counts(switch)

    async def read_ordinary_counts(self) -> dict[OrdinaryOutcome, Count]:
        """Return the counters of all other frames by outcome."""
        async with self._calls("a read") as (switch, _):
            return await outcome.read_ordinary_counts(switch)

    async def read_port_counts(self) -> dict[int, tuple[Count, Count]]:
        """Return (in, out) frame counters of the ports with hosts, workers and switches."""
        ports = {host.port for host in self.config.hosts}
        ports.update(self._fabric().link_ports(self.config.name))
        for placement in self._placements():
            ports.update(child.port for child in placement.node.children)
            if placement.node.parent is not None:
                ports.add(placement.node.parent.port)
            else:
                ports.update(server.port for server in placement.tree.row_servers)
        async with self._calls("a read") as (switch, _):
            return await outcome.read_port_counts(switch, sorted(ports))

    async def find_open_copies(
        self, slots: Iterable[int], generation: Generation
    ) -> list[CopyIndex]:
        """Return the copies of these slots whose round of this generation is open."""
        async with self._calls("a read") as (switch, _):
            return await slot_state.find_open_copies(switch, slots, generation)

    async def read_slot_copies(self, copies: Iterable[CopyIndex]) -> list[SlotCopy]:
        """Return what these copies of slots hold."""
        async with self._calls("a read") as (switch, _):
            return await slot_state.read_slot_copies(switch, copies)

    def find_mac(self, address: str, port: int) -> str | None:
        """Return the MAC address behind an IPv4 address: the service, hosts, then members.

        None for a station at the `port` that asks: the switch would take its place in the network.
        """
        if address == self.config.service_address:
            return self.config.service_mac
        host = self.config.host_at(address)
        if host is not None:
            return host.mac if host.port != port else None
        for placement in self._placements():
            parent = placement.node.parent
            above = [parent] if parent else placement.tree.row_servers
            for neighbour in (*placement.node.children, *above):
                if neighbour.address == address:
                    return neighbour.mac if neighbour.port != port else None
        return None

    async def _serve(self) -> None:
        """Hold one connection; raise SwitchError when it breaks.

        Returns when a backup has become primary: the program may have changed in between.
        """
        has_program = await self._check_program()
        options = SwitchOptions(
            p4info=self.program.p4info_path,
            p4blob=None if has_program else self.program.p4blob_path,
            p4force=not has_program,
            device_id=self.config.device_id,
            initial_election_id=self._leader.term,
            channel_credentials=switch_credentials(self.config),
        )
        switch = Switch(self.config.name, self.config.address, options)
        arbitrate_by_term(switch)
        if not has_program:
            await self._set_state(LinkState.LOADING, None)
        try:
            async with asyncio.timeout(_HANDSHAKE_TIMEOUT_S if has_program else PROGRAM_TIMEOUT_S):
                await switch.__aenter__()
        except TimeoutError as exc:
            raise self._unreachable("the handshake got no answer") from exc
        except P4ClientError as exc:
            raise refusal(self.config, "the handshake or the program", exc) from exc
        try:
            await self._serve_connected(switch)
        finally:
            self._switch = self._reconciler = self._row_reconciler = None
            await switch.__aexit__(None, None, None)

    async def _serve_connected(self, switch: Switch) -> None:
        down = switch.ee.event_future(SwitchEvent.CHANNEL_DOWN)
        if not switch.is_up:
            raise self._unreachable("connection lost")
        if not switch.is_primary:
            await self._be_backup(switch, down)
            return
        self._switch, self._reconciler = switch, Reconciler(switch, self.note_generation)
        _, lost = await self._apply()
        self._stop_waiting()
        await self._set_state(LinkState.READY, None)
        _LOGGER.info("switch %s is ready", self.config.name)
        if self.on_ready is not None:
            self.on_ready()
        self._report_lost(lost)
        arp = asyncio.create_task(self._answer_arp())
        repair = asyncio.create_task(self._keep_repairing())
        backup = switch.ee.event_future(SwitchEvent.BECOME_BACKUP)
        try:
            await asyncio.wait((down, backup, arp, repair), return_when=asyncio.FIRST_COMPLETED)
            for task in (arp, repair):
                if task.done():
                    task.result()
            if backup.done() and not down.done():
                raise self._backup_error(switch)
            raise self._unreachable("connection lost")
        finally:
            for task in (arp, repair):
                task.cancel()
            await asyncio.gather(arp, repair, return_exceptions=True)

    async def _be_backup(self, switch: Switch, down: asyncio.Future[Any]) -> None:
        """Return when we have become primary, or may become it with the term that has begun."""
        await self._set_state(LinkState.BACKUP, self._backup_error(switch))
        primary = switch.ee.event_future(SwitchEvent.BECOME_PRIMARY)
        backup = switch.ee.event_future(SwitchEvent.BECOME_BACKUP)
        if highest_without_primary(switch) is None:
            await asyncio.wait((down, primary, backup), return_when=asyncio.FIRST_COMPLETED)
        highest = highest_without_primary(switch)
        if primary.done() or highest is None:
            if down.done():
                raise self._unreachable("connection lost")
            return
        _LOGGER.warning(
            "switch %s remembers election id %d and has no primary: a higher term begins",
            self.config.name, highest,
        )  # fmt: skip
        try:
            await self._leader.outbid(highest)
        except DatabaseError as exc:
            raise SwitchUpdateError(
                f"switch {self.config.name} wants an election id above {highest}: {exc}"
            ) from exc

    async def _answer_arp(self) -> None:
        async with self._calls("a packet-out", timeout_s=None) as (switch, _):
            await answer_arp(switch, self.find_mac)

    async def _keep_repairing(self) -> None:
        while True:
            await asyncio.sleep(self._settings.reconcile_interval_s)
            await self.repair()

    async def _check_program(self) -> bool:
        """Return whether the switch runs our program already, False when it may be loaded."""
        config = await fetch_pipeline(self.config)
        if config is None:
            return False
        if self.program.matches(config):
            return True
        if self._settings.replace_program:
            return False
        raise WrongProgramError(
            f"switch {self.config.name} at {self.config.address} "
            f"{wrong_program_text(config.p4info, self.program.p4info)}"
        )

    @asynccontextmanager
    async def _calls(
        self, what: str, timeout_s: float | None = _REQUEST_TIMEOUT_S
    ) -> AsyncGenerator[tuple[Switch, Reconciler]]:
        """Yield the connected switch; every failure of a call becomes a SwitchError."""
        switch, reconciler = self._switch, self._reconciler
        if switch is None or reconciler is None:
            raise self.error or self._unreachable("connection is being set up")
        if not self._leader.is_leader:
            raise SwitchUpdateError(
                f"switch {self.config.name}: no {what.removeprefix('a ')}, since this controller "
                "does not lead any more"
            )
        try:
            async with asyncio.timeout(timeout_s):
                with closing_is_unreachable(self.config, switch):
                    yield switch, reconciler
        except P4ClientError as exc:
            raise refusal(self.config, what, exc) from exc
        except TimeoutError as exc:
            raise self._unreachable(f"no answer in {timeout_s} s") from exc

    def _tree_ids(self) -> frozenset[TreeId]:
        return frozenset(placement.tree.tree_id for placement in self._placements())

    def _stop_waiting(self) -> None:
        if self._gone_timer is not None:
            self._gone_timer.cancel()
            self._gone_timer = None

    def _gone(self) -> None:
        _LOGGER.warning(
            "switch %s out of reach for %g s", self.config.name, self._settings.switch_gone_s
        )
        if self.on_gone is not None:
            self.on_gone()

    async def _fail(self, error: SwitchError) -> None:
        if self._gone_timer is None:
            loop = asyncio.get_running_loop()
            self._gone_timer = loop.call_later(self._settings.switch_gone_s, self._gone)
        state = LinkState.FAILED
        if isinstance(error, WrongProgramError):
            state = LinkState.WRONG_PROGRAM
        elif isinstance(error, SwitchUnreachableError):
            state = LinkState.UNREACHABLE
        if str(error) != str(self.error):
            _LOGGER.warning("%s", error)
        await self._set_state(state, error)

    async def _set_state(self, state: LinkState, error: SwitchError | None) -> None:
        async with self._changed:
            self.state, self.error = state, error
            self._has_been_ready |= self.is_ready
            self._changed.notify_all()

    def _unreachable(self, detail: str) -> SwitchUnreachableError:
        return unreachable_error(self.config, detail)

    def _backup_error(self, switch: Switch) -> SwitchUpdateError:
        return SwitchUpdateError(
            f"another controller (election id {switch.primary_id}) is primary on switch "
            f"{self.config.name}; stop it, or start this one with a higher --election-id"
        )
