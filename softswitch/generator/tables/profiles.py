# SPDX-FileCopyrightText: 2026 The Switchfold Authors
# SPDX-License-Identifier: Apache-2.0
"""Action profiles: which actions their members may have, and how a selector chooses a member."""

from ...program.model import ActionProfile, ProgramTable
from ..c_text import comment
from ..context import Context, Refusal

_HASHES = {
    "crc16": "crc16",
    "crc16_custom": "crc16",
    "crc32": "crc32",
    "crc32_custom": "crc32",
    "crcCCITT": "crcCCITT",
    "csum16": "csum16",
    "cksum16": "csum16",
    "xor16": "xor16",
    "identity": "identity",
}
"""Hash functions of packet.h; the custom ones start with the standard polynomials."""


def aliases(context: Context, table: ProgramTable) -> dict[int, list[int]]:
    """Return, for the position of each action of a table, those that members may hold for it.

    p4c gives every table its own copy of an action; members of a shared profile have any of them.
    """
    found = {action.position: [action.position] for action in table.actions}
    for other in context.program.tables:
        if other is table or other.action_profile != table.action_profile:
            continue
        for action in table.actions:
            for twin in other.actions:
                if twin.name == action.name and twin.position not in found[action.position]:
                    found[action.position].append(twin.position)
    return found


class ProfileWriter:
    """Writes the action profiles of a program."""

    def __init__(self, context: Context) -> None:
        self.context = context
        self.profiles = context.program.action_profiles

    def emit(self) -> str:
        """All functions on profiles."""
        text = ["static uint32_t p4_profile_of(uint32_t table) {", "switch (table) {"]
        for table in self.context.program.tables:
            if table.action_profile is not None:
                text.append(f"case {table.position}: return {table.action_profile};")
        text += ["default: return TABLE_NONE;", "}", "}", ""]
        text += ["static bool p4_is_action_of_profile(uint32_t profile, uint32_t action) {"]
        text += ["(void)action;", "switch (profile) {"]
        for profile in self.profiles:
            tests = [f"action == {number}" for number in sorted(self._actions(profile))]
            text.append(f"case {profile.position}: return {' || '.join(tests) or 'false'};")
        text += ["default: return false;", "}", "}", ""]
        text += ["static bool p4_has_selector(uint32_t profile) {", "switch (profile) {"]
        for profile in self.profiles:
            if profile.selector is not None:
                text.append(f"case {profile.position}: return true;")
        text += ["default: return false;", "}", "}", ""]
        for profile in self.profiles:
            with self.context.refusals(f"action selector {profile.name}"):
                text += self._select(profile)
        return "\n".join(text)

    def _actions(self, profile: ActionProfile) -> set[int]:
        return {
            action.position
            for table in self.context.program.tables
            if table.action_profile == profile.position
            for action in table.actions
        }

    def _select(self, profile: ActionProfile) -> list[str]:
        text = [
            comment(f"Hash by which {profile.name} chooses a member."),
            f"P4_UNUSED static uint32_t p4_select_{profile.position}(pipeline_t *s, "
            "const phv_t *p) {",
            "(void)s; (void)p;",
        ]
        selector = profile.selector
        if selector is None:
            return [*text, "return 0;", "}", ""]
        if selector.algorithm == "random":
            draw = "return (uint32_t)random_between(&s->random, 0, UINT32_MAX);"
            return [*text, draw, "}", ""]
        if selector.algorithm not in _HASHES:
            raise Refusal(
                f"hash algorithm '{selector.algorithm}'",
                "it is not supported",
                f"Use one of {', '.join(_HASHES)} or random",
            )
        layout = self.context.layout
        widths = [self._width(header, name) for header, name in selector.input]
        text.append(f"uint8_t bytes[{(sum(widths) + 7) // 8 or 1}] = {{0}};")
        text.append("uint32_t at = 0; // bits; fields of headers that are not valid take none")
        for (header, name), width in zip(selector.input, widths, strict=True):
            storage = layout.fields[header, name]
            put = _put(storage.reference, width)
            if storage.header.is_metadata:
                text.append(put)
            else:
                text.append(f"if ({layout.valid(header)}) {{ {put} }}")
        hashed = f"hash_{_HASHES[selector.algorithm]}(bytes, (at + 7) / 8)"
        return [*text, f"return (uint32_t){hashed};", "}", ""]

    def _width(self, header: str, name: str) -> int:
        if (header, name) not in self.context.layout.fields:
            raise Refusal(
                f"selector field {header}.{name}", "it is no plain header field", "Use plain fields"
            )
        return self.context.layout.fields[header, name].field.width


def _put(reference: str, width: int) -> str:
    if width <= 64:
        return f"or_bits(bytes, at, {width}, (uint64_t){reference}); at += {width};"
    size = (width + 7) // 8
    lines: list[str] = []
    at = 0
    while at < size:
        step = size % 8 if at == 0 and size % 8 else 8
        bits = step * 8 - (size * 8 - width if at == 0 else 0)
        lines.append(f"or_bits(bytes, at, {bits}, load_be({reference} + {at}, {step}));")
        lines.append(f"at += {bits};")
        at += step
    return " ".join(lines)
