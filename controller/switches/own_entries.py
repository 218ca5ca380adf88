# SPDX-FileCopyrightText: 2026 The Switchfold Authors
# SPDX-License-Identifier: Apache-2.0
"""Writes a user's own entries to a running switch, beside those of the controller.

Where a switch has a primary for each role (softswitch), the user's is that of `USERS_ROLE`, and the
controller notices nothing. A target with one primary (BMv2) is taken over for the time of the call;
the controller takes it back with a higher term.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Final

from finsy import GRPCStatusCode, P4Client, P4ClientError
from finsy.p4client import P4Error, P4RpcStatus
from finsy.proto import U128, p4i, p4r

from ..config import SwitchConfig
from ..database.database import MAX_TREE_ID
from ..errors import ReservedEntryError, SwitchUpdateError
from .program import PROGRAM_NAME, describe, load_program
from .switch_call import fetch_pipeline, refusal, switch_credentials, unreachable_error

USERS_ROLE: Final = "users"
"""Role of P4Runtime in which users' entries are written."""
_FIRST_ELECTION_ID: Final = 1
_TIMEOUT_S: Final = 10.0
_REFERENCE: Final = "narrow"
"""Both variants of the aggregation program have the same tables, registers and counters."""

_OBJECT_IDS: Final[Mapping[str, Callable[[p4r.Entity], int]]] = {
    "table_entry": lambda entity: entity.table_entry.table_id,
    "direct_counter_entry": lambda entity: entity.direct_counter_entry.table_entry.table_id,
    "direct_meter_entry": lambda entity: entity.direct_meter_entry.table_entry.table_id,
    "register_entry": lambda entity: entity.register_entry.register_id,
    "counter_entry": lambda entity: entity.counter_entry.counter_id,
    "meter_entry": lambda entity: entity.meter_entry.meter_id,
}
"""Id of what an entity is about, for the kinds that the aggregation program has, or could have."""

PlacedUpdate = tuple[str, p4r.Update]
"""An update, and its place in the user's file."""


@dataclass(frozen=True, kw_only=True)
class WrittenEntries:
    """What became of a user's entries."""

    inserted: int
    modified: int
    """Also those that were to be inserted, and were there."""
    deleted: int
    has_displaced: bool
    """Whether another client was the switch's primary until then."""


async def running_program(config: SwitchConfig) -> p4i.P4Info:
    """Return the P4Info of a switch's program. Raises SwitchError, also if it has no program."""
    pipeline = await fetch_pipeline(config)
    if pipeline is None:
        raise SwitchUpdateError(f"switch {config.name} has no program, so it has no tables")
    return pipeline.p4info


def check_own(info: p4i.P4Info, updates: Sequence[PlacedUpdate]) -> None:
    """Raise ReservedEntryError if an update is about what the controller keeps for itself.

    That is what the aggregation program has, and multicast groups up to MAX_TREE_ID. In another
    program, which no controller drives, nothing is.
    """
    if info.pkg_info.name != PROGRAM_NAME:
        return
    reserved = _names(load_program(_REFERENCE).p4info)
    names = {number: name for name, number in _names(info).items() if name in reserved}
    for where, update in updates:
        entity = update.entity
        group = entity.packet_replication_engine_entry.multicast_group_entry.multicast_group_id
        if 0 < group <= MAX_TREE_ID:
            raise ReservedEntryError(
                f"{where}: multicast groups up to {MAX_TREE_ID} are the controller's; take one from"
                f" {MAX_TREE_ID + 1} on"
            )
        object_id = _OBJECT_IDS.get(str(entity.WhichOneof("entity")))
        name = names.get(object_id(entity)) if object_id else None
        if name is not None:
            raise ReservedEntryError(
                f"{where}: {name} is the controller's, which would undo the change at its next"
                f" repair; write to what {describe(info)} has beside the aggregation program"
            )


async def write_own(config: SwitchConfig, updates: Sequence[PlacedUpdate]) -> WrittenEntries:
    """Write updates that `check_own` has accepted, in their order.

    An entry that is to be inserted and is there already is modified. Raises SwitchUpdateError with
    the places of what the switch refuses (the rest is written), SwitchUnreachableError.
    """
    client = P4Client(config.address, switch_credentials(config), wait_for_ready=False)
    try:
        async with asyncio.timeout(_TIMEOUT_S), client:
            election_id = await _become_primary(client, config)
            problems = await _insert_or_modify(client, config, election_id, updates)
    except P4ClientError as exc:
        raise refusal(config, "a write of entries", exc) from exc
    except TimeoutError as exc:
        raise unreachable_error(config, f"no answer in {_TIMEOUT_S:.0f} s") from exc
    if problems:
        raise SwitchUpdateError(
            f"switch {config.name} at {config.address} refused, and has written the rest:\n"
            + "\n".join(problems)
        )
    kinds = [update.type for _, update in updates]
    return WrittenEntries(
        inserted=kinds.count(p4r.Update.INSERT),
        modified=kinds.count(p4r.Update.MODIFY),
        deleted=kinds.count(p4r.Update.DELETE),
        has_displaced=election_id != _FIRST_ELECTION_ID,
    )


def deletion(update: p4r.Update) -> p4r.Update:
    """Return the update that takes back another: a default action becomes the program's own.

    Raises ValueError for what cannot be taken back: cells of registers, counters and meters.
    """
    entity = p4r.Entity()
    entity.CopyFrom(update.entity)
    kind = entity.WhichOneof("entity")
    if kind not in {"table_entry", "packet_replication_engine_entry"} and not str(kind).startswith(
        "action_profile"
    ):
        raise ValueError(f"a {str(kind).replace('_', ' ')} cannot be deleted")
    if entity.table_entry.is_default_action:
        entity.table_entry.ClearField("action")
        return p4r.Update(type=p4r.Update.MODIFY, entity=entity)
    return p4r.Update(type=p4r.Update.DELETE, entity=entity)


async def _become_primary(client: P4Client, config: SwitchConfig) -> int:
    """Return the election id with which the switch accepts our writes: the least that is free."""
    election_id = _FIRST_ELECTION_ID
    while True:
        update = p4r.MasterArbitrationUpdate(
            device_id=config.device_id,
            role=p4r.Role(name=USERS_ROLE),
            election_id=U128.encode(election_id),
        )
        try:
            await client.send(p4r.StreamMessageRequest(arbitration=update))
            answer = (await client.receive()).arbitration
        except P4ClientError as exc:
            if not exc.is_election_id_used:
                raise
            election_id += 1
            continue
        if P4RpcStatus.from_status(answer.status).code is GRPCStatusCode.OK:
            return election_id
        election_id = U128.decode(answer.election_id) + 1


async def _insert_or_modify(
    client: P4Client, config: SwitchConfig, election_id: int, updates: Sequence[PlacedUpdate]
) -> list[str]:
    """Write updates; return what the switch has against some of them, with their places.

    Updates that were to insert what is there become those that modify it.
    """
    refused = await _write(client, config, election_id, updates)
    problems: list[str] = []
    present: list[PlacedUpdate] = []
    for index, error in sorted(refused.items()):
        where, update = updates[index]
        if error.canonical_code is GRPCStatusCode.ALREADY_EXISTS:
            update.type = p4r.Update.MODIFY
            present.append((where, update))
        else:
            problems.append(f"{where}: {error.message}")
    if present:
        late = await _write(client, config, election_id, present)
        problems += [f"{present[index][0]}: {late[index].message}" for index in sorted(late)]
    return problems


async def _write(
    client: P4Client, config: SwitchConfig, election_id: int, updates: Sequence[PlacedUpdate]
) -> dict[int, P4Error]:
    """Return the errors by the index of the update; P4ClientError if the call itself fails."""
    request = p4r.WriteRequest(
        device_id=config.device_id,
        role=USERS_ROLE,
        election_id=U128.encode(election_id),
        updates=[update for _, update in updates],
    )
    try:
        await client.request(request)
    except P4ClientError as exc:
        if not exc.details:
            raise
        return exc.details
    return {}


def _names(info: p4i.P4Info) -> dict[str, int]:
    """Return the ids of what holds state that a client can write, by full names."""
    kinds = (info.tables, info.registers, info.counters, info.meters, info.direct_counters)
    return {each.preamble.name: each.preamble.id for kind in kinds for each in kind}
