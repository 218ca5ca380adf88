# SPDX-FileCopyrightText: 2026 The Switchfold Authors
# SPDX-License-Identifier: Apache-2.0
"""Random frames that follow the parser graph: they hold what states extract and selects look for.

A walk goes from the first state along random transitions. Fields are random, except that the fields
a transition selects on are set so that it is taken. Frames also hold what the parser does not
expect: trailing bytes, flipped bits and, in hostile cases, frames cut short and pure noise.
"""

from __future__ import annotations

import random
from dataclasses import dataclass, field

from differential.program_layout import HeaderLayout, Json, ProgramLayout

STATES_MAX = 40
FRAME_BYTES_MAX = 1400
VARBIT_BITS_MAX = 320
INDICES = 16
"""Nearly all fields that index an array are below this: beyond an array, BMv2 is undefined."""


@dataclass
class _Extracted:
    header: str
    layout: HeaderLayout
    values: dict[str, int]
    widths: dict[str, int]

    def bits(self) -> str:
        return "".join(
            format(self.values[name], f"0{self.widths[name]}b")
            for name, _ in self.layout.fields
            if self.widths[name]
        )


@dataclass
class Walk:
    """One path through the parser."""

    headers: list[_Extracted] = field(default_factory=list[_Extracted])
    ahead: str = ""
    """Bits that a lookahead selects on; the bits extracted next begin with them."""

    def last(self, header: str) -> _Extracted | None:
        return next((item for item in reversed(self.headers) if item.header == header), None)


class PacketGenerator:
    """Frames for one case; `seen` holds the values that fields had, for table entries."""

    def __init__(self, layout: ProgramLayout, rng: random.Random) -> None:
        self._layout = layout
        self._rng = rng
        self._is_hostile = rng.random() < 0.4
        self.seen: dict[tuple[str, str], list[int]] = {}

    def frame(self) -> bytes:
        """Return a random frame of at least one byte."""
        rng = self._rng
        if self._is_hostile and rng.random() < 0.08:
            return rng.randbytes(rng.randint(1, 100))
        walk = self._walk()
        bits = "".join(item.bits() for item in walk.headers) + walk.ahead
        bits += "0" * (-len(bits) % 8)
        frame = bytearray(int(bits or "0", 2).to_bytes(len(bits) // 8, "big"))
        frame += rng.randbytes(rng.choice((0, 0, 1, rng.randint(2, 60), rng.randint(2, 300))))
        if self._is_hostile and rng.random() < 0.2 and len(frame) > 1:
            del frame[rng.randint(1, len(frame) - 1) :]
        if rng.random() < 0.12 and frame:
            at = rng.randrange(len(frame))
            frame[at] ^= 1 << rng.randrange(8)
        for item in walk.headers:
            for name, value in item.values.items():
                self.seen.setdefault((item.header, name), []).append(value)
        return bytes(frame[:FRAME_BYTES_MAX]) or rng.randbytes(1)

    def _walk(self) -> Walk:
        walk = Walk()
        name = self._layout.init_state
        for _ in range(STATES_MAX):
            if name is None:
                break
            state = self._layout.states[name]
            for operation in state["parser_ops"]:
                self._operate(walk, operation)
            name = self._leave(walk, state)
        return walk

    def _operate(self, walk: Walk, operation: Json) -> None:
        match operation["op"]:
            case "extract":
                header = self._extracted_header(walk, operation["parameters"][0])
                if header is not None:
                    self._extract(walk, header, None)
            case "extract_VL":
                header = self._extracted_header(walk, operation["parameters"][0])
                if header is not None:
                    self._extract(walk, header, operation["parameters"][1])
            case "advance":
                bits = self._evaluate(walk, operation["parameters"][0])
                if bits is not None and 0 < bits <= 512:
                    layout = HeaderLayout((("advanced", bits),))
                    self._add(walk, "", layout, None)
            case _:
                pass

    def _extracted_header(self, walk: Walk, parameter: Json) -> str | None:
        value = parameter["value"]
        if parameter["type"] == "regular":
            return value
        if parameter["type"] == "stack":
            members = self._layout.stacks[value]
        elif parameter["type"] == "union_stack":
            members = [union[value[1]] for union in self._layout.union_stacks[value[0]]]
        else:
            return None
        used = {item.header for item in walk.headers}
        return next((member for member in members if member not in used), members[-1])

    def _extract(self, walk: Walk, header: str, length: Json | None) -> None:
        layout = self._layout.headers[header]
        varbits = [name for name, width in layout.fields if width is None]
        for _ in range(20):
            self._add(walk, header, layout, length)
            extracted = walk.headers[-1]
            if all(extracted.widths[name] <= VARBIT_BITS_MAX for name in varbits):
                break
            walk.headers.pop()

    def _add(self, walk: Walk, header: str, layout: HeaderLayout, length: Json | None) -> None:
        rng = self._rng
        widths = {name: width or 0 for name, width in layout.fields}
        values = {name: self._value(header, name, width) for name, width in widths.items()}
        extracted = _Extracted(header, layout, values, widths)
        ahead, walk.ahead = walk.ahead, ""
        if ahead:
            bits = ahead + extracted.bits()[len(ahead) :]
            at = 0
            for name, _ in layout.fields:
                if widths[name]:
                    values[name] = int(bits[at : at + widths[name]], 2)
                at += widths[name]
        walk.headers.append(extracted)
        varying = next((name for name, width in layout.fields if width is None), None)
        if varying is not None:
            bits = self._evaluate(walk, length) if length is not None else None
            if bits is None or not 0 <= bits <= 8 * FRAME_BYTES_MAX:
                bits = 8 * rng.randint(0, 5)
            widths[varying] = bits
            values[varying] = rng.getrandbits(bits) if bits else 0

    def _value(self, header: str, name: str, width: int) -> int:  # noqa: PLR0911 - one case per kind of packet
        if width == 0:
            return 0
        rng = self._rng
        draw = rng.random()
        if (header, name) in self._layout.indices and draw < 0.98:
            return rng.randrange(min(1 << width, INDICES))
        old = self.seen.get((header, name))
        if old and draw < 0.3:
            return rng.choice(old)
        if draw < 0.45 and self._layout.constants:
            return rng.choice(self._layout.constants) & ((1 << width) - 1)
        if draw < 0.65:
            return rng.randrange(min(1 << width, 8))
        if draw < 0.72:
            return (1 << width) - 1 - rng.randrange(min(1 << width, 3))
        return rng.getrandbits(width)

    def _leave(self, walk: Walk, state: Json) -> str | None:
        transitions = state["transitions"]
        if not transitions:
            return None
        chosen = self._rng.choice(transitions)
        if chosen["type"] == "hexstr" and state["transition_key"]:
            self._ask(walk, state["transition_key"], chosen)
        return chosen["next_state"]

    def _ask(self, walk: Walk, key: list[Json], transition: Json) -> None:
        """Set the selected bits so that a transition matches."""
        widths = [self._key_width(walk, part) for part in key]
        if None in widths:
            return
        sizes = [(width or 0) + -(width or 0) % 8 for width in widths]
        value = int(transition["value"], 16)
        mask = int(transition["mask"], 16) if transition["mask"] else -1
        rest = sum(sizes)
        for part, width, size in zip(key, widths, sizes, strict=True):
            rest -= size
            ones = (1 << (width or 0)) - 1
            self._set(walk, part, width or 0, value >> rest & ones, mask >> rest & ones)

    def _key_width(self, walk: Walk, part: Json) -> int | None:
        if part["type"] == "lookahead":
            return part["value"][1]
        target = self._selected(walk, part)
        if target is not None:
            return target[0].widths[target[1]]
        if part["type"] == "field" and part["value"][0] in self._layout.headers:
            header, name = part["value"]
            return dict(self._layout.headers[header].fields).get(name)
        return None

    def _selected(self, walk: Walk, part: Json) -> tuple[_Extracted, str] | None:
        if part["type"] == "field":
            extracted = walk.last(part["value"][0])
        elif part["type"] == "stack_field":
            members = self._layout.stacks.get(part["value"][0], [])
            held = [item for item in walk.headers if item.header in members]
            extracted = held[-1] if held else None
        else:
            return None
        name = part["value"][1]
        return (extracted, name) if extracted is not None and name in extracted.values else None

    def _set(self, walk: Walk, part: Json, width: int, value: int, mask: int) -> None:
        if part["type"] == "lookahead":
            skipped = part["value"][0]
            noise = format(self._rng.getrandbits(width), f"0{width}b")
            asked = (int(noise, 2) & ~mask) | (value & mask)
            ahead = walk.ahead.ljust(skipped + width, "0")
            walk.ahead = ahead[:skipped] + format(asked, f"0{width}b") + ahead[skipped + width :]
            return
        target = self._selected(walk, part)
        if target is not None:
            extracted, name = target
            extracted.values[name] = (extracted.values[name] & ~mask) | (value & mask)

    def _evaluate(self, walk: Walk, node: Json | None) -> int | None:  # noqa: PLR0911, PLR0912 - one case per kind of packet
        """Return an expression's value over extracted fields; None if it uses anything else."""
        if node is None:
            return None
        kind, value = node["type"], node["value"]
        if kind == "hexstr":
            return int(value, 16)
        if kind == "field":
            extracted = walk.last(value[0])
            return extracted.values.get(value[1]) if extracted is not None else None
        if kind != "expression":
            return None
        if "op" not in value:
            return self._evaluate(walk, value)
        right = self._evaluate(walk, value["right"])
        left = self._evaluate(walk, value["left"]) if value["left"] is not None else 0
        if left is None or right is None:
            return None
        match value["op"]:
            case "+":
                return left + right
            case "-":
                return left - right
            case "*":
                return left * right
            case "&":
                return left & right
            case "|":
                return left | right
            case "<<":
                return left << min(right, 64)
            case ">>":
                return left >> min(right, 2048)
            case _:
                return None
