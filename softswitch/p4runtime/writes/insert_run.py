# SPDX-FileCopyrightText: 2026 The Switchfold Authors
# SPDX-License-Identifier: Apache-2.0
"""Runs of plain insertions: updates that go to the data plane in one call.

An INSERT is plain if its table has only exact fields, and if it has a key, an action and nothing
else, in the usual order and within their widths. Values are numbers, not strings of translated
types. Every other update is carried out singly; that code also writes the texts of refusals.
"""

from collections.abc import Sequence
from typing import NamedTuple

from finsy.proto import p4i, p4r

from ..entities.table_store import TableStore
from ..p4info.schema import Param, Schema, Table
from ..p4info.values import field_bytes
from ..service.status import RequestError

_INSERT = p4r.Update.INSERT
_MATCH, _ACTION = 2, 3  # field numbers of TableEntry


class _Field(NamedTuple):
    """A key field or parameter."""

    id: int
    size: int
    limit: int
    """The largest first byte within the field's width."""


class InsertPlan(NamedTuple):
    """What the decoding of plain insertions into a table needs."""

    table: Table
    fields: tuple[_Field, ...]
    actions: dict[int, tuple[int, tuple[_Field, ...]]]
    """Position and parameters of the actions that entries may have, by id."""


class InsertRun:
    """Collects plain insertions into one table until `flush`."""

    def __init__(self, plans: dict[int, InsertPlan], store: TableStore) -> None:
        self._plans = plans
        self._store = store
        self._table: Table | None = None
        self._entries: list[tuple[bytes, int, bytes]] = []

    def take(self, update: p4r.Update) -> bool:
        """Take an update into the run; False, without a change, if it does not belong to it."""
        if update.type != _INSERT:
            return False
        entry = update.entity.table_entry  # empty for another kind of entity, so without a plan
        plan = self._plans.get(entry.table_id)
        if plan is None or (self._table is not None and self._table is not plan.table):
            return False
        said = entry.ListFields()
        if len(said) != 3 or said[1][0].number != _MATCH or said[2][0].number != _ACTION:
            return False
        call = entry.action.action
        known = plan.actions.get(call.action_id)
        if known is None:
            return False
        position, params = known
        # The value is empty if the match is not an exact one.
        key = _packed(plan.fields, [(item.field_id, item.exact.value) for item in entry.match])
        data = _packed(params, [(item.param_id, item.value) for item in call.params])
        if key is None or data is None:
            return False
        self._table = plan.table
        self._entries.append((key, position, data))
        return True

    def flush(self, *, stop_at_failure: bool = False) -> list[RequestError | None]:
        """Insert the updates that were taken; return a result for each that was tried."""
        table, entries = self._table, self._entries
        if table is None:
            return []
        self._table, self._entries = None, []
        return self._store.insert_plain(table, entries, stop_at_failure=stop_at_failure)


def insert_plans(schema: Schema) -> dict[int, InsertPlan]:
    """Return how to decode plain insertions, by id of the tables that take them."""
    return {
        table.id: _plan(table)
        for table in schema.tables.values()
        if table.is_all_exact and table.fields and not table.is_const and not table.profile
        if not any(item.strings is not None for item in table.fields)
    }


def _plan(table: Table) -> InsertPlan:
    actions = {
        action.id: (action.position, tuple(_field(item) for item in action.params))
        for action in table.actions.values()
        if action.scope != p4i.ActionRef.DEFAULT_ONLY
        if not any(item.strings is not None for item in action.params)
    }
    fields = tuple(_Field(item.id, *_limits(item.width)) for item in table.fields)
    return InsertPlan(table, fields, actions)


def _field(item: Param) -> _Field:
    return _Field(item.id, *_limits(item.width))


def _limits(width: int) -> tuple[int, int]:
    return field_bytes(width), (1 << (width - 1) % 8 + 1) - 1


def _packed(fields: tuple[_Field, ...], given: Sequence[tuple[int, bytes]]) -> bytes | None:
    """Join the values in the data plane's form; None if the update must be written singly."""
    if len(given) != len(fields):
        return None
    packed = b""
    for (number, size, limit), (given_number, value) in zip(fields, given, strict=True):
        if given_number != number or not value:
            return None
        if len(value) != size:
            if len(value) > size:
                return None
            packed += value.rjust(size, b"\0")
        elif value[0] > limit:
            return None
        else:
            packed += value
    return packed
