# SPDX-FileCopyrightText: 2026 The Switchfold Authors
# SPDX-License-Identifier: Apache-2.0
"""Tables: shapes, keys, default entries, constant entries and the control operations on them."""

from ...program.model import KeyField, ProgramTable
from ..actions.actions import action_symbol, params_bytes
from ..c_text import c_string, comment, identifier
from ..context import Context, Refusal
from ..expressions.numbers import store
from .profiles import aliases

_KINDS = {
    "exact": "MATCH_EXACT",
    "lpm": "MATCH_LPM",
    "ternary": "MATCH_TERNARY",
    "optional": "MATCH_TERNARY",
    "range": "MATCH_RANGE",
}
_EXTRA_CELLS = {"COUNTED": "counter_cell_t", "TIMED": "idle_cell_t", "METERED": "meter_cell_t"}
MAX_WORDS = 64
ENTRIES_MAX = 1 << 30
"""The limit of runtime/tables/table.h."""


def table_symbol(table: ProgramTable) -> str:
    """C name of a table's lookup-and-apply function."""
    return f"p4_table_{table.position}_{identifier(table.name)}"


def key_words(table: ProgramTable) -> int:
    """64-bit words of a key in memory."""
    return sum((part.width + 63) // 64 for part in table.key)


class TableWriter:
    """Writes the tables of a program."""

    def __init__(self, context: Context) -> None:
        self.context = context
        self.tables = context.program.tables

    def emit_shapes(self) -> str:
        """Constant description of every table and the data of constant entries."""
        text: list[str] = []
        for table in self.tables:
            with self.context.refusals(table.source):
                self._check(table)
                text.append(self._shape(table))
        return "\n".join(text)

    def _check(self, table: ProgramTable) -> None:
        kinds = [part.kind for part in table.key]
        if any(kind not in _KINDS for kind in [*kinds, table.kind]):
            raise Refusal(
                f"match kind of table {table.name}",
                "it is not one of exact, lpm, ternary, range, optional",
                "Use one of those",
            )
        if kinds.count("lpm") > 1:
            raise Refusal(
                f"table {table.name}", "more than one key field is lpm", "Make one of them ternary"
            )
        if key_words(table) > MAX_WORDS:
            raise Refusal(
                f"key of table {table.name}", "it is longer than 64 words", "Match on fewer fields"
            )

    def _shape(self, table: ProgramTable) -> str:
        name = f"table_{table.position}"
        text = [comment(f"{table.name}, {table.source}")]
        fields = ", ".join(f"{{{part.width}, {_KINDS[part.kind]}}}" for part in table.key)
        text.append(
            f"static const key_field_t {name}_fields[] = {{{fields or '{0, MATCH_EXACT}'}}};"
        )
        key_mask = _key_mask(table)
        if key_mask:
            text.append(f"static const uint64_t {name}_key_mask[] = {{{key_mask}}};")
        kinds = [f"{action_symbol(item)}_t" for item in table.actions if item.parameters]
        data = "0" if table.action_profile is None else "sizeof(indirect_t)"
        if table.action_profile is None and kinds:
            members = " ".join(f"{kind} a{index};" for index, kind in enumerate(kinds))
            data = f"sizeof({kinds[0]})" if len(kinds) == 1 else f"sizeof(union {{ {members} }})"
        key_bytes = sum((part.width + 7) // 8 for part in table.key)
        largest = max((params_bytes(item) for item in table.actions), default=0)
        params = largest if table.action_profile is None else 0
        entries = min(max(table.max_size, len(table.entries), 1), ENTRIES_MAX)
        has_masks = "false" if table.kind == "exact" else "true"
        place = f"{name.upper()}_DATA"
        text += [
            "enum {",
            f"{name.upper()}_EXTRAS = {_extras(table)},",
            f"{place} = TABLE_DATA_OFFSET({key_words(table)}u, {has_masks}),",
        ]
        end = f"{place} + TABLE_ROUND({data})"
        for extra, cell in _EXTRA_CELLS.items():
            text.append(f"{name.upper()}_{extra} = {end},")
            end = f"{name.upper()}_{extra} + TABLE_EXTRA_BYTES({cell}, {name.upper()}_EXTRAS, "
            end += f"ENTRY_{extra})"
        text += [f"{name.upper()}_STRIDE = TABLE_STRIDE({end})", "};"]
        text.append(
            f"static const table_shape_t {name}_shape = {{.kind = {_KINDS[table.kind]}, "
            f".num_fields = {len(table.key)}, .words = {key_words(table)}, "
            f".key_bytes = {key_bytes}, .data_bytes = {data}, "
            f".params_bytes = {params}, .max_entries = {entries}, "
            f".extras = {name.upper()}_EXTRAS, .data_offset = {place}, "
            f".counter_offset = {name.upper()}_COUNTED, .idle_offset = {name.upper()}_TIMED, "
            f".meter_offset = {name.upper()}_METERED, .stride = {name.upper()}_STRIDE, "
            f".fields = {name}_fields"
            f"{f', .key_mask = {name}_key_mask' if key_mask else ''}}};"
        )
        return "\n".join(text)

    def emit_apply(self) -> str:
        """One function per table: looks up, counts, runs the action; sets the hit flag."""
        return "\n".join(self._apply(table) for table in self.tables)

    def _apply(self, table: ProgramTable) -> str:
        position = table.position
        slot, default = f"s->tables[{position}]", f"s->defaults[{position}]"
        text = [
            comment(f"{table.name}, {table.source}"),
            f"P4_UNUSED static uint32_t {table_symbol(table)}(",
            "pipeline_t *s, phv_t *p, bool *is_hit) {",
            f"uint32_t action = {default}.action;",
            f"const void *data = {default}.data;",
            "*is_hit = false;",
        ]
        if table.key:
            text.append(f"uint64_t key[{key_words(table)}];")
            with self.context.refusals(table.source):
                text += self._key(table)
            text += [
                f"const uint32_t entry = table_lookup(&{slot}, key);",
                "if (entry != TABLE_NONE) {",
                f"table_node_t *node = table_node(&{slot}, entry);",
                f"action = node->action; data = table_node_at(node, TABLE_{position}_DATA);",
                "*is_hit = true;",
            ]
            with self.context.refusals(table.source):
                text += self._extras(table)
            text.append("}")
        if table.direct_meter is not None:
            # simple_switch leaves the result of a miss as it was.
            with self.context.refusals(table.source):
                coloured = self._colour(table.direct_meter, f"&{default}.meter")
                text.append(f"if (!*is_hit && {default}.meter.is_configured) {{\n{coloured}\n}}")
        if table.has_direct_counter:
            text.append(f"if (!*is_hit) count_bytes(&{default}.counter, p->counted_bytes);")
        if table.action_profile is not None:
            text += self._member(table.action_profile)
        item = self.context.json_node(table.name)
        entry = "*is_hit ? (uint64_t)entry : UINT64_MAX" if table.key else "UINT64_MAX"
        if self.context.has_counts:
            text.append(f"p4_table_counts[{table.position}][*is_hit]++;")
        text += self.context.point("table", table.name, item, "*is_hit", "action", entry)
        text.append("switch (action) {")
        for action in table.actions:
            cases = [action.position]
            if table.action_profile is not None:
                cases = aliases(self.context, table)[action.position]
            labels = " ".join(f"case {number}:" for number in cases)
            renamed = f" action = {action.position};" if len(cases) > 1 else ""
            text.append(f"{labels} {action_symbol(action)}(s, p, data);{renamed} break;")
        return "\n".join([*text, "default: break;", "}", "return action;", "}", ""])

    def _extras(self, table: ProgramTable) -> list[str]:
        text: list[str] = []
        name = f"TABLE_{table.position}"
        if table.has_timeout:
            text.append(f"((idle_cell_t *)table_node_at(node, {name}_TIMED))->last_us = p->now_us;")
        if table.has_direct_counter:
            text.append(f"count_bytes(table_node_at(node, {name}_COUNTED), p->counted_bytes);")
        if table.direct_meter is not None:
            cell = f"table_node_at(node, {name}_METERED)"
            text.append(self._colour(table.direct_meter, cell))
        return text

    def _colour(self, position: int, cell: str) -> str:
        """C statement that runs a direct meter and stores the colour."""
        meter = self.context.program.meters[position]
        if meter.target is None or meter.target not in self.context.layout.fields:
            raise Refusal(
                f"direct meter {meter.name}", "its result is no plain field", "Use metadata"
            )
        storage = self.context.layout.fields[meter.target]
        units = "1" if meter.counts_packets else "p->counted_bytes"
        colour = f"meter_execute({cell}, p->now_us, {units})"
        return store(storage.reference, storage.field.width, storage.field.is_signed, colour)

    def _member(self, profile: int) -> list[str]:
        return [
            "const indirect_t *via = data;",
            "action = TABLE_NONE;",
            "if (via->kind != INDIRECT_NONE) {",
            f"const uint32_t hash = via->kind == INDIRECT_GROUP ? p4_select_{profile}(s, p) : 0;",
            f"const profile_member_t *member = profile_choose(&s->profiles[{profile}], via, hash);",
            "if (member != NULL) { action = member->action; data = member->data; }",
            "}",
        ]

    def _key(self, table: ProgramTable) -> list[str]:
        lines: list[str] = []
        word = 0
        for part in table.key:
            lines += self._key_field(part, word)
            word += (part.width + 63) // 64
        return lines

    def _key_field(self, part: KeyField, word: int) -> list[str]:
        layout = self.context.layout
        header, name = part.target
        if name == "$valid$":
            return [f"key[{word}] = {layout.valid(header)};"]
        if (header, name) not in layout.fields:
            raise Refusal(f"key {part.name}", "it is no plain header field", "Use plain headers")
        storage = layout.fields[header, name]
        reference = storage.reference
        # simple_switch takes zeros for the fields of a header that is not valid.
        guard = "" if storage.header.is_metadata else layout.valid(header)
        if part.width <= 64:
            mask = f" & UINT64_C({part.mask})" if part.mask is not None else ""
            value = f"(uint64_t){reference} & low_mask({part.width}){mask}"
            return [f"key[{word}] = {f'{guard} ? {value} : 0' if guard else value};"]
        size = (part.width + 7) // 8
        lines: list[str] = []
        at = 0
        while at < size:
            step = size % 8 if at == 0 and size % 8 else 8
            value = f"load_be({reference} + {at}, {step})"
            if part.mask is not None:
                bits = part.mask >> (size - at - step) * 8 & ((1 << step * 8) - 1)
                value += f" & UINT64_C({bits})"
            lines.append(f"key[{word}] = {f'{guard} ? {value} : 0' if guard else value};")
            word += 1
            at += step
        return lines

    def emit_allowed(self) -> str:
        """C functions that tell the control plane each table's actions and what is constant."""
        text = [
            "static bool p4_is_action_of(uint32_t table, uint32_t action) {",
            "(void)action;",
            "switch (table) {",
        ]
        for table in self.tables:
            tests = " || ".join(f"action == {item.position}" for item in table.actions) or "false"
            text.append(f"case {table.position}: return {tests};")
        text += ["default: return false;", "}", "}", ""]
        text += _flags("p4_has_const_entries", [t.has_const_entries for t in self.tables])
        text += _flags("p4_has_const_default", [t.is_default_entry_const for t in self.tables])
        text += ["// The only action that a default entry may have, or TABLE_NONE."]
        text += ["static uint32_t p4_const_default_action(uint32_t table) {", "switch (table) {"]
        for table in self.tables:
            if table.is_default_action_const and table.default_action is not None:
                text.append(f"case {table.position}: return {table.default_action.position};")
        text += ["default: return TABLE_NONE;", "}", "}", ""]
        return "\n".join(text)

    def emit_fill(self) -> str:
        """C function that gives a new pipeline its tables, default and constant entries."""
        text = [
            "static int p4_fill_tables(pipeline_t *s) {",
            "int result = P_OK; (void)result;",
            "(void)s;",
        ]
        for table in self.tables:
            name = f"table_{table.position}"
            text.append(f"result = table_create(&s->tables[{table.position}], &{name}_shape);")
            text.append("if (result != P_OK) return result;")
        for table in self.tables:
            if table.default_action is None:
                text.append(f"s->defaults[{table.position}].action = TABLE_NONE;")
                text.append("result = P_OK;")
            else:
                text.append(
                    f"result = p4_set_default(s, {table.position}, &(table_entry_t){{"
                    f".action_id = {table.default_action.position}, "
                    f".params = {_octets(table.default_params)}, "
                    f".params_bytes = {params_bytes(table.default_action)}}});"
                )
            text.append("if (result != P_OK) return result;")
            for entry in table.entries:
                text.append(
                    f"result = p4_add_entry(s, {table.position}, &(table_entry_t){{"
                    f".key = {_octets(entry.key)}, .mask = {_octets(entry.mask)}, "
                    f".prefix_len = {entry.prefix_len}, .priority = {entry.priority}, "
                    f".action_id = {entry.action}, .params = {_octets(entry.params)}, "
                    f".params_bytes = {len(entry.params)}, "
                    f".key_bytes = {len(entry.key)}}}, NULL);"
                )
                text.append("if (result != P_OK) return result;")
        return "\n".join([*text, "return P_OK;", "}", ""])


def _key_mask(table: ProgramTable) -> str:
    """Words of the mask that the program puts on a key; empty if there is none."""
    if all(part.mask is None for part in table.key):
        return ""
    words: list[str] = []
    for part in table.key:
        mask = (1 << part.width) - 1 if part.mask is None else part.mask
        count = (part.width + 63) // 64
        words += [f"UINT64_C({mask >> 64 * at & (1 << 64) - 1})" for at in reversed(range(count))]
    return ", ".join(words)


def _extras(table: ProgramTable) -> str:
    flags = ["ENTRY_COUNTED"] if table.has_direct_counter else []
    flags += ["ENTRY_TIMED"] if table.has_timeout else []
    flags += ["ENTRY_METERED"] if table.direct_meter is not None else []
    return " | ".join(flags) or "0"


def _octets(data: bytes) -> str:
    return f"(const uint8_t *){c_string(data)}"


def _flags(name: str, flags: list[bool]) -> list[str]:
    text = [f"static bool {name}(uint32_t table) {{", "switch (table) {"]
    text += [f"case {index}: return true;" for index, flag in enumerate(flags) if flag]
    return [*text, "default: return false;", "}", "}", ""]
