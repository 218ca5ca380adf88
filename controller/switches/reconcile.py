# SPDX-FileCopyrightText: 2026 The Switchfold Authors
# SPDX-License-Identifier: Apache-2.0
"""Makes a switch match the database: reads back, deletes foreign entries, inserts missing ones.

It looks at our tables and at multicast groups up to MAX_TREE_ID. What users' own P4 has beside them
stays as it is: other tables, groups above, clone sessions, members and groups of action profiles.
"""

from __future__ import annotations

import logging
from collections.abc import Callable, Iterable
from dataclasses import dataclass

from finsy import GRPCStatusCode, P4ClientError, P4MulticastGroupEntry, P4TableEntry, Switch

from ...hostlib.slots.wire import MAX_PRIORITY
from ..database.database import MAX_TREE_ID
from ..fabric.routes import Route
from ..jobs.job import Generation, Placement, TreeId
from ..tables import hot_row, ipv4_forward, outcome, result_delivery, worker_admission
from .generation_mark import mark_entry, newest_generation
from .switch_read import read_entities

_LOGGER = logging.getLogger(__name__)
OUR_TABLES = (
    *ipv4_forward.TABLES,
    *result_delivery.TABLES,
    *outcome.TABLES,
    *worker_admission.TABLES,
)
"""Tables that are reconciled as a whole, in the order of insertion; `hot_row` is not: its entries
change often, and there are many (`row_reconcile`)."""

Entity = P4TableEntry | P4MulticastGroupEntry


@dataclass(frozen=True)
class Changes:
    """How many entities a reconciliation wrote."""

    inserted: int
    modified: int
    deleted: int
    admitted: frozenset[TreeId] = frozenset()
    """Trees that the switch did not know before."""

    def __bool__(self) -> bool:
        return bool(self.inserted or self.modified or self.deleted)


def desired_entities(
    routes: Iterable[Route], placements: Iterable[Placement], priority_limit: int = MAX_PRIORITY
) -> list[Entity]:
    """Return the entities for the trees of all installed views, in the order of insertion.

    `priority_limit` is the highest priority that jobs may have at the switch.
    """
    entities: list[Entity] = [*ipv4_forward.table_entries(routes)]
    for placement in placements:
        entities.append(result_delivery.multicast_group(placement))
        entities.extend(hot_row.multicast_groups(placement))
        entities.extend(result_delivery.table_entries(placement))
        entities.extend(outcome.table_entries(placement))
        entities.extend(worker_admission.table_entries(placement, priority_limit))
    return entities


def _is_users(entity: Entity) -> bool:
    """Tell whether an entity is in a range that is left to users' own P4."""
    is_group = isinstance(entity, P4MulticastGroupEntry)
    return is_group and entity.multicast_group_id > MAX_TREE_ID


class Reconciler:
    """Reconciles one connected switch."""

    def __init__(self, switch: Switch, note_generation: Callable[[Generation], Generation]) -> None:
        """`note_generation` is told what the switch has seen, and returns the newest one known."""
        self._switch = switch
        self._note_generation = note_generation
        self._written_groups: dict[int, Entity] | None = None
        """Groups written on this connection, where the switch cannot read groups back."""

    async def reconcile(self, desired: list[Entity]) -> Changes:
        """Write the difference between the switch and `desired`; running jobs are not touched."""
        found = await self._read()
        newest = self._note_generation(newest_generation(found))
        mark = [mark_entry(newest)] if newest else []
        wanted = {self._key(entity): entity for entity in (*mark, *desired)}
        actual = {
            key: entity
            for entity in found
            if (key := self._key(entity)) in wanted or not _is_users(entity)
        }
        deletions = [entity for key, entity in actual.items() if key not in wanted]
        insertions = [entity for key, entity in wanted.items() if key not in actual]
        modifications = [
            entity
            for key, entity in wanted.items()
            if key in actual and self._value(entity) != self._value(actual[key])
        ]
        if deletions:
            await self._switch.delete(deletions[::-1])
        if modifications:
            await self._switch.modify(modifications)
        if insertions:
            await self._insert(insertions)
        if self._written_groups is not None:
            self._written_groups = {
                entity.multicast_group_id: entity
                for entity in desired
                if isinstance(entity, P4MulticastGroupEntry)
            }
        return Changes(
            len(insertions), len(modifications), len(deletions), self._admitted(insertions)
        )

    def _admitted(self, insertions: list[Entity]) -> frozenset[TreeId]:
        return frozenset(
            int(entity["job_id"])
            for entity in insertions
            if isinstance(entity, P4TableEntry) and entity.table_id == worker_admission.TREE_TABLE
        )

    async def _read(self) -> list[Entity]:
        """Return what is in our tables and groups, in the order of insertion."""
        entities: list[Entity] = await self._read_groups()
        tables = [P4TableEntry(table) for table in OUR_TABLES]
        entries = await read_entities(self._switch, tables)
        entities.extend(e for e in entries if not e.is_default_action and not e.is_const)
        return entities

    async def _read_groups(self) -> list[Entity]:
        if self._written_groups is None:
            try:
                return list(await read_entities(self._switch, [P4MulticastGroupEntry()]))
            except P4ClientError as exc:
                if exc.code != GRPCStatusCode.UNIMPLEMENTED:
                    raise
                _LOGGER.info("switch %s cannot read multicast groups back", self._switch.name)
                self._written_groups = {}
        return list(self._written_groups.values())

    async def _insert(self, entities: list[Entity]) -> None:
        if self._written_groups is not None:
            # Groups that an earlier controller left cannot be read here, only replaced.
            groups = [entity for entity in entities if isinstance(entity, P4MulticastGroupEntry)]
            await self._switch.delete(groups, strict=False)
        await self._switch.insert(entities)

    def _key(self, entity: Entity) -> bytes:
        """Return what identifies an entity on the switch."""
        if isinstance(entity, P4MulticastGroupEntry):
            return b"multicast group %d" % entity.multicast_group_id
        message = P4TableEntry(
            entity.table_id, match=entity.match, priority=entity.priority
        ).encode_entry(self._switch.p4info)
        fields = sorted(field.SerializeToString(deterministic=True) for field in message.match)
        return b"table %d %d " % (message.table_id, message.priority) + b"".join(fields)

    def _value(self, entity: Entity) -> bytes:
        """Return the part of an entity that MODIFY can change."""
        if isinstance(entity, P4MulticastGroupEntry):
            message = entity.encode(self._switch.p4info).packet_replication_engine_entry
            replicas = message.multicast_group_entry.replicas
            return b"".join(sorted(r.SerializeToString(deterministic=True) for r in replicas))
        message = P4TableEntry(entity.table_id, action=entity.action).encode_entry(
            self._switch.p4info
        )
        action = message.action.action
        params = sorted(param.SerializeToString(deterministic=True) for param in action.params)
        return b"%d " % action.action_id + b"".join(params)
