# SPDX-FileCopyrightText: 2026 The Switchfold Authors
# SPDX-License-Identifier: Apache-2.0
"""Twin of slot_epoch.p4 and worker_bitmap.p4: what the registers of slot copies hold."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Final

from finsy import P4RegisterEntry, Switch

from ..errors import SwitchUpdateError
from ..jobs.job import Generation
from ..switches.switch_read import read_entities

SLOT_COPIES: Final = 2
"""Of each slot; the parity of a round chooses one."""
_OPEN: Final = 0
"""SLOT_STATE_OPEN of metadata.p4."""
_REGISTERS: Final = ("slot_state", "slot_arrived", "slot_generation", "slot_round")
CopyIndex = int
"""Of a slot's copy in its switch: 2 * slot + parity of the round."""


@dataclass(frozen=True, kw_only=True)
class SlotCopy:
    """One copy of a slot."""

    index: CopyIndex
    generation: Generation
    round_number: int
    arrived: int
    """Bitmap of the children that have contributed to its round."""
    is_open: bool
    """Whether the round waits for children."""

    @property
    def slot(self) -> int:
        """Slot of the switch."""
        return self.index // SLOT_COPIES


async def find_open_copies(
    switch: Switch, slots: Iterable[int], generation: Generation
) -> list[CopyIndex]:
    """Return the copies of these slots whose round of this generation is open, in order.

    Raises P4ClientError or SwitchUpdateError where registers cannot be read.
    """
    copies = [slot * SLOT_COPIES + parity for slot in slots for parity in range(SLOT_COPIES)]
    values = await _read(switch, copies, ("slot_state",))
    found = [copy for copy in copies if values["slot_state", copy] == _OPEN]
    # Copies that were never used are open, too, and of generation 0.
    values = await _read(switch, found, ("slot_generation",))
    return [copy for copy in found if values["slot_generation", copy] == generation]


async def read_slot_copies(switch: Switch, copies: Iterable[CopyIndex]) -> list[SlotCopy]:
    """Return what these copies hold; P4ClientError or SwitchUpdateError where they cannot be read.

    A copy's registers are read one right after the other, not at once: a packet may come between.
    """
    wanted = list(copies)
    values = await _read(switch, wanted, _REGISTERS)
    return [
        SlotCopy(
            index=copy,
            generation=values["slot_generation", copy],
            round_number=values["slot_round", copy],
            arrived=values["slot_arrived", copy],
            is_open=values["slot_state", copy] == _OPEN,
        )
        for copy in wanted
    ]


async def _read(
    switch: Switch, copies: Sequence[CopyIndex], registers: Sequence[str]
) -> dict[tuple[str, CopyIndex], int]:
    known = {register.alias for register in switch.p4info.registers}
    absent = [name for name in registers if name not in known]
    if absent:
        raise SwitchUpdateError(
            f"the program of switch {switch.name} has no register {', '.join(absent)}: nothing is"
            " known of its slots; load a program with the registers of switchfold_wide.p4"
        )
    requests = [P4RegisterEntry(name, index=copy) for copy in copies for name in registers]
    values: dict[tuple[str, CopyIndex], int] = {}
    for entry in await read_entities(switch, requests) if requests else ():
        assert isinstance(entry.data, int)
        values[entry.register_id, entry.index or 0] = entry.data
    if len(values) < len(requests):
        raise SwitchUpdateError(
            f"switch {switch.name} answered a read of {len(requests)} registers with {len(values)};"
            " it does not show them, so nothing is known of its slots"
        )
    return values
