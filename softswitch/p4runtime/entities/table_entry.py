# SPDX-FileCopyrightText: 2026 The Switchfold Authors
# SPDX-License-Identifier: Apache-2.0
"""TableEntry messages to and from the packed keys and parameters of the pipeline."""

# pyright: reportDeprecated=false
# controller_metadata is deprecated, and clients in use send it.

from dataclasses import dataclass, field
from typing import NamedTuple

from finsy.proto import p4i, p4r, rpc_code

from ..p4info.schema import Action, Profile, Schema, Table
from ..p4info.values import decode, encode, split
from ..service.dataplane import HeldEntry, Match, ProfileGroup, ProfileMember
from ..service.status import RequestError
from .match_fields import canonical_match, encode_match

NO_ACTION = 0
"""Action position in the data plane's calls for an entry that refers to a profile."""


@dataclass(frozen=True)
class OneShot:
    """A set of actions that belongs to one table entry (section 9.2.3)."""

    message: p4r.ActionProfileActionSet = field(compare=False)
    """The canonical message, as reads return it."""
    group: int
    members: tuple[int, ...]


Choice = ProfileMember | ProfileGroup | OneShot
"""What an entry of an indirect table refers to."""


class Annotation(NamedTuple):
    """The parts of an entry that the data plane does not hold."""

    metadata: bytes = b""
    controller_metadata: int = 0
    one_shot: OneShot | None = None
    meter: p4r.MeterConfig | None = None


PLAIN = Annotation()
"""The annotation of most entries; the server stores nothing for them."""


@dataclass(frozen=True, slots=True)
class StoredEntry:
    """An entry as P4Runtime sees it."""

    action: int
    """Position in the JSON's actions; without meaning if `choice` is set."""
    params: bytes
    metadata: bytes = b""
    controller_metadata: int = 0
    is_const: bool = False
    choice: Choice | None = None
    idle_timeout_ns: int = 0
    meter: p4r.MeterConfig | None = None
    """Configuration of the direct meter; None: the default."""

    @property
    def indirect(self) -> ProfileMember | ProfileGroup | None:
        """The same choice in the data plane's form."""
        if isinstance(self.choice, OneShot):
            return ProfileGroup(self.choice.group)
        return self.choice

    @property
    def annotation(self) -> Annotation:
        """The parts of it that the data plane does not hold."""
        one_shot = self.choice if isinstance(self.choice, OneShot) else None
        return Annotation(self.metadata, self.controller_metadata, one_shot, self.meter)


def stored_entry(table: Table, held: HeldEntry, annotation: Annotation) -> StoredEntry:
    """Combine what the data plane and the server hold of an entry."""
    return StoredEntry(
        held.action,
        held.params,
        annotation.metadata,
        annotation.controller_metadata,
        table.is_const,
        annotation.one_shot or held.indirect,
        held.idle_timeout_ns,
        annotation.meter,
    )


def decode_action(table: Table, action: p4r.TableAction, *, is_default: bool) -> tuple[int, bytes]:
    """Return position and packed parameters of the action of a direct table's entry."""
    kind = action.WhichOneof("type")
    if kind is None:
        raise _bad(table.label, "action", "is missing")
    if kind != "action":
        raise _bad(table.label, kind, "the table has no action profile")
    return decode_call(table, action.action, is_default=is_default)


def decode_call(
    owner: Table | Profile, given: p4r.Action, *, is_default: bool = False
) -> tuple[int, bytes]:
    """Return position and packed parameters of an action of a table, member or one-shot set."""
    known = owner.actions.get(given.action_id)
    if known is None:
        names = ", ".join(f"{item.name} ({item.id})" for item in owner.actions.values())
        raise _bad(owner.label, "action_id", f"{given.action_id} is not one of {names}")
    wrong_scope = p4i.ActionRef.TABLE_ONLY if is_default else p4i.ActionRef.DEFAULT_ONLY
    if known.scope == wrong_scope:
        raise RequestError(
            rpc_code.PERMISSION_DENIED,
            f"{owner.label}: action {known.name} is "
            f"{'for entries only' if is_default else 'for the default entry only'}",
        )
    return known.position, _decode_params(owner, known, given)


def _decode_params(owner: Table | Profile, known: Action, given: p4r.Action) -> bytes:
    if len(given.params) != len(known.params):
        raise _bad(
            owner.label,
            known.name,
            f"{len(given.params)} parameters given, takes {[item.name for item in known.params]}",
        )
    by_id = {item.param_id: item.value for item in given.params}
    values: list[bytes] = []
    for item in known.params:
        value = by_id.get(item.id)
        if value is None:
            raise _bad(owner.label, known.name, f"parameter {item.name} (id {item.id}) is missing")
        if item.strings is None:
            values.append(decode(value, item.width, item.name))
        else:
            values.append(item.strings.encode(value, item.width))
    return b"".join(values)


def encode_call(
    schema: Schema, action: Action, params: bytes, into: p4r.Action | None = None
) -> p4r.Action:
    """Return the canonical message of an action."""
    encoded = p4r.Action() if into is None else into
    encoded.action_id = action.id
    values = split(params, schema.action_widths[action.position])
    for item, value in zip(action.params, values, strict=True):
        written = encode(value) if item.strings is None else item.strings.decode(value)
        encoded.params.add(param_id=item.id, value=written)
    return encoded


def encode_key(
    table: Table, match: Match | None, stored: StoredEntry, into: p4r.TableEntry | None = None
) -> p4r.TableEntry:
    """Return an entry's message without action and direct resources: match, metadata, timeout."""
    entry = p4r.TableEntry() if into is None else into
    entry.table_id = table.id
    if stored.metadata or stored.controller_metadata:
        entry.metadata = stored.metadata
        entry.controller_metadata = stored.controller_metadata
    entry.is_const = stored.is_const
    entry.idle_timeout_ns = stored.idle_timeout_ns
    if match is None:
        entry.is_default_action = True
    else:
        entry.priority = match.priority
        encode_match(table, match, entry)
    return entry


def encode_entry(
    schema: Schema,
    table: Table,
    match: Match | None,
    stored: StoredEntry,
    into: p4r.TableEntry | None = None,
) -> p4r.TableEntry:
    """Return the canonical message of an entry; `match` None is the default entry."""
    entry = encode_key(table, match, stored, into)
    choice = stored.choice
    if isinstance(choice, ProfileMember):
        entry.action.action_profile_member_id = choice.id
    elif isinstance(choice, ProfileGroup):
        entry.action.action_profile_group_id = choice.id
    elif choice is not None:
        entry.action.action_profile_action_set.CopyFrom(choice.message)
    else:
        action = table.actions_by_position.get(stored.action)
        if action is not None:
            encode_call(schema, action, stored.params, entry.action.action)
    return entry


def initial_entries(table: Table) -> dict[Match, HeldEntry]:
    """Return the entries that the program declares."""
    entries: dict[Match, HeldEntry] = {}
    for entry in table.program.entries:
        match = Match(entry.key)
        if not table.is_all_exact:
            priority = entry.priority if table.needs_priority else 0
            match = canonical_match(table, entry.key, entry.mask, entry.prefix_len, priority)
        entries[match] = HeldEntry(match, entry.action, entry.params)
    return entries


def initial_default(table: Table) -> StoredEntry:
    """Return the default entry that the program declares; NoAction if it declares none."""
    action = table.program.default_action
    if action is None:
        unnamed = (item for item in table.actions.values() if item.name == "NoAction")
        no_action = next(unnamed, None)
        return StoredEntry(-1 if no_action is None else no_action.position, b"")
    return StoredEntry(action.position, table.program.default_params)


def _bad(label: str, what: str, reason: str) -> RequestError:
    return RequestError(rpc_code.INVALID_ARGUMENT, f"{label}: {what}: {reason}")
