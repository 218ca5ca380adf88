# SPDX-FileCopyrightText: 2026 The Switchfold Authors
# SPDX-License-Identifier: Apache-2.0
"""Primitives that ask the replication engine for something, log, or draw random numbers."""

from abc import ABC, abstractmethod
from typing import Any

from ...program.model import parse_hex
from ..c_text import c_string
from ..context import STANDARD, Context, Refusal
from ..expressions.expressions import Expressions
from ..expressions.operands import memory
from ..structures import is_field, unwrap

_SESSION_MASK = 0x7FFF
"""Clone sessions have 15 bits in simple_switch."""


_DROP_FIELDS = ("egress_spec", "mcast_grp")
_ZERO = {"type": "hexstr", "value": "0x0"}


class Requests(ABC):
    """Part of Primitives."""

    context: Context
    expressions: Expressions

    @abstractmethod
    def assign(self, target: Any, value: Any) -> str:
        """Assign an expression to a field."""

    # ---- copies and further passes ----

    def _op_clone_ingress_pkt_to_egress(self, session: Any, fields: Any) -> str:
        number = self.expressions.low_bits(session, 32)
        text = self.expressions.low_bits(fields, 32)
        return (
            f"p->clone_session = (uint32_t)({number} & {_SESSION_MASK}) + 1; "
            f"p->clone_fields = {text};"
        )

    _op_clone_egress_pkt_to_egress = _op_clone_ingress_pkt_to_egress

    def _op_resubmit(self, fields: Any) -> str:
        return f"p->resubmit_fields = {self.expressions.low_bits(fields, 32)} + 1;"

    def _op_recirculate(self, fields: Any) -> str:
        return f"p->recirculate_fields = {self.expressions.low_bits(fields, 32)} + 1;"

    def _op_generate_digest(self, _receiver: Any, learn_list: Any) -> str:
        return f"p->digest_list = {self.expressions.low_bits(learn_list, 32)};"

    def _op_truncate(self, length: Any) -> str:
        return (
            f"{{ const uint32_t length = {self.expressions.low_bits(length, 32)};\n"
            "if (p->truncate_bytes - 1 > length) p->truncate_bytes = length + 1; }"
        )

    # ---- random numbers ----

    def _op_modify_field_rng_uniform(self, target: Any, low: Any, high: Any) -> str:
        # Of 64 bits, and into any field, as in simple_switch.
        stored = self.assign(target, memory("drawn", 64))
        return (
            f"{{ const uint64_t low = {self.expressions.low_bits(low, 64)};\n"
            f"const uint64_t high = {self.expressions.low_bits(high, 64)};\n"
            "if (low <= high) {\n"
            "const uint64_t drawn = random_between(&s->random, low, high);\n"
            f"{stored} }} }}"
        )

    # ---- messages ----

    def _op_log_msg(self, text: Any, values: Any = None) -> str:
        # p4c writes {} for no values.
        arguments: list[Any] = values["value"] or [] if values is not None else []
        pieces, count = _split(text["value"])
        if count != len(arguments):
            raise Refusal(
                f"log_msg {text['value']!r}",
                f"it has {count} places for {len(arguments)} values",
                "Write one {} for each value",
            )
        lines = ["if (s->log != NULL) {", "message_t message = {.bytes = 0};"]
        for index, piece in enumerate(pieces):
            if piece:
                lines.append(_text(piece))
            if index < len(arguments):
                lines.append(self._logged(arguments[index]))
        lines += ["s->log(s->log_context, message.text, message.bytes);", "}"]
        return "\n".join(lines)

    def _logged(self, node: Any) -> str:
        node = unwrap(node)
        if node.get("type") == "hexstr":
            return _text(str(parse_hex(node["value"])))
        octets = self.expressions.bytes_of(node)
        if octets is not None:
            width = self.expressions.width_of(node)
            assert width is not None
            is_signed = is_field(node) and self.expressions.field(node).field.is_signed
            return (
                f"message_bytes(&message, {octets}, {width}, {'true' if is_signed else 'false'});"
            )
        return f"message_number(&message, {self.expressions.exact(node).code});"

    def _op_assert(self, condition: Any) -> str:
        return self._claim("assert", condition)

    def _op_assume(self, condition: Any) -> str:
        return self._claim("assume", condition)

    def _claim(self, name: str, condition: Any) -> str:
        fate = self.give_up(f"{name} failed")
        return f"if (!({self.expressions.condition(condition)})) {{ {fate} }}"

    def give_up(self, why: str) -> str:
        """C text that drops the packet, ends the control and says why."""
        action = self.context.action
        place = action.source if action is not None else "parser"
        text = f"{why} in {place}".encode()
        return (
            f"if (s->log != NULL) s->log(s->log_context, {c_string(text)}, {len(text)});\n"
            f"{self._op_mark_to_drop()} p->exited = 1;"
        )

    def _op_mark_to_drop(self, header: Any = None) -> str:
        name = header["value"] if header is not None else STANDARD
        if name != STANDARD:
            # p4c's copy of it, where a function has standard_metadata as a parameter.
            target, group = ({"type": "field", "value": [name, field]} for field in _DROP_FIELDS)
            drop_port = self.assign(target, memory("s->drop_port", 32))
            return f"{drop_port} {self.assign(group, _ZERO)}"
        text = f"{self.context.standard('egress_spec')} = (uint16_t)s->drop_port;"
        if self.context.has_standard("mcast_grp"):
            text += f" {self.context.standard('mcast_grp')} = 0;"
        return text

    _op_drop = _op_mark_to_drop


def _text(text: str) -> str:
    """C statement that adds constant text to a message."""
    data = text.encode()
    return f"message_text(&message, {c_string(data)}, {len(data)});"


def _split(text: str) -> tuple[list[str], int]:
    """Text between the places `{...}` of a format, and how many places there are.

    A backslash before a brace makes it an ordinary character.
    """
    pieces = [""]
    at = 0
    while at < len(text):
        char = text[at]
        if char == "\\" and text[at + 1 : at + 2] in ("{", "}"):
            pieces[-1] += text[at + 1]
            at += 2
        elif char == "{" and "}" in text[at:]:
            pieces.append("")
            at = text.index("}", at) + 1
        else:
            pieces[-1] += char
            at += 1
    return pieces, len(pieces) - 1
