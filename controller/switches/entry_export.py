# SPDX-FileCopyrightText: 2026 The Switchfold Authors
# SPDX-License-Identifier: Apache-2.0
"""Reads what a running switch has been told, as a WriteRequest that tells another one the same.

Any P4Runtime client may read; no primary role is needed, and nothing is written.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import AsyncIterator, Iterable, Iterator
from dataclasses import dataclass, field
from typing import Final

from finsy import GRPCStatusCode, P4Client, P4ClientError
from finsy.proto import p4d, p4i, p4r
from google.protobuf import text_format

from ..config import SwitchConfig
from ..errors import SwitchUpdateError
from .program import describe
from .switch_call import fetch_pipeline, refusal, switch_credentials

_UNREADABLE: Final = (GRPCStatusCode.UNIMPLEMENTED, GRPCStatusCode.UNKNOWN)
"""What targets answer that cannot read a kind of entity back; BMv2 knows neither clone sessions nor
registers."""


@dataclass(frozen=True, kw_only=True)
class ExportedEntries:
    """The entries of one switch, in an order in which they can be written."""

    program: str
    """Name and version of the switch's program."""
    request: p4r.WriteRequest
    unreadable: tuple[str, ...] = ()
    """Kinds that the switch does not read back, with its reason."""
    counts: Counter[str] = field(default_factory=Counter[str])
    """How many of each kind are in the request."""

    def text(self) -> str:
        """Return the request in protobuf's text format, with remarks."""
        remarks = [f"# what a switch with {self.program} had been told"]
        remarks += [f"# not among it: {kind}" for kind in self.unreadable]
        return "\n".join(remarks) + "\n" + text_format.MessageToString(self.request)


async def export_entries(config: SwitchConfig, *, has_registers: bool = False) -> ExportedEntries:
    """Read tables, default actions, profiles, groups, clone sessions, value sets and meters.

    With `has_registers`, also every cell of a register that is not zero: state that packets have
    left. Raises SwitchError: out of reach, without a program, or refusing.
    """
    pipeline = await fetch_pipeline(config)
    if pipeline is None:
        raise SwitchUpdateError(f"switch {config.name} has no program, so it has no entries")
    request = p4r.WriteRequest(device_id=config.device_id)
    unreadable: list[str] = []
    counts: Counter[str] = Counter()
    client = P4Client(config.address, switch_credentials(config), wait_for_ready=False)
    async with client:
        for kind, query in _queries(pipeline.p4info, has_registers=has_registers):
            try:
                async for entity in _read(client, config, query):
                    update = _update(entity)
                    if update is not None:
                        request.updates.append(update)
                        counts[kind] += 1
            except P4ClientError as exc:
                if exc.code not in _UNREADABLE:
                    raise refusal(config, f"a read of {kind}", exc) from exc
                reason = f"{kind} ({exc.code.name.lower()})"
                if reason not in unreadable:
                    unreadable.append(reason)
    return ExportedEntries(
        program=describe(pipeline.p4info),
        request=request,
        unreadable=tuple(unreadable),
        counts=counts,
    )


async def _read(
    client: P4Client, config: SwitchConfig, query: p4r.Entity
) -> AsyncIterator[p4r.Entity]:
    request = p4r.ReadRequest(device_id=config.device_id, entities=[query])
    async for response in client.request_iter(request):
        for entity in response.entities:
            yield entity


def _queries(info: p4i.P4Info, *, has_registers: bool) -> Iterator[tuple[str, p4r.Entity]]:
    """Yield what to read, in the order in which it can be written, each with its kind."""
    for profile in info.action_profiles:
        number = profile.preamble.id
        member = p4r.ActionProfileMember(action_profile_id=number)
        yield "members", p4r.Entity(action_profile_member=member)
    for profile in info.action_profiles:
        if profile.with_selector:
            group = p4r.ActionProfileGroup(action_profile_id=profile.preamble.id)
            yield "member groups", p4r.Entity(action_profile_group=group)
    replication = p4r.PacketReplicationEngineEntry()
    replication.multicast_group_entry.SetInParent()
    yield "multicast groups", p4r.Entity(packet_replication_engine_entry=replication)
    replication = p4r.PacketReplicationEngineEntry()
    replication.clone_session_entry.SetInParent()
    yield "clone sessions", p4r.Entity(packet_replication_engine_entry=replication)
    for table in info.tables:
        number = table.preamble.id
        if not table.is_const_table:
            yield "entries", p4r.Entity(table_entry=p4r.TableEntry(table_id=number))
        # A table of a profile has no default action that could be written.
        if not table.const_default_action_id and not table.implementation_id:
            default = p4r.TableEntry(table_id=number, is_default_action=True)
            yield "default actions", p4r.Entity(table_entry=default)
    for value_set in info.value_sets:
        members = p4r.ValueSetEntry(value_set_id=value_set.preamble.id)
        yield "value sets", p4r.Entity(value_set_entry=members)
    for meter in info.meters:
        yield "meters", p4r.Entity(meter_entry=p4r.MeterEntry(meter_id=meter.preamble.id))
    for register in info.registers if has_registers else ():
        cells = p4r.RegisterEntry(register_id=register.preamble.id)
        yield "register cells", p4r.Entity(register_entry=cells)


def _update(entity: p4r.Entity) -> p4r.Update | None:
    """Return the update that makes an entity anew; None for one that needs none."""
    update = p4r.Update(type=p4r.Update.INSERT)
    update.entity.CopyFrom(entity)
    match entity.WhichOneof("entity"):
        case "table_entry":
            entry = update.entity.table_entry
            if entry.is_const:
                return None
            for name in ("counter_data", "meter_counter_data", "time_since_last_hit"):
                entry.ClearField(name)
            if entry.is_default_action:
                update.type = p4r.Update.MODIFY
                return update if entry.HasField("action") else None
        case "meter_entry":
            update.type = p4r.Update.MODIFY
            update.entity.meter_entry.ClearField("counter_data")
            return update if entity.meter_entry.HasField("config") else None
        case "value_set_entry":
            update.type = p4r.Update.MODIFY
            return update if entity.value_set_entry.members else None
        case "register_entry":
            update.type = p4r.Update.MODIFY
            return update if _is_set(entity.register_entry.data) else None
        case _:
            pass
    return update


def _is_set(data: p4d.P4Data) -> bool:
    """Tell whether a register's cell holds anything but zeros."""
    return any(_leaves(data))


def _leaves(data: p4d.P4Data) -> Iterable[bool]:
    match data.WhichOneof("data"):
        case "bitstring":
            yield data.bitstring.strip(b"\0") != b""
        case "bool":
            yield data.bool
        case "struct":
            for member in data.struct.members:
                yield from _leaves(member)
        case "tuple":
            for member in data.tuple.members:
                yield from _leaves(member)
        case _:
            yield True
