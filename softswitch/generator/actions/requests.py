# SPDX-FileCopyrightText: 2026 The Switchfold Authors
# SPDX-License-Identifier: Apache-2.0
"""Primitives that make requests to the replication engine, log, or draw random numbers."""

from abc import ABC, abstractmethod

from ..c_text import c_string
from ..context import Context, Refusal
from ..expressions.expressions import Expressions
from ..ir.operands import Constant, Expression, FieldOperand, Local, Memory, Target

_SESSION_MASK = 0x7FFF
"""Clone sessions have 15 bits in simple_switch."""


class Requests(ABC):
    """Part of Primitives."""

    context: Context
    expressions: Expressions

    @abstractmethod
    def assign(self, target: Target, value: Expression) -> str:
        """Assign an expression to a field."""

    # ---- clones and further passes ----

    def _op_clone_ingress_pkt_to_egress(self, session: Expression, fields: Expression) -> str:
        number = self.expressions.low_bits(session, 32)
        text = self.expressions.low_bits(fields, 32)
        return (
            f"p->clone_session = (uint32_t)({number} & {_SESSION_MASK}) + 1; "
            f"p->clone_fields = {text};"
        )

    _op_clone_egress_pkt_to_egress = _op_clone_ingress_pkt_to_egress

    def _op_resubmit(self, fields: Expression) -> str:
        return f"p->resubmit_fields = {self.expressions.low_bits(fields, 32)} + 1;"

    def _op_recirculate(self, fields: Expression) -> str:
        return f"p->recirculate_fields = {self.expressions.low_bits(fields, 32)} + 1;"

    def _op_generate_digest(self, _receiver: str, learn_list: Expression) -> str:
        return f"p->digest_list = {self.expressions.low_bits(learn_list, 32)};"

    def _op_truncate(self, length: Expression) -> str:
        return (
            f"{{ const uint32_t length = {self.expressions.low_bits(length, 32)};\n"
            "if (p->truncate_bytes - 1 > length) p->truncate_bytes = length + 1; }"
        )

    # ---- random numbers ----

    def _op_modify_field_rng_uniform(
        self, target: Target, low: Expression, high: Expression
    ) -> str:
        # As in simple_switch, numbers have 64 bits and go into any field.
        stored = self.assign(target, Memory("drawn", 64))
        return (
            f"{{ const uint64_t low = {self.expressions.low_bits(low, 64)};\n"
            f"const uint64_t high = {self.expressions.low_bits(high, 64)};\n"
            "if (low <= high) {\n"
            "const uint64_t drawn = random_between(&s->random, low, high);\n"
            f"{stored} }} }}"
        )

    # ---- messages ----

    def _op_log_msg(self, text: str, arguments: tuple[Expression, ...]) -> str:
        pieces, count = _split(text)
        if count != len(arguments):
            raise Refusal(
                f"log_msg {text!r}",
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

    def _logged(self, node: Expression) -> str:
        if isinstance(node, Constant):
            return _text(str(node.value))
        octets = self.expressions.bytes_of(node)
        if octets is not None:
            width = self.expressions.width_of(node)
            assert width is not None
            is_signed = isinstance(node, FieldOperand | Local) and node.is_signed
            return (
                f"message_bytes(&message, {octets}, {width}, {'true' if is_signed else 'false'});"
            )
        return f"message_number(&message, {self.expressions.exact(node).code});"

    def _op_assert(self, condition: Expression) -> str:
        return self._claim("assert", condition)

    def _op_assume(self, condition: Expression) -> str:
        return self._claim("assume", condition)

    def _claim(self, name: str, condition: Expression) -> str:
        fate = self.give_up(f"{name} failed")
        return f"if (!({self.expressions.condition(condition)})) {{ {fate} }}"

    def give_up(self, why: str) -> str:
        """C text that drops the packet, ends the control and logs the reason."""
        action = self.context.action
        place = action.source if action is not None else "parser"
        text = f"{why} in {place}".encode()
        return (
            f"if (s->log != NULL) s->log(s->log_context, {c_string(text)}, {len(text)});\n"
            f"{self._op_mark_to_drop()} p->exited = 1;"
        )

    def _op_mark_to_drop(self) -> str:
        text = f"{self.context.standard('egress_spec')} = (uint16_t)s->drop_port;"
        if self.context.has_standard("mcast_grp"):
            text += f" {self.context.standard('mcast_grp')} = 0;"
        return text

    def _op_mark_copy_to_drop(self, egress_spec: Target, mcast_grp: Target) -> str:
        drop_port = self.assign(egress_spec, Memory("s->drop_port", 32))
        return f"{drop_port} {self.assign(mcast_grp, Constant(0))}"


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
