# SPDX-FileCopyrightText: 2026 The Switchfold Authors
# SPDX-License-Identifier: Apache-2.0
"""Operands: the fields, parameters and constants at the leaves of expressions."""

from ..context import Refusal
from ..ir.operands import (
    Constant,
    Expression,
    FieldOperand,
    Local,
    Memory,
    ParameterOperand,
    Target,
    Truth,
    Validity,
)
from ..structures import Structures
from .numbers import Value, bytes_constant, constant, kind_of

_NUMBERS = (FieldOperand, Local, ParameterOperand, Memory)


class Operands(Structures):
    """Writes operands in the context of a program or of one action."""

    def width_of(self, node: Expression) -> int | None:
        """Width of a field or parameter, None for anything else."""
        return node.width if isinstance(node, _NUMBERS) else None

    def is_signed(self, node: Expression) -> bool:
        """Whether an operand is a signed field or parameter."""
        return isinstance(node, FieldOperand | Local | ParameterOperand) and node.is_signed

    def reference(self, node: Target | ParameterOperand | Memory) -> str:
        """C lvalue of a field or parameter."""
        match node:
            case FieldOperand(header, run, lane):
                return run.element(self.header(header), lane.code)
            case Local(name):
                return name
            case Validity(header):
                return self.header(header).valid
            case ParameterOperand(index):
                return f"a->p{index}"
            case Memory(code):
                return code

    def bytes_of(self, node: Expression) -> str | None:
        """C expression of the bytes of a field or parameter wider than 64 bits, else None."""
        if isinstance(node, _NUMBERS) and node.width > 64:
            return self.reference(node)
        return None

    def leaf(self, node: Expression) -> Value:
        """Code and range of an operand."""
        match node:
            case Constant(value):
                return Value(constant(value), value, value)
            case Truth(value):
                return Value("true" if value else "false", 0, 1, True)
            case Validity():
                return Value(f"(int32_t){self.reference(node)}", 0, 1)
            case FieldOperand() | Local() | ParameterOperand() | Memory():
                return _load(self.reference(node), node.width, self.is_signed(node))
            case _:
                raise Refusal(
                    "header, union or stack as an operand",
                    "this kind of operand is not supported",
                    "Use header fields, parameters and constants",
                )

    def low_part(self, node: Expression, lowest: int, bits: int) -> str | None:
        """C expression of at most 128 bits of a field or parameter wider than 64, else None.

        The bits start at the lowest and lie within the field.
        """
        reference = self.bytes_of(node)
        width = self.width_of(node)
        if reference is None or width is None or lowest + bits > width:
            return None
        size = (width + 7) // 8
        if bits <= 64 and (lowest, bits % 8) == (0, 0):
            return f"load_be({reference} + {size - bits // 8}, {bits // 8})"
        if bits <= 64:
            return f"load_bits({reference}, {size * 8 - lowest - bits}, {bits})"
        if lowest == 0 and bits <= 128:
            start = max(size - 16, 0)
            return f"load_be_128({reference} + {start}, {size - start})"
        return None

    def wide_operand(self, node: Expression, width: int) -> str | None:
        """C expression of the bytes of a field, parameter or constant of this width, else None."""
        if isinstance(node, Constant):
            return bytes_constant(node.value, width)
        return self.bytes_of(node) if self.width_of(node) == width else None


def _load(reference: str, width: int, is_signed: bool) -> Value:
    low, high = (-(1 << width - 1), (1 << width - 1) - 1) if is_signed else (0, (1 << width) - 1)
    kind = kind_of(low, high)
    size = (width + 7) // 8
    if kind.limbs:
        name = "wide_load_signed" if is_signed else "wide_load"
        code = f"{name}(WIDE({kind.limbs}), {kind.limbs}, {reference}, {width})"
    elif width > 64:
        code = f"load_be_128({reference}, {size})"
        code = f"sign_extend_128({code}, {width})" if is_signed else f"(wide_int_t){code}"
    else:
        code = f"({kind.name}){reference}"
    return Value(code, low, high)
