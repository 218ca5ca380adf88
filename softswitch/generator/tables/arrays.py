# SPDX-FileCopyrightText: 2026 The Switchfold Authors
# SPDX-License-Identifier: Apache-2.0
"""Counter and register arrays: memory and access from the control plane."""

from ...program.model import Counter
from ..c_text import comment
from ..context import Context
from .registers import register_blocks


class ArrayWriter:
    """Writes the arrays of a program."""

    def __init__(self, context: Context) -> None:
        self.context = context
        self.counters: list[Counter] = [
            item for item in context.program.counters if item.table is None
        ]
        self.meters = [item for item in context.program.meters if item.table is None]
        self.blocks = register_blocks(context.program)

    def emit_members(self) -> str:
        """Members of struct pipeline."""
        text = [f"counter_cell_t *c{item.position}; {comment(item.name)}" for item in self.counters]
        text += [f"meter_cell_t *m{item.position}; {comment(item.name)}" for item in self.meters]
        for block in self.blocks:
            first, last = block.registers[0], block.registers[-1]
            names = first.name if first is last else f"{first.name} to {last.name}"
            text.append(f"{block.declare()}; {comment(names)}")
        return "\n".join(text)

    def emit_functions(self) -> str:
        """C functions that allocate, free and reach the arrays."""
        text = ["static bool p4_allocate_arrays(pipeline_t *s) {", "(void)s;"]
        sizes = [(f"c{item.position}", item.size) for item in self.counters]
        sizes += [(f"m{item.position}", item.size) for item in self.meters]
        sizes += [(block.member, block.elements) for block in self.blocks]
        for member, size in sizes:
            text.append(f"s->{member} = pages_reserve({_bytes(member, size)});")
            text.append(f"if (s->{member} == NULL) return false;")
        text += ["return true;", "}", "", "static void p4_free_arrays(pipeline_t *s) {", "(void)s;"]
        text += [f"pages_release(s->{member}, {_bytes(member, size)});" for member, size in sizes]
        text += ["}", "", *self._counter(), *self._meter(), *self._register()]
        return "\n".join(text)

    def _counter(self) -> list[str]:
        text = [
            "static int p4_counter(pipeline_t *s, uint32_t array, uint32_t index,",
            "                      counter_cell_t **cell) {",
            "(void)s; (void)index; (void)cell;",
            "switch (array) {",
        ]
        for item in self.counters:
            text.append(
                f"case {item.position}: if (index >= {item.size}) return P_NOT_FOUND; "
                f"*cell = &s->c{item.position}[index]; return P_OK;"
            )
        return [*text, "default: return P_BAD_ARGUMENT;", "}", "}", ""]

    def _meter(self) -> list[str]:
        text = [
            "static int p4_meter(pipeline_t *s, uint32_t array, uint32_t index,",
            "                    meter_cell_t **cell) {",
            "(void)s; (void)index; (void)cell;",
            "switch (array) {",
        ]
        for item in self.meters:
            text.append(
                f"case {item.position}: if (index >= {item.size}) return P_NOT_FOUND; "
                f"*cell = &s->m{item.position}[index]; return P_OK;"
            )
        return [*text, "default: return P_BAD_ARGUMENT;", "}", "}", ""]

    def _register(self) -> list[str]:
        widest = max((item.width for item in self.context.program.registers), default=8)
        text = [
            f"#define MAX_REGISTER_BYTES {(widest + 7) // 8}\n",
            "// Bytes of an element, or a P_ code; data NULL: only how many. Bytes are big-endian.",
            "static int p4_register(pipeline_t *s, uint32_t array, uint32_t index,",
            "                       uint8_t *data, bool is_write) {",
            "(void)s; (void)index; (void)data; (void)is_write;",
            "switch (array) {",
        ]
        for block in self.blocks:
            for lane, item in enumerate(block.registers):
                element = block.element(f"s->{block.member}", "(size_t)index", str(lane))
                cell = (
                    f"BYTES_CELL({element}, {item.width});"
                    if item.width > 64
                    else f"NUMBER_CELL({element}, {block.type}, {item.width});"
                )
                limit = f"if (index >= {item.size}) return P_NOT_FOUND;"
                text.append(f"case {item.position}: {limit} {cell}")
        return [*text, "default: return P_BAD_ARGUMENT;", "}", "}", ""]


def _bytes(member: str, size: int) -> str:
    return f"(size_t){max(size, 1)} * sizeof *s->{member}"
