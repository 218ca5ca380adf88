# SPDX-FileCopyrightText: 2026 The Switchfold Authors
# SPDX-License-Identifier: Apache-2.0
"""What the server looks up by P4Info id: each object with its position in the BMv2 JSON."""

from dataclasses import dataclass
from typing import TypeVar

from finsy.proto import rpc_code

from ...program.model import ProgramTable
from ..service.status import RequestError
from .data_types import DataType
from .translation import StringNumbers


@dataclass(frozen=True, kw_only=True)
class Param:
    """An action parameter, or a field of a controller header."""

    id: int
    name: str
    width: int
    strings: StringNumbers | None = None
    """Set if controllers write values of its type as strings."""


@dataclass(frozen=True, kw_only=True)
class Action:
    """An action as one table uses it."""

    id: int
    name: str
    position: int
    """Position in the JSON's actions."""
    params: tuple[Param, ...]
    scope: int
    """p4i.ActionRef.Scope: usable in entries, as default, or both."""


@dataclass(frozen=True, kw_only=True)
class MatchField:
    """A key field."""

    id: int
    name: str
    width: int
    match_type: int
    """p4i.MatchField.MatchType."""
    strings: StringNumbers | None = None
    """Set if controllers write values of its type as strings."""


@dataclass(frozen=True, kw_only=True)
class Profile:
    """An action profile or selector."""

    id: int
    name: str
    position: int
    """Position over both pipelines of the JSON, ingress first."""
    with_selector: bool
    size: int
    """Members, or weights of all groups; 0: no limit stated."""
    max_group_size: int
    counts_members: bool
    """Whether sizes count members instead of weights."""
    max_member_weight: int
    """0: no limit."""
    actions: dict[int, Action]
    """The actions of the tables that it implements."""

    @property
    def label(self) -> str:
        """Its name in error messages."""
        return f"action profile {self.name}"


@dataclass(frozen=True, kw_only=True)
class Table:
    """A table that P4Runtime can see."""

    id: int
    name: str
    position: int
    """Position over both pipelines of the JSON, ingress first."""
    fields: tuple[MatchField, ...]
    actions: dict[int, Action]
    actions_by_position: dict[int, Action]
    needs_priority: bool
    is_all_exact: bool
    is_const: bool
    is_default_const: bool
    has_counter: bool
    meter: "Meter | None"
    """The direct meter."""
    has_idle_timeout: bool
    profile: Profile | None
    max_size: int
    program: ProgramTable
    """The same table in the JSON."""
    widths: tuple[int, ...]
    """Bits of each key field."""

    @property
    def label(self) -> str:
        """Its name in error messages."""
        return f"table {self.name}"


@dataclass(frozen=True, kw_only=True)
class Array:
    """An indirect counter or a register."""

    id: int
    name: str
    position: int
    size: int
    data: DataType | None
    """Type of a register cell; None for counters."""


@dataclass(frozen=True, kw_only=True)
class Meter:
    """A meter, direct or indirect."""

    id: int
    name: str
    position: int
    """Position in the JSON's meter_arrays."""
    size: int
    """0 for direct meters."""
    kind: int
    """p4i.MeterSpec.Type."""


@dataclass(frozen=True, kw_only=True)
class ValueSet:
    """A parser value set."""

    id: int
    name: str
    position: int
    fields: tuple[MatchField, ...]
    size: int

    @property
    def label(self) -> str:
        """Its name in error messages."""
        return f"value set {self.name}"


@dataclass(frozen=True, kw_only=True)
class Digest:
    """A digest and the learn list that makes it."""

    id: int
    name: str
    list_id: int
    """Id of the JSON's learn list."""
    data: DataType


@dataclass(frozen=True, kw_only=True)
class ControllerHeader:
    """packet_in or packet_out."""

    fields: tuple[Param, ...]

    @property
    def bits(self) -> int:
        """Width of the header."""
        return sum(item.width for item in self.fields)


@dataclass(frozen=True, kw_only=True)
class Schema:
    """Everything that the server looks up by id."""

    tables: dict[int, Table]
    profiles: dict[int, Profile]
    counters: dict[int, Array]
    registers: dict[int, Array]
    meters: dict[int, Meter]
    value_sets: dict[int, ValueSet]
    digests: dict[int, Digest]
    packet_in: ControllerHeader | None
    packet_out: ControllerHeader | None
    action_widths: tuple[tuple[int, ...], ...]
    removed: dict[int, str]
    """Kinds and names of the P4Info's tables, action profiles and digests that the compiler removed
    from the JSON. They are empty."""
    warnings: tuple[str, ...]
    """Harmless differences between P4Info and JSON."""

    def table(self, table_id: int) -> Table:
        """Return a table or raise NOT_FOUND."""
        self._check_present(table_id)
        return find(self.tables, table_id, "table_id")

    def profile(self, profile_id: int) -> Profile:
        """Return an action profile or raise NOT_FOUND."""
        self._check_present(profile_id)
        return find(self.profiles, profile_id, "action_profile_id")

    def select_profiles(self, profile_id: int) -> list[Profile]:
        """Return the action profiles that an id of a read selects; 0 selects all."""
        if profile_id in self.removed:
            return []
        return select(self.profiles, profile_id, "action_profile_id")

    def digest(self, digest_id: int) -> Digest:
        """Return a digest or raise NOT_FOUND."""
        self._check_present(digest_id)
        return find(self.digests, digest_id, "digest_id")

    def select_digests(self, digest_id: int) -> list[Digest]:
        """Return the digests that an id of a read selects; 0 selects all."""
        if digest_id in self.removed:
            return []
        return select(self.digests, digest_id, "digest_id")

    def _check_present(self, number: int) -> None:
        label = self.removed.get(number)
        if label is not None:
            raise RequestError(
                rpc_code.NOT_FOUND,
                f"{label} is in the P4Info only: the compiler removed it from the program, which"
                " never uses it",
            )


_T = TypeVar("_T")


def find(objects: dict[int, _T], wanted: int, field: str) -> _T:
    """Return an object by id or raise NOT_FOUND, which names the request's field."""
    found = objects.get(wanted)
    if found is None:
        raise RequestError(
            rpc_code.NOT_FOUND, f"{field} {wanted} (0x{wanted:08x}) is not in the P4Info"
        )
    return found


def select(objects: dict[int, _T], wanted: int, field: str) -> list[_T]:
    """Return the objects that an id of a read selects; 0 selects all."""
    return [find(objects, wanted, field)] if wanted else list(objects.values())
