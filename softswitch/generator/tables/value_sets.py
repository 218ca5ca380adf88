# SPDX-FileCopyrightText: 2026 The Switchfold Authors
# SPDX-License-Identifier: Apache-2.0
"""Value sets: what the control plane lets a parser state select on."""

from ...program.model import ProgramValueSet
from ..c_text import comment
from ..context import Context, Refusal


class ValueSetWriter:
    """Writes the value sets of a program and the tests on them."""

    def __init__(self, context: Context) -> None:
        self.context = context

    def _find(self, name: str) -> ProgramValueSet:
        for item in self.context.program.value_sets:
            if item.name == name:
                return item
        raise Refusal(f"value set {name}", "the JSON does not define it", "Compile again")

    def emit_members(self) -> str:
        """Members of struct pipeline."""
        count = len(self.context.program.value_sets)
        return f"value_set_t value_sets[{count}];" if count else ""

    def emit_functions(self) -> str:
        """C functions that find a value set and that free them all."""
        text = ["static value_set_t *p4_value_set(pipeline_t *s, uint32_t position,"]
        text += ["uint32_t *bytes, uint32_t *most) {"]
        text += ["(void)s; (void)bytes; (void)most;", "switch (position) {"]
        for item in self.context.program.value_sets:
            text.append(
                f"case {item.position}: *bytes = {item.member_bytes}; *most = {item.max_size}; "
                f"return &s->value_sets[{item.position}]; {comment(item.name)}"
            )
        text += ["default: return NULL;", "}", "}", ""]
        text += ["static void p4_free_value_sets(pipeline_t *s) {", "(void)s;"]
        text += [
            f"free(s->value_sets[{i.position}].members);" for i in self.context.program.value_sets
        ]
        return "\n".join([*text, "}", ""])

    def test(self, name: str, keys: list[tuple[str, int]]) -> str:
        """C truth value: the key is one of the members. Keys are C variables with their bits."""
        found = self._find(name)
        if tuple(width for _, width in keys) != found.widths:
            raise Refusal(
                f"value set {name}",
                "states select on it with keys of different widths",
                "Use a value set of its own in each select",
            )
        octets = [octet for key, width in keys for octet in _octets(key, (width + 7) // 8)]
        key = f"(const uint8_t[]){{{', '.join(octets)}}}"
        return f"value_set_holds(&s->value_sets[{found.position}], {key}, {found.member_bytes})"


def _octets(key: str, size: int) -> list[str]:
    """C expressions of a key's bytes; one of more than 64 bits is an array of them."""
    if size > 8:
        return [f"{key}[{index}]" for index in range(size)]
    return [f"(uint8_t)({key} >> {8 * index})" for index in reversed(range(size))]
