# SPDX-FileCopyrightText: 2026 The Switchfold Authors
# SPDX-License-Identifier: Apache-2.0
"""Register arrays: equal ones in series are interleaved, so that an index is contiguous."""

from dataclasses import dataclass

from ...program.model import Program, Register
from ..headers import MIN_RUN, storage_type


@dataclass(frozen=True, kw_only=True, eq=False)
class RegisterBlock:
    """Memory of one or several register arrays; element i of array k is at [i * lanes + k]."""

    member: str
    registers: tuple[Register, ...]

    @property
    def type(self) -> str:
        """C type of an element of at most 64 bits."""
        return storage_type(self.registers[0].width, False)

    def declare(self) -> str:
        """C declaration of the member; an element of more than 64 bits is a string of bytes."""
        width = self.registers[0].width
        if width > 64:
            return f"uint8_t (*{self.member})[{(width + 7) // 8}]"
        return f"{self.type} *{self.member}"

    @property
    def elements(self) -> int:
        """Elements of all arrays together."""
        return self.registers[0].size * len(self.registers)

    def element(self, address: str, index: str, lane: str) -> str:
        """C lvalue of an element of one of the arrays; the index must be in range."""
        if len(self.registers) == 1:
            return f"{address}[{index}]"
        return f"{address}[{index} * {len(self.registers)} + {lane}]"


def register_blocks(program: Program) -> tuple[RegisterBlock, ...]:
    """Group consecutive registers of equal size and width."""
    blocks: list[RegisterBlock] = []
    registers = program.registers
    start = 0
    while start < len(registers):
        first = registers[start]
        end = start + 1
        while end < len(registers) and (registers[end].size, registers[end].width) == (
            first.size,
            first.width,
        ):
            end += 1
        size = end - start if end - start >= MIN_RUN else 1
        blocks.append(RegisterBlock(member=f"r{start}", registers=registers[start : start + size]))
        start += size
    return tuple(blocks)
