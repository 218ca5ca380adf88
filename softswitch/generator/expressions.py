# SPDX-FileCopyrightText: 2026 The Switchfold Authors
# SPDX-License-Identifier: Apache-2.0
"""Expressions: BMv2 computes with unlimited precision, native code with the smallest exact type.

Two ways to write an expression: `exact` knows the range of the value and picks a type that
holds it, up to 127 bits; `low_bits` wants only the low bits, so that sums and products may wrap.
"""

from typing import Any

from softswitch.generator.context import Refusal
from softswitch.generator.numbers import Value, constant, unsigned_constant, unsigned_type
from softswitch.generator.operands import Operands, unwrap
from softswitch.program import parse_hex

_COMPARISONS = ("==", "!=", "<", "<=", ">", ">=")


class Expressions(Operands):
    """Writes expressions in the context of a program or of one action."""

    # ---- exact values ----

    def condition(self, node: Any) -> str:
        """C truth value of an expression."""
        value = self.exact(node)
        return value.code if value.is_bool else f"({value.code}) != 0"

    def exact(self, node: Any) -> Value:
        """Code and range of the exact value."""
        node = unwrap(node)
        if "op" not in node:
            return self.leaf(node)
        op = node["op"]
        if op in _COMPARISONS:
            return self._compare(op, node["left"], node["right"])
        match op:
            case "and" | "or":
                sign = "&&" if op == "and" else "||"
                left, right = self.condition(node["left"]), self.condition(node["right"])
                return Value(f"(({left}) {sign} ({right}))", 0, 1, True)
            case "not":
                return Value(f"!({self.condition(node['right'])})", 0, 1, True)
            case "d2b":
                return Value(f"(({self.exact(node['right']).code}) != 0)", 0, 1, True)
            case "b2d":
                return Value(f"(int32_t)({self.condition(node['right'])})", 0, 1)
            case "valid":
                header = unwrap(node["right"])["value"]
                return Value(f"({self.context.layout.valid(header)} != 0)", 0, 1, True)
            case "?":
                return self._choose(node)
            case "two_comp_mod":
                return self._two_comp_mod(node)
            case "sat_cast" | "usat_cast":
                return self._saturate(op, node)
            case _:
                return self._arithmetic(op, node)

    def _compare(self, op: str, left_node: Any, right_node: Any) -> Value:
        left_bytes, right_bytes = self.bytes_of(left_node), self.bytes_of(right_node)
        if left_bytes is not None or right_bytes is not None:
            return self._compare_bytes(op, left_node, right_node)
        left, right = self.exact(left_node), self.exact(right_node)
        if left.is_bool or right.is_bool:
            return Value(f"((bool)({left.code}) {op} (bool)({right.code}))", 0, 1, True)
        kind = Value("", min(left.low, right.low), max(left.high, right.high)).type
        return Value(f"({left.as_type(kind)} {op} {right.as_type(kind)})", 0, 1, True)

    def _compare_bytes(self, op: str, left_node: Any, right_node: Any) -> Value:
        width = self.width_of(left_node) or self.width_of(right_node)
        assert width is not None
        left, right = (self.wide_operand(node, width) for node in (left_node, right_node))
        return Value(f"(memcmp({left}, {right}, {width // 8}) {op} 0)", 0, 1, True)

    def _choose(self, node: Any) -> Value:
        condition = self.condition(node["cond"])
        left, right = self.exact(node["left"]), self.exact(node["right"])
        if left.is_bool and right.is_bool:
            return Value(f"(({condition}) ? ({left.code}) : ({right.code}))", 0, 1, True)
        result = Value("", min(left.low, right.low), max(left.high, right.high))
        kind = result.type
        code = f"(({condition}) ? {left.as_type(kind)} : {right.as_type(kind)})"
        return Value(code, result.low, result.high)

    def _constant_operand(self, node: Any, what: str) -> int:
        node = unwrap(node)
        if node.get("type") != "hexstr":
            raise Refusal(what, "its width is not a constant", "Use a constant width")
        return parse_hex(node["value"])

    def _two_comp_mod(self, node: Any) -> Value:
        width = self._constant_operand(node["right"], "two_comp_mod")
        low, high = -(1 << width - 1), (1 << width - 1) - 1
        unsigned = unsigned_type(width)
        size = {"uint32_t": 32, "uint64_t": 64, "wide_uint_t": 128}[unsigned]
        kind = {32: "int32_t", 64: "int64_t", 128: "wide_int_t"}[size]
        code = self.low_bits(node["left"], width)
        if width == size:
            return Value(f"({kind})({code})", low, high)
        gap = size - width
        return Value(f"(({kind})(({unsigned})({code}) << {gap}) >> {gap})", low, high)

    def _saturate(self, op: str, node: Any) -> Value:
        width = self._constant_operand(node["right"], op)
        low, high = (
            (0, (1 << width) - 1)
            if op == "usat_cast"
            else (-(1 << width - 1), (1 << width - 1) - 1)
        )
        inner = unwrap(node["left"])
        if op == "sat_cast" and width == 32 and inner.get("op") == "+":
            left, right = self.exact(inner["left"]), self.exact(inner["right"])
            if left.type == right.type == "int32_t":
                return Value(f"saturating_add_32({left.code}, {right.code})", low, high)
        value = self.exact(inner)
        kind = Value("", min(value.low, low), max(value.high, high)).type
        name = "clamp_wide" if kind == "wide_int_t" else "clamp_64"
        result = Value("", max(value.low, low), min(value.high, high))
        code = f"{name}({value.code}, {constant(low)}, {constant(high)})"
        if result.low > result.high:
            result = Value("", low, high)
        return Value(f"({result.type}){code}", result.low, result.high)

    def _masked(self, node: Any) -> Value | None:
        """Value of `x & constant`, which needs the low bits of x only."""
        for side, other in ((node["right"], node["left"]), (node["left"], node["right"])):
            mask_node = unwrap(side)
            if mask_node.get("type") == "hexstr" and parse_hex(mask_node["value"]) >= 0:
                mask = parse_hex(mask_node["value"])
                bits = max(mask.bit_length(), 1)
                kind = unsigned_type(bits)
                code = f"(({kind}){self.low_bits(other, bits)} & {unsigned_constant(mask, kind)})"
                return Value(f"({Value('', 0, mask).type}){code}", 0, mask)
        return None

    def _arithmetic(self, op: str, node: Any) -> Value:
        if op == "&" and (masked := self._masked(node)) is not None:
            return masked
        right = self.exact(node["right"])
        left = self.exact(node["left"]) if node.get("left") is not None else Value("0", 0, 0)
        match op:
            case "+":
                low, high = left.low + right.low, left.high + right.high
            case "-":
                low, high = left.low - right.high, left.high - right.low
            case "*":
                corners = [x * y for x in (left.low, left.high) for y in (right.low, right.high)]
                low, high = min(corners), max(corners)
            case "/" | "%":
                return self._divide(op, left, right)
            case "<<" | ">>":
                return self._shift(op, node, left, right)
            case "&" | "|" | "^":
                return self._bitwise(op, left, right)
            case "~":
                low, high = -right.high - 1, -right.low - 1
                kind = Value("", min(low, right.low), max(high, right.high)).type
                return Value(f"(~{right.as_type(kind)})", low, high)
            case _:
                raise Refusal(
                    f"operator '{op}'", "it is not supported", "Use plain headers and integers"
                )
        kind = Value("", min(low, left.low, right.low), max(high, left.high, right.high)).type
        return Value(f"({left.as_type(kind)} {op} {right.as_type(kind)})", low, high)

    def _divide(self, op: str, left: Value, right: Value) -> Value:
        bound = max(abs(left.low), abs(left.high))
        name = "divide_or_0" if op == "/" else "remainder_or_0"
        kind = Value("", -bound, bound).type
        return Value(f"({kind}){name}({left.code}, {right.code})", -bound, bound)

    def _shift(self, op: str, node: Any, left: Value, right: Value) -> Value:
        distance = unwrap(node["right"])
        if op == ">>":
            low, high = min(left.low, 0), max(left.high, 0)
            return Value(f"({left.type})shift_right({left.code}, {right.code})", low, high)
        if distance.get("type") != "hexstr" or right.low > 127 or right.low < 0:
            raise Refusal(
                "shift to the left",
                "its exact value has no bound",
                "Cast the result to the width that you need",
            )
        low, high = left.low << right.low, left.high << right.low
        kind = Value("", min(low, left.low), max(high, left.high)).type
        return Value(f"({left.as_type(kind)} * (({kind})1 << {right.low}))", low, high)

    def _bitwise(self, op: str, left: Value, right: Value) -> Value:
        if op == "&" and min(left.low, right.low) >= 0:
            low, high = 0, min(left.high, right.high)
        elif op == "&" and max(left.low, right.low) >= 0:
            low, high = 0, left.high if left.low >= 0 else right.high
        else:
            bits = max(abs(x) for x in (left.low, left.high, right.low, right.high)).bit_length()
            low, high = (0 if min(left.low, right.low) >= 0 else -(1 << bits)), (1 << bits) - 1
        kind = Value("", min(low, left.low, right.low), max(high, left.high, right.high)).type
        return Value(f"({left.as_type(kind)} {op} {right.as_type(kind)})", low, high)

    # ---- modular values ----

    def low_bits(self, node: Any, bits: int) -> str:
        """Code of an unsigned value whose low bits are those of the expression."""
        node = unwrap(node)
        kind = unsigned_type(bits)
        op = node.get("op")
        if node.get("type") == "hexstr":
            return unsigned_constant(parse_hex(node["value"]) & ((1 << bits) - 1), kind)
        if op in ("+", "-", "*", "&", "|", "^"):
            left = "0" if node.get("left") is None else self.low_bits(node["left"], bits)
            return f"({kind})(({kind}){left} {op} ({kind}){self.low_bits(node['right'], bits)})"
        if op == "~":
            return f"({kind})~({kind}){self.low_bits(node['right'], bits)}"
        if op == "<<":
            distance = self.exact(node["right"])
            size = 64 if bits <= 64 else 128
            return (
                f"({kind})shift_left_{size}({self.low_bits(node['left'], bits)}, {distance.code})"
            )
        if op == "?":
            left, right = self.low_bits(node["left"], bits), self.low_bits(node["right"], bits)
            return f"(({self.condition(node['cond'])}) ? {left} : {right})"
        return f"({kind})({self.exact(node).code})"

    def index(self, node: Any) -> str:
        """Code of an index as uint64_t."""
        return self.low_bits(node, 64)
