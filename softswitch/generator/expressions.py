# SPDX-FileCopyrightText: 2026 The Switchfold Authors
# SPDX-License-Identifier: Apache-2.0
"""Expressions: BMv2 computes with unlimited precision, native code with the smallest exact type.

Two ways to write an expression: `exact` knows the range of the value and picks a type that
holds it, up to 127 bits; `low_bits` wants only the low bits, so that sums and products may wrap.
"""

from dataclasses import dataclass
from typing import Any

from softswitch.generator.context import Context, Refusal
from softswitch.generator.headers import Storage, identifier, local_mark, storage_type
from softswitch.program import parse_hex

_BITS = {"int32_t": 31, "int64_t": 63, "wide_int_t": 127}
_COMPARISONS = ("==", "!=", "<", "<=", ">", ">=")


@dataclass(frozen=True)
class Value:
    """C code of a number within [low, high], or of a truth value."""

    code: str
    low: int
    high: int
    is_bool: bool = False

    @property
    def type(self) -> str:
        """Smallest C type that holds every value."""
        for name, bits in _BITS.items():
            if -(1 << bits) <= self.low and self.high < (1 << bits):
                return name
        raise Refusal(
            "expression",
            "an intermediate value needs more than 127 bits",
            "Cast to narrower types before computing",
        )

    def as_type(self, name: str) -> str:
        """Code converted to a C type."""
        return f"({name})({self.code})"


def constant(value: int) -> str:
    """C literal of a number of at most 128 bits."""
    if -(1 << 31) < value < (1 << 31):
        return str(value)
    if -(1 << 63) < value < (1 << 63):
        return f"INT64_C({value})"
    unsigned = value & ((1 << 128) - 1)
    high, low = unsigned >> 64, unsigned & ((1 << 64) - 1)
    return f"(wide_int_t)((wide_uint_t)UINT64_C({high}) << 64 | UINT64_C({low}))"


def unsigned_constant(value: int, kind: str) -> str:
    """C literal of an unsigned type."""
    if kind == "wide_uint_t":
        return f"((wide_uint_t)UINT64_C({value >> 64}) << 64 | UINT64_C({value & (1 << 64) - 1}))"
    return f"UINT64_C({value})" if kind == "uint64_t" else f"UINT32_C({value})"


def unsigned_type(bits: int) -> str:
    """C type that computes modulo 2**bits or more."""
    if bits > 128:
        raise Refusal(
            f"value of {bits} bits",
            "native code computes with at most 128 bits",
            "Split it into fields of 64 bits or less",
        )
    return "uint32_t" if bits <= 32 else "uint64_t" if bits <= 64 else "wide_uint_t"


def unwrap(node: Any) -> Any:
    """Strip the nesting that p4c puts around expressions."""
    while node.get("type") == "expression":
        node = node["value"]
    return node


class Expressions:
    """Writes expressions in the context of a program or of one action."""

    def __init__(self, context: Context) -> None:
        self.context = context

    # ---- leaves ----

    def width_of(self, node: Any) -> int | None:
        """Width of a field or parameter, None for anything else."""
        node = unwrap(node)
        match node.get("type"):
            case "field" if node["value"][1] != "$valid$":
                return self._storage(node).field.width
            case "local" | "runtime_data" if self.context.action is not None:
                index: int = node["value"]
                return self.context.action.parameters[index].width
            case _:
                return None

    def _storage(self, node: Any) -> Storage:
        header, name = node["value"]
        found = self.context.layout.fields.get((header, name))
        if found is None:
            raise Refusal(
                f"field {header}.{name}",
                "the JSON does not define it as a plain header field",
                "Use plain header instances",
            )
        return found

    def reference(self, node: Any) -> str:
        """C lvalue of a field."""
        header, name = node["value"]
        if name == "$valid$":
            return self.context.layout.valid(header)
        if (header, name) in self.context.locals and self.context.action is not None:
            return local_mark(local_name(header, name))
        return self._storage(node).reference

    def bytes_of(self, node: Any) -> str | None:
        """C expression of the bytes of a field or parameter wider than 64 bits, else None."""
        node = unwrap(node)
        width = self.width_of(node)
        if width is None or width <= 64:
            return None
        return self.reference(node) if node["type"] == "field" else f"a->p{node['value']}"

    def _leaf(self, node: Any) -> Value:
        match node.get("type"):
            case "hexstr":
                value = parse_hex(node["value"])
                return Value(constant(value), value, value)
            case "bool":
                return Value("true" if node["value"] else "false", 0, 1, True)
            case "field" if node["value"][1] == "$valid$":
                return Value(f"(int32_t){self.reference(node)}", 0, 1)
            case "field":
                field = self._storage(node).field
                return self._load(self.reference(node), field.width, field.is_signed)
            case "local" | "runtime_data":
                width = self.width_of(node)
                assert width is not None
                return self._load(f"a->p{node['value']}", width, False)
            case other:
                raise Refusal(
                    f"operand of type '{other}'",
                    "this kind of operand is not supported",
                    "Use plain header instances instead of stacks and unions",
                )

    def _load(self, reference: str, width: int, is_signed: bool) -> Value:
        if width > 64:
            raise Refusal(
                f"arithmetic on a field of {width} bits",
                "wide fields can be assigned, matched and compared for equality only",
                "Split it into fields of 64 bits or less",
            )
        low, high = (
            (-(1 << width - 1), (1 << width - 1) - 1) if is_signed else (0, (1 << width) - 1)
        )
        return Value(f"({Value('', low, high).type}){reference}", low, high)

    # ---- exact values ----

    def condition(self, node: Any) -> str:
        """C truth value of an expression."""
        value = self.exact(node)
        return value.code if value.is_bool else f"({value.code}) != 0"

    def exact(self, node: Any) -> Value:
        """Code and range of the exact value."""
        node = unwrap(node)
        if "op" not in node:
            return self._leaf(node)
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

    def wide_operand(self, node: Any, width: int) -> str:
        """C expression of the bytes of a wide field, parameter or constant of this width."""
        node = unwrap(node)
        if node.get("type") == "hexstr":
            value = parse_hex(node["value"]) & ((1 << width) - 1)
            return (
                '"' + "".join(f"\\{byte:03o}" for byte in value.to_bytes(width // 8, "big")) + '"'
            )
        found = self.bytes_of(node)
        if found is None or self.width_of(node) != width:
            raise Refusal(
                f"value of {width} bits",
                "wide fields can be assigned, matched and compared for equality only",
                "Split it into fields of 64 bits or less",
            )
        return found

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


def store(reference: str, width: int, is_signed: bool, code: str) -> str:
    """C statement that stores the low bits of an unsigned value."""
    kind = storage_type(width, is_signed)
    size = int("".join(char for char in kind if char.isdigit()))
    if width == size:
        return f"{reference} = ({kind})({code});"
    if is_signed:
        gap = size - width
        wide = f"uint{size}_t"
        shifted = f"({kind})({wide})(({wide})({code}) << {gap})"
        return f"{reference} = ({kind})({shifted} >> {gap});"
    return f"{reference} = ({kind})(({code}) & {unsigned_constant((1 << width) - 1, 'uint64_t')});"


def local_name(header: str, name: str) -> str:
    """C name of a scalar that lives in an action."""
    return f"l_{identifier(name)}"
