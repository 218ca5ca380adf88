# SPDX-FileCopyrightText: 2026 The Switchfold Authors
# SPDX-License-Identifier: Apache-2.0
"""The program's checksums: verified after the parser, updated before the deparser."""

from ..program.model import Json, source_of
from .c_text import comment
from .calculations import Calculations
from .context import Context
from .expressions.expressions import Expressions
from .expressions.numbers import store
from .ir.lowering import Lowering


class ChecksumWriter:
    """Writes the checksums of a program, in the order of the JSON."""

    def __init__(self, context: Context) -> None:
        self.context = context
        self.calculations = Calculations(context)
        self.lowering = Lowering(context)
        self.expressions = Expressions(context)

    def emit(self) -> str:
        """C functions p4_verify_checksums and p4_update_checksums."""
        return f"{self._all(True)}\n{self._all(False)}"

    def _all(self, is_verify: bool) -> str:
        name = "p4_verify_checksums" if is_verify else "p4_update_checksums"
        text = [f"static void {name}(phv_t *p) {{", "(void)p;"]
        if self.context.program.json.get("checksums", []):
            text += self.context.point("checksums", name, {})
        for checksum in self.context.program.json.get("checksums", []):
            if not checksum.get("verify" if is_verify else "update", True):
                continue
            place = source_of(checksum, f"checksum {checksum['name']}")
            with self.context.refusals(place):
                text.append(comment(place))
                text.append(self._checksum(checksum, is_verify))
                kind = "verify" if is_verify else "update"
                text += self.context.point(kind, checksum["name"], checksum)
        return "\n".join([*text, "}", ""])

    def _checksum(self, checksum: Json, is_verify: bool) -> str:
        header, name = checksum["target"]
        storage = self.context.layout.fields[header, name]
        guards: list[str] = []
        if (condition := checksum.get("if_cond")) is not None:
            guards.append(self.expressions.condition(self.lowering.expression(condition)))
        if is_verify and not storage.header.is_metadata:
            guards.append(f"{self.context.layout.valid(header)} != 0")
        body = f"const uint64_t computed = {self.calculations.call(checksum['calculation'])};"
        if is_verify:
            target = self.lowering.variable({"type": "field", "value": checksum["target"]})
            held = self.expressions.low_bits(target, 64)
            body += f"\nif (computed != {held}) {self.context.standard('checksum_error')} = 1;"
        else:
            width, is_signed = storage.field.width, storage.field.is_signed
            body += f"\n{store(storage.reference, width, is_signed, 'computed')}"
        test = " && ".join(f"({guard})" for guard in guards) or "true"
        return f"if ({test}) {{\n{body}\n}}"
