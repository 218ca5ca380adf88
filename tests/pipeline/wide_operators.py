# SPDX-FileCopyrightText: 2026 The Switchfold Authors
# SPDX-License-Identifier: Apache-2.0
"""Writes the P4 programs of test_wide_operators: every operator at many widths, and its oracle.

`python tests/pipeline/wide_operators.py` renews programs/wide_operators_*.p4 and compiles them (the
JSON without white space: it is long). A packet is one byte, the number of the case, then the
operands; the results come back in place of the operands.
"""

import json
import subprocess
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

PROGRAMS = Path(__file__).with_name("programs")
WIDTHS = {"narrow": (1, 7, 8, 31, 33, 63, 64), "medium": (65, 127, 128, 129), "long": (255, 256),
          "longest": (1000, 2048)}  # fmt: skip
MAX_WIDTH = 2048
DISTANCE_BITS = 8
"""For BMv2, p4c accepts no longer shift distance."""

_METADATA = "inout metadata_t md, inout standard_metadata_t sm"


@dataclass(frozen=True)
class Result:
    """One result: P4 expression over a, b, c (a flag) and d (a distance), and what it must be."""

    name: str
    width: int
    expression: str
    oracle: Callable[[int, int, int, int], int]
    is_signed: bool = False


@dataclass(frozen=True)
class Case:
    """All operators at one width."""

    number: int
    width: int
    is_signed: bool

    @property
    def name(self) -> str:
        return f"{'int' if self.is_signed else 'bit'}{self.width}"

    @property
    def operand(self) -> str:
        return f"{'int' if self.is_signed else 'bit'}<{self.width}>"

    @property
    def padding(self) -> list[int]:
        """Widths of the fields after the operands.

        They fill bytes and make room for the results: BMv2 lets a packet grow by 512 bytes only.
        """
        used = 2 * self.width + 1 + DISTANCE_BITS
        bits = 8 + -used % 8
        bits += max(0, (sum(item.width for item in self.results()) - used - 3200) // 8 * 8)
        return [MAX_WIDTH] * (bits // MAX_WIDTH) + [bits % MAX_WIDTH or 8]

    def packet(self, a: int, b: int, c: int, d: int) -> bytes:
        """Return a packet with raw operands."""
        total = self.number
        for value, width in ((a, self.width), (c, 1), (d, DISTANCE_BITS), (b, self.width)):
            total = total << width | value
        padding = sum(self.padding)
        bits = 8 + 2 * self.width + 1 + DISTANCE_BITS + padding
        return (total << padding).to_bytes((bits + 7) // 8, "big")

    def read(self, raw: int) -> int:
        """Return an operand of the case's type from its bits."""
        if self.is_signed and raw >> (self.width - 1):
            return raw - (1 << self.width)
        return raw

    def results(self) -> list[Result]:
        return [*_common(self), *(_signed(self) if self.is_signed else _unsigned(self))]


def cases(name: str) -> list[Case]:
    """Return the cases of one program; BMv2 has no int<1>."""
    found: list[Case] = []
    for width in WIDTHS[name]:
        for is_signed in (False, True):
            if not (is_signed and width == 1):
                found.append(Case(len(found), width, is_signed))
    return found


def clamp(value: int, case: Case) -> int:
    """Saturate at the limits of the case's type."""
    if case.is_signed:
        return max(-(1 << case.width - 1), min((1 << case.width - 1) - 1, value))
    return max(0, min((1 << case.width) - 1, value))


def _common(case: Case) -> list[Result]:
    width, kind = case.width, case.operand
    half = min(width // 2, 255)
    longer = width + 9 if width < 2000 else width

    def result(name: str, expression: str, oracle: Callable[[int, int, int, int], int]) -> Result:
        return Result(name, width, expression, oracle, case.is_signed)

    flags = ["a == b", "a != b", "a < b", "a <= b", "a > b", "a >= b", "a + b > b", "c == 1"]
    own = Result("flags", 8, " ++ ".join(f"({flag} ? 1w1 : 1w0)" for flag in flags), _Flags(case))
    return [
        result("add", "a + b", lambda a, b, c, d: a + b),
        result("subtract", "a - b", lambda a, b, c, d: a - b),
        result("multiply", "a * b", lambda a, b, c, d: a * b),
        result("mixed", "a * b - (b + a) * a", lambda a, b, c, d: a * b - (b + a) * a),
        result("saturated_add", "a |+| b", lambda a, b, c, d: clamp(a + b, case)),
        result("saturated_subtract", "a |-| b", lambda a, b, c, d: clamp(a - b, case)),
        result("both", "a & b", lambda a, b, c, d: a & b),
        result("either", "a | b", lambda a, b, c, d: a | b),
        result("differ", "a ^ b", lambda a, b, c, d: a ^ b),
        result("inverted", "~a", lambda a, b, c, d: ~a),
        result("negated", "-a", lambda a, b, c, d: -a),
        result("left", "a << d", lambda a, b, c, d: a << d),
        result("right", "a >> d", lambda a, b, c, d: a >> d),
        result("left_constant", f"a << {half}", lambda a, b, c, d: a << half),
        result("right_constant", f"a >> {half}", lambda a, b, c, d: a >> half),
        result(
            "sum_right", "(a + b) >> d", lambda a, b, c, d: case.read((a + b) & ones(width)) >> d
        ),
        result("chosen", "c == 1 ? a : b", lambda a, b, c, d: a if c else b),
        result("larger", "a > b ? a : b", lambda a, b, c, d: max(a, b)),
        result("flag", f"({kind})(bit<{width}>)c", lambda a, b, c, d: c),
        Result(
            "widened",
            longer,
            f"(bit<{longer}>)({'int' if case.is_signed else 'bit'}<{longer}>)a",
            lambda a, b, c, d: a,
        ),
        own,
    ]


@dataclass(frozen=True)
class _Flags:
    case: Case

    def __call__(self, a: int, b: int, c: int, d: int) -> int:
        total = self.case.read((a + b) & ones(self.case.width))
        flags = [a == b, a != b, a < b, a <= b, a > b, a >= b, total > b, c == 1]
        return int("".join(str(int(flag)) for flag in flags), 2)


def ones(width: int) -> int:
    """Return a number with all bits of a width set."""
    return (1 << width) - 1


def _unsigned(case: Case) -> list[Result]:
    width = case.width
    high, low = width - 1 - width // 5, width // 3
    size = high - low + 1
    results = [
        Result("slice", size, f"a[{high}:{low}]", lambda a, b, c, d: a >> low),
        Result("sum_slice", size, f"(a + b)[{high}:{low}]",
               lambda a, b, c, d: ((a + b) & ones(width)) >> low),
        Result("top", 1, f"a[{width - 1}:{width - 1}]", lambda a, b, c, d: a >> (width - 1)),
        Result("cast", (width + 1) // 2, f"(bit<{(width + 1) // 2}>)(a ^ b)",
               lambda a, b, c, d: a ^ b),
        Result("as_signed", width, f"(bit<{width}>)((int<{width}>)a >> d)"
               if width > 1 else "a", lambda a, b, c, d: _as_signed(a, width) >> d
               if width > 1 else a),
    ]  # fmt: skip
    if width <= 1000:
        results.append(
            Result(
                "joined",
                2 * width + 1,
                "a ++ c ++ b",
                lambda a, b, c, d: ((a << 1 | c) << width) | b,
            )
        )
    return results


def _as_signed(value: int, width: int) -> int:
    return value - (1 << width) if value >> (width - 1) else value


def _signed(case: Case) -> list[Result]:
    width = case.width
    short = (width + 1) // 2 + 1
    low = -min(5, 1 << width - 1)
    return [
        Result(
            "as_unsigned", width, f"(bit<{width}>)a >> d", lambda a, b, c, d: (a & ones(width)) >> d
        ),
        Result("narrowed", short, f"(bit<{short}>)(bit<{width}>)(a - b)", lambda a, b, c, d: a - b),
        Result("below", 1, f"(a < {low} ? 1w1 : 1w0)", lambda a, b, c, d: int(a < low)),
    ]


def expected(case: Case, a: int, b: int, c: int, d: int) -> bytes:
    """Return the bytes of the result header; a and b are numbers of the case's type."""
    total = bits = 0
    for result in case.results():
        total = total << result.width | result.oracle(a, b, c, d) & ones(result.width)
        bits += result.width
    return (total << -bits % 8).to_bytes((bits + 7) // 8, "big")


def write(name: str) -> str:
    """Return the text of one P4 program."""
    lines = [
        "// SPDX-FileCopyrightText: 2026 The Switchfold Authors",
        "// SPDX-License-Identifier: Apache-2.0",
        "//",
        "// Every operator at several widths; written by tests/pipeline/wide_operators.py.",
        "#include <core.p4>",
        "#include <v1model.p4>",
        "",
        "header case_h { bit<8> number; }",
    ]
    every = cases(name)
    for case in every:
        lines.append(f"header operands_{case.name}_h {{")
        lines.append(f"    {case.operand} a; bit<1> c; bit<{DISTANCE_BITS}> d; {case.operand} b;")
        lines += [f"    bit<{width}> pad{index};" for index, width in enumerate(case.padding)]
        lines += ["}", f"header results_{case.name}_h {{"]
        bits = 0
        for result in case.results():
            kind = "int" if result.is_signed else "bit"
            lines.append(f"    {kind}<{result.width}> {result.name};")
            bits += result.width
        if bits % 8:
            lines.append(f"    bit<{-bits % 8}> pad;")
        lines.append("}")
    members = " ".join(
        f"operands_{c.name}_h {c.name}; results_{c.name}_h to_{c.name};" for c in every
    )
    lines += [
        f"struct headers_t {{ case_h which; {members} }}",
        "struct metadata_t { }",
        "",
        f"parser TheParser(packet_in packet, out headers_t hdr, {_METADATA}) {{",
        "    state start {",
        "        packet.extract(hdr.which);",
        "        transition select(hdr.which.number) {",
    ]
    lines += [f"            {case.number}: {case.name};" for case in every]
    lines += ["            default: accept;", "        }", "    }"]
    for case in every:
        lines.append(
            f"    state {case.name} {{ packet.extract(hdr.{case.name}); transition accept; }}"
        )
    lines += [
        "}",
        "control Verify(inout headers_t hdr, inout metadata_t md) { apply { } }",
        f"control TheIngress(inout headers_t hdr, {_METADATA}) {{",
    ]
    for case in every:
        lines.append(
            f"    action compute_{case.name}(inout operands_{case.name}_h from, "
            f"inout results_{case.name}_h to) {{"
        )
        lines.append(f"        {case.operand} a = from.a; {case.operand} b = from.b;")
        lines.append(f"        bit<1> c = from.c; bit<{DISTANCE_BITS}> d = from.d;")
        lines += [f"        to.{item.name} = {item.expression};" for item in case.results()]
        if sum(item.width for item in case.results()) % 8:
            lines.append("        to.pad = 0;")
        lines.append("    }")
    lines.append("    apply {")
    for case in every:
        lines += [
            f"        if (hdr.{case.name}.isValid()) {{",
            f"            hdr.to_{case.name}.setValid();",
            f"            compute_{case.name}(hdr.{case.name}, hdr.to_{case.name});",
            f"            hdr.{case.name}.setInvalid();",
            "        }",
        ]
    lines += [
        "        sm.egress_spec = 1;",
        "    }",
        "}",
        f"control TheEgress(inout headers_t hdr, {_METADATA}) {{ apply {{ }} }}",
        "control Compute(inout headers_t hdr, inout metadata_t md) { apply { } }",
        "control TheDeparser(packet_out packet, in headers_t hdr) { apply { packet.emit(hdr); } }",
        "V1Switch(TheParser(), Verify(), TheIngress(), TheEgress(), Compute(),",
        "    TheDeparser()) main;",
    ]
    return "\n".join(lines) + "\n"


def main() -> None:
    """Write and compile all programs; needs p4c-bm2-ss on the PATH."""
    for name in WIDTHS:
        path = PROGRAMS / f"wide_operators_{name}.p4"
        path.write_text(write(name), encoding="utf-8")
        outputs = path.with_suffix(".p4info.txtpb"), path.with_suffix(".json")
        command = ["p4c-bm2-ss", "--arch", "v1model", "--p4runtime-files", outputs[0].name]
        subprocess.run([*command, "-o", outputs[1].name, path.name], cwd=PROGRAMS, check=True)
        data = json.loads(outputs[1].read_text(encoding="utf-8"))
        outputs[1].write_text(json.dumps(data, separators=(",", ":")) + "\n", encoding="utf-8")


if __name__ == "__main__":
    main()
