# SPDX-FileCopyrightText: 2026 The Switchfold Authors
# SPDX-License-Identifier: Apache-2.0
"""Expressions: BMv2 computes with unlimited precision, generated code with the smallest exact type.

There are three forms: `exact` computes the range of the value and picks a representation that
holds it. `low_bits` and `low_limbs` give the low bits only, in a native type or in limbs, so that
sums and products may wrap.
"""

from ..context import Refusal
from ..ir.operands import (
    Constant,
    Element,
    Expression,
    Instance,
    OperatorExpression,
    Stack,
    UnionElement,
    UnionInstance,
    UnionMember,
)
from .numbers import (
    Kind,
    Value,
    constant,
    kind_of,
    limbs_constant,
    result_of,
    store,
    unsigned_constant,
    unsigned_type,
)
from .operands import Operands

_COMPARISONS = ("==", "!=", "<", "<=", ">", ">=")
_WIDE = {
    "+": "wide_add",
    "-": "wide_subtract",
    "*": "wide_multiply",
    "&": "wide_and",
    "|": "wide_or",
    "^": "wide_xor",
    "/": "wide_divide",
    "%": "wide_remainder",
    "<<": "wide_shift_left",
    ">>": "wide_shift_right",
}
_WRAPPING = ("+", "-", "*", "&", "|", "^")
"""Operators whose low bits depend only on the low bits of the operands."""
_MAX_SHIFT = 4096
"""Largest distance of a shift to the left whose exact value is computed."""


class Expressions(Operands):
    """Writes expressions in the context of a program or of one action."""

    # ---- exact values ----

    def condition(self, node: Expression) -> str:
        """C truth value of an expression."""
        return self._truth(self.exact(node))

    def _truth(self, value: Value) -> str:
        if value.kind.limbs:
            return f"!wide_is_zero({value.code}, {value.kind.limbs})"
        return value.code if value.is_bool else f"({value.code}) != 0"

    def exact(self, node: Expression) -> Value:  # noqa: PLR0911 - one case per operator
        """Code and range of the exact value."""
        if not isinstance(node, OperatorExpression):
            return self.leaf(node)
        if node.op in _COMPARISONS:
            return self._compare(node)
        truth = self._truth_operation(node)
        if truth is not None:
            return Value(truth, 0, 1, True)
        match node.op:
            case "b2d":
                return Value(f"(int32_t)({self.condition(node.right)})", 0, 1)
            case "last_stack_index" | "size_stack":
                return self._stack_number(node)
            case "?":
                return self._choose(node)
            case "two_comp_mod":
                return self._two_comp_mod(node)
            case "sat_cast" | "usat_cast":
                return self._saturate(node)
            case _:
                return self._arithmetic(node)

    def _truth_operation(self, node: OperatorExpression) -> str | None:
        """C truth value of an operation that gives one, else None."""
        match node:
            case OperatorExpression("and" | "or" as op, left, right) if left is not None:
                sign = "&&" if op == "and" else "||"
                return f"(({self.condition(left)}) {sign} ({self.condition(right)}))"
            case OperatorExpression("not", _, right):
                return f"!({self.condition(right)})"
            case OperatorExpression("d2b", _, right):
                return f"({self.condition(right)})"
            case OperatorExpression("valid", _, Instance() | Element() | UnionMember() as right):
                return f"({self.header(right).valid} != 0)"
            case OperatorExpression("valid_union", _, UnionInstance() | UnionElement() as right):
                return f"({' || '.join(f'{item.valid} != 0' for item in self.union(right))})"
            case _:
                return None

    def _stack_number(self, node: OperatorExpression) -> Value:
        assert isinstance(node.right, Stack)
        following = self.context.layout.next_index(node.right.stack)
        if node.op == "size_stack":
            return Value(f"(int64_t){following}", 0, (1 << 32) - 1)
        # Of an empty stack it is the largest number of 64 bits.
        return Value(f"(wide_int_t)((uint64_t){following} - 1)", 0, (1 << 64) - 1)

    def _compare(self, node: OperatorExpression) -> Value:
        op, left_node, right_node = node.op, _left(node), node.right
        if (test := self.same_structures(left_node, right_node)) is not None:
            return Value(test if op == "==" else f"!{test}", 0, 1, True)
        by_bytes = self._compare_bytes(op, left_node, right_node)
        if by_bytes is not None:
            return by_bytes
        left, right = self.exact(left_node), self.exact(right_node)
        if left.is_bool or right.is_bool:
            code = f"((bool)({self._truth(left)}) {op} (bool)({self._truth(right)}))"
            return Value(code, 0, 1, True)
        kind = kind_of(min(left.low, right.low), max(left.high, right.high))
        pair = left.as_kind(kind), right.as_kind(kind)
        if kind.limbs:
            return Value(f"(wide_compare({pair[0]}, {pair[1]}, {kind.limbs}) {op} 0)", 0, 1, True)
        return Value(f"({pair[0]} {op} {pair[1]})", 0, 1, True)

    def _compare_bytes(
        self, op: str, left_node: Expression, right_node: Expression
    ) -> Value | None:
        """Comparison of the bytes of unsigned wide operands, or None if bytes do not decide."""
        widths = [self.width_of(node) for node in (left_node, right_node)]
        width = max(item or 0 for item in widths)
        if width <= 64 or (op not in ("==", "!=") and self._has_sign(left_node, right_node)):
            return None
        for node in (left_node, right_node):
            if isinstance(node, Constant) and not 0 <= node.value < 1 << width:
                return None
        if self._has_sign(left_node, right_node) and None in widths:
            return None
        left, right = (self.wide_operand(node, width) for node in (left_node, right_node))
        if left is None or right is None:
            return None
        return Value(f"(memcmp({left}, {right}, {(width + 7) // 8}) {op} 0)", 0, 1, True)

    def _has_sign(self, *nodes: Expression) -> bool:
        return any(self.is_signed(node) for node in nodes)

    def _choose(self, node: OperatorExpression) -> Value:
        condition = self.condition(_condition(node))
        left, right = self.exact(_left(node)), self.exact(node.right)
        if left.is_bool and right.is_bool:
            return Value(f"(({condition}) ? ({left.code}) : ({right.code}))", 0, 1, True)
        result = Value("", min(left.low, right.low), max(left.high, right.high))
        kind = result.kind
        code = f"(({condition}) ? {left.as_kind(kind)} : {right.as_kind(kind)})"
        return Value(code, result.low, result.high)

    def _constant_operand(self, node: OperatorExpression) -> int:
        if not isinstance(node.right, Constant):
            raise Refusal(node.op, "its width is not a constant", "Use a constant width")
        return node.right.value

    def _two_comp_mod(self, node: OperatorExpression) -> Value:
        width = self._constant_operand(node)
        low, high = -(1 << width - 1), (1 << width - 1) - 1
        if width > 128:
            limbs = (width + 63) // 64
            inner = self.low_limbs(_left(node), limbs)
            code = f"wide_sign_extend(WIDE({limbs}), {limbs}, {inner}, {width})"
            return Value(code, low, high)
        unsigned = unsigned_type(width)
        size = {"uint32_t": 32, "uint64_t": 64, "wide_uint_t": 128}[unsigned]
        kind = {32: "int32_t", 64: "int64_t", 128: "wide_int_t"}[size]
        code = self.low_bits(_left(node), width)
        if width == size:
            return Value(f"({kind})({code})", low, high)
        gap = size - width
        return Value(f"(({kind})(({unsigned})({code}) << {gap}) >> {gap})", low, high)

    def _saturate(self, node: OperatorExpression) -> Value:
        width = self._constant_operand(node)
        low, high = (
            (0, (1 << width) - 1)
            if node.op == "usat_cast"
            else (-(1 << width - 1), (1 << width - 1) - 1)
        )
        inner = _left(node)
        if (
            (node.op, width) == ("sat_cast", 32)
            and isinstance(inner, OperatorExpression)
            and inner.op == "+"
        ):
            left, right = self.exact(_left(inner)), self.exact(inner.right)
            if left.kind.name == right.kind.name == "int32_t":
                return Value(f"saturating_add_32({left.code}, {right.code})", low, high)
        value = self.exact(inner)
        kind = kind_of(min(value.low, low), max(value.high, high))
        result_low, result_high = max(value.low, low), min(value.high, high)
        if result_low > result_high:
            result_low, result_high = low, high
        if kind.limbs:
            limits = (limbs_constant(limit, kind.limbs) for limit in (low, high))
            code = f"wide_clamp({value.as_kind(kind)}, {', '.join(limits)}, {kind.limbs})"
            return result_of(code, kind, result_low, result_high)
        name = "clamp_wide" if kind.name == "wide_int_t" else "clamp_64"
        code = f"{name}({value.code}, {constant(low)}, {constant(high)})"
        type_name = kind_of(result_low, result_high).name
        return Value(f"({type_name}){code}", result_low, result_high)

    def _masked(self, node: OperatorExpression) -> Value | None:
        """Value of `x & constant`, which depends only on the low bits of x."""
        for side, other in ((node.right, _left(node)), (_left(node), node.right)):
            if not isinstance(side, Constant) or side.value < 0:
                continue
            mask = side.value
            bits = max(mask.bit_length(), 1)
            if bits > 127:
                return self._masked_limbs(other, mask)
            kind = unsigned_type(bits)
            code = f"(({kind}){self.low_bits(other, bits)} & {unsigned_constant(mask, kind)})"
            return Value(f"({kind_of(0, mask).name}){code}", 0, mask)
        return None

    def _masked_limbs(self, node: Expression, mask: int) -> Value:
        limbs = kind_of(0, mask).limbs
        inner = self.low_limbs(node, limbs)
        code = f"wide_and(WIDE({limbs}), {inner}, {limbs_constant(mask, limbs)}, {limbs})"
        return Value(code, 0, mask)

    def _arithmetic(self, node: OperatorExpression) -> Value:  # noqa: PLR0911 - one case per operator
        op = node.op
        if op == "&" and (masked := self._masked(node)) is not None:
            return masked
        right = self.exact(node.right)
        left = self.exact(node.left) if node.left is not None else Value("0", 0, 0)
        match op:
            case "+":
                return self._binary(op, left, right, left.low + right.low, left.high + right.high)
            case "-":
                return self._binary(op, left, right, left.low - right.high, left.high - right.low)
            case "*":
                corners = [x * y for x in (left.low, left.high) for y in (right.low, right.high)]
                return self._binary(op, left, right, min(corners), max(corners))
            case "/" | "%":
                return self._divide(op, left, right)
            case "<<":
                return self._shift_left(left, right)
            case ">>":
                return self._shift_right(left, right)
            case "&" | "|" | "^":
                return self._binary(op, left, right, *_bitwise_range(op, left, right))
            case "~":
                low, high = -right.high - 1, -right.low - 1
                kind = kind_of(min(low, right.low), max(high, right.high))
                if kind.limbs:
                    code = f"wide_not(WIDE({kind.limbs}), {right.as_kind(kind)}, {kind.limbs})"
                    return result_of(code, kind, low, high)
                return Value(f"(~{right.as_kind(kind)})", low, high)
            case _:
                raise Refusal(
                    f"operator '{op}'", "it is not supported", "Use plain headers and integers"
                )

    def _binary(self, op: str, left: Value, right: Value, low: int, high: int) -> Value:
        kind = kind_of(min(low, left.low, right.low), max(high, left.high, right.high))
        if kind.limbs:
            return result_of(
                _wide(op, left.as_kind(kind), right.as_kind(kind), kind), kind, low, high
            )
        return Value(f"({left.as_kind(kind)} {op} {right.as_kind(kind)})", low, high)

    def _divide(self, op: str, left: Value, right: Value) -> Value:
        bound = max(abs(left.low), abs(left.high))
        low = 0 if left.low >= 0 and right.low >= 0 else -bound
        kind = kind_of(min(left.low, right.low, low), max(left.high, right.high, bound))
        if kind.limbs:
            if low < 0:
                raise Refusal(
                    f"operator '{op}' on signed values beyond 127 bits",
                    "division is for numbers that are not negative",
                    "Divide unsigned values",
                )
            return result_of(
                _wide(op, left.as_kind(kind), right.as_kind(kind), kind), kind, 0, bound
            )
        name = "divide_or_0" if op == "/" else "remainder_or_0"
        if kind.name != "wide_int_t":
            name += "_64"
        result = kind_of(low, bound).name
        return Value(f"({result}){name}({left.code}, {right.code})", low, bound)

    def _distance(self, value: Value) -> str:
        """Code of a shift's distance, which wide_int_t holds."""
        if value.kind.limbs:
            return f"wide_distance({value.code}, {value.kind.limbs})"
        return value.code

    def _shift_right(self, left: Value, right: Value) -> Value:
        low, high = min(left.low, 0), max(left.high, 0)
        if right.low == right.high >= 0:
            low, high = left.low >> right.low, left.high >> right.low
        distance = self._distance(right)
        if left.kind.limbs:
            return result_of(_wide(">>", left.code, distance, left.kind), left.kind, low, high)
        return Value(f"({left.type})shift_right({left.code}, {distance})", low, high)

    def _shift_left(self, left: Value, right: Value) -> Value:
        if not 0 <= right.low <= right.high <= _MAX_SHIFT:
            raise Refusal(
                "shift to the left",
                "its exact value has no bound",
                "Cast the result to the width that you need",
            )
        if left.low == left.high == 0:
            return left
        low, high = min(left.low << right.high, left.low), max(left.high << right.high, left.high)
        kind = kind_of(low, high)
        if kind.limbs:
            code = _wide("<<", left.as_kind(kind), self._distance(right), kind)
            return result_of(code, kind, low, high)
        if right.low == right.high:
            code = f"({left.as_kind(kind)} * (({kind.name})1 << {right.low}))"
            return Value(code, left.low << right.low, left.high << right.low)
        return Value(
            f"({kind.name})(({left.as_kind(kind)}) * ((wide_int_t)1 << ({right.code})))", low, high
        )

    # ---- modular values ----

    def low_bits(self, node: Expression, bits: int) -> str:
        """Code of a native unsigned value whose low bits, at most 128, are those of the node."""
        kind = unsigned_type(bits)
        if isinstance(node, Constant):
            return unsigned_constant(node.value & ((1 << bits) - 1), kind)
        if (part := self._low_part(node, bits)) is not None:
            return f"({kind}){part}"
        if isinstance(node, OperatorExpression):
            code = self._low_operation(node, bits, kind)
            if code is not None:
                return code
        return self.exact(node).as_unsigned(kind)

    def _low_operation(self, node: OperatorExpression, bits: int, kind: str) -> str | None:
        """Code of low bits that come from those of the operands, else None."""
        op = node.op
        if op == "&" and (masked := self._masked_part(node)) is not None:
            return f"({kind}){masked}"
        if op in _WRAPPING:
            left = "0" if node.left is None else self.low_bits(node.left, bits)
            return f"({kind})(({kind}){left} {op} ({kind}){self.low_bits(node.right, bits)})"
        if op == "~":
            return f"({kind})~({kind}){self.low_bits(node.right, bits)}"
        if op == "<<":
            distance = self._distance(self.exact(node.right))
            size = 64 if bits <= 64 else 128
            return f"({kind})shift_left_{size}({self.low_bits(_left(node), bits)}, {distance})"
        if op == "?":
            left, right = self.low_bits(_left(node), bits), self.low_bits(node.right, bits)
            return f"(({self.condition(_condition(node))}) ? {left} : {right})"
        return None

    def _low_part(self, node: Expression, bits: int) -> str | None:
        """Bits of a wide operand or of one shifted right by a constant, in place."""
        if not isinstance(node, OperatorExpression) or node.op != ">>":
            return self.low_part(node, 0, bits)
        distance = node.right
        if not isinstance(distance, Constant) or distance.value < 0:
            return None
        return self.low_part(_left(node), distance.value, bits)

    def _masked_part(self, node: OperatorExpression) -> str | None:
        """Slice of a wide operand: `x & constant` of at most 64 bits."""
        mask = node.right.value if isinstance(node.right, Constant) else 0
        if mask <= 0 or mask.bit_length() > 64:
            return None
        part = self._low_part(_left(node), mask.bit_length())
        return None if part is None else f"({part} & {unsigned_constant(mask, 'uint64_t')})"

    def low_limbs(self, node: Expression, limbs: int) -> str:
        """Code of limbs that are those of the node modulo 2**(64 * limbs)."""
        kind = Kind("limbs", limbs)
        if isinstance(node, Constant):
            return limbs_constant(node.value, limbs)
        if isinstance(node, OperatorExpression):
            code = self._low_limbs_operation(node, kind)
            if code is not None:
                return code
        reference, width = self.bytes_of(node), self.width_of(node)
        if reference is not None and (not self.is_signed(node) or limbs * 64 <= (width or 0)):
            return f"wide_load(WIDE({limbs}), {limbs}, {reference}, {width})"
        return self.exact(node).as_kind(kind)

    def _low_limbs_operation(self, node: OperatorExpression, kind: Kind) -> str | None:
        """Code of low limbs that come from those of the operands, else None."""
        op, limbs = node.op, kind.limbs
        if op == "&" and (masked := self._masked(node)) is not None:
            return masked.as_kind(kind)
        if op in _WRAPPING:
            left = self.low_limbs(_left(node), limbs)
            return _wide(op, left, self.low_limbs(node.right, limbs), kind)
        if op == "~":
            return f"wide_not(WIDE({limbs}), {self.low_limbs(node.right, limbs)}, {limbs})"
        if op == "<<":
            distance = self._distance(self.exact(node.right))
            return _wide(op, self.low_limbs(_left(node), limbs), distance, kind)
        if op == "?":
            left, right = self.low_limbs(_left(node), limbs), self.low_limbs(node.right, limbs)
            return f"(({self.condition(_condition(node))}) ? {left} : {right})"
        return None

    def index(self, node: Expression) -> str:
        """Code of an index as uint64_t; one that is too long becomes UINT64_MAX."""
        value = self.exact(node)
        return self._distance(value) if value.kind.limbs else f"(uint64_t)({value.code})"

    def put(self, reference: str, width: int, is_signed: bool, node: Expression) -> str:
        """C statement that stores an expression in a field, parameter or array element."""
        if width <= 64:
            return store(reference, width, is_signed, self.low_bits(node, width))
        source = self.wide_operand(node, width)
        if source is not None:
            return f"memmove({reference}, {source}, {(width + 7) // 8});"
        if width <= 128:
            return store(reference, width, is_signed, self.low_bits(node, width))
        return f"wide_store({reference}, {width}, {self.low_limbs(node, (width + 63) // 64)});"


def _left(node: OperatorExpression) -> Expression:
    """Left operand; 0 for a sign without one."""
    return Constant(0) if node.left is None else node.left


def _condition(node: OperatorExpression) -> Expression:
    assert node.condition is not None
    return node.condition


def _wide(op: str, left: str, right: str, kind: Kind) -> str:
    limbs = kind.limbs
    if op in ("<<", ">>"):
        return f"{_WIDE[op]}(WIDE({limbs}), {left}, {limbs}, {right})"
    return f"{_WIDE[op]}(WIDE({limbs}), {left}, {right}, {limbs})"


def _bitwise_range(op: str, left: Value, right: Value) -> tuple[int, int]:
    if op == "&" and min(left.low, right.low) >= 0:
        return 0, min(left.high, right.high)
    if op == "&" and max(left.low, right.low) >= 0:
        return 0, left.high if left.low >= 0 else right.high
    bits = max(abs(x) for x in (left.low, left.high, right.low, right.high)).bit_length()
    return (0 if min(left.low, right.low) >= 0 else -(1 << bits)), (1 << bits) - 1
