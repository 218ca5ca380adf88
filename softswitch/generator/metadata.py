# SPDX-FileCopyrightText: 2026 The Switchfold Authors
# SPDX-License-Identifier: Apache-2.0
"""Standard metadata, preserved field lists and digests."""

from typing import Any

from softswitch.generator.context import STANDARD, Context, Refusal

_BOTH = (
    "ingress_port",
    "packet_length",
    "instance_type",
    "ingress_global_timestamp",
)
_EGRESS = (
    "egress_port",
    "egress_rid",
    "egress_global_timestamp",
    "enq_timestamp",
    "enq_qdepth",
    "deq_timedelta",
    "deq_qdepth",
)


class MetadataWriter:
    """Writes what the runtime and the replication engine need of the metadata."""

    def __init__(self, context: Context) -> None:
        self.context = context

    def emit(self) -> str:
        """All functions."""
        return "\n".join([*self._starts(), *self._outputs(), *self._keep(), *self._digest()])

    def _fill(self, name: str) -> str | None:
        if not self.context.has_standard(name):
            return None
        storage = self.context.layout.fields[STANDARD, name]
        mask = f"low_mask({storage.field.width})"
        reference = self.context.standard(name)
        return f"{reference} = ({storage.type})((uint64_t)info->{name} & {mask});"

    def _starts(self) -> list[str]:
        text: list[str] = []
        for control, names in (("ingress", _BOTH), ("egress", _BOTH + _EGRESS)):
            text.append(f"static void p4_start_{control}(phv_t *p, const packet_info_t *info) {{")
            text.append("(void)p; (void)info;")
            text += [line for name in names if (line := self._fill(name)) is not None]
            if control == "egress" and self.context.has_standard("egress_spec"):
                text.append(f"{self.context.standard('egress_spec')} = 0;")
            text += ["}", ""]
        return text

    def _outputs(self) -> list[str]:
        text: list[str] = []
        for name in ("egress_spec", "mcast_grp"):
            value = self.context.standard(name) if self.context.has_standard(name) else "0"
            text += [f"static uint32_t p4_{name}(const phv_t *p) {{", "(void)p;"]
            text += [f"return {value};", "}", ""]
        return text

    def _elements(self, item: Any, what: str) -> list[tuple[str, str]]:
        names: list[tuple[str, str]] = []
        for element in item["elements"]:
            if (
                element["type"] != "field"
                or tuple(element["value"]) not in self.context.layout.fields
            ):
                raise Refusal(
                    f"{what} with an element of type '{element['type']}'",
                    "only plain fields are supported",
                    "List fields",
                )
            names.append((element["value"][0], element["value"][1]))
        return names

    def _keep(self) -> list[str]:
        layout = self.context.layout
        text = [
            "static void p4_keep_fields(phv_t *to, uint32_t list, const phv_t *from) {",
            "(void)from;",
        ]
        for header in self.context.program.headers:
            if header.is_metadata:
                member = layout.member(header.name).removeprefix("p->")
                text.append(f"memset(&to->{member}, 0, sizeof to->{member});")
        text.append("switch (list) {")
        for item in self.context.program.json.get("field_lists", []):
            text.append(f"case {item['id']}: // {item['name']}")
            with self.context.refusals(f"field list {item['name']}"):
                for header, name in self._elements(item, "field list"):
                    member = layout.plain(header, name).removeprefix("p->")
                    text.append(f"memcpy(&to->{member}, &from->{member}, sizeof to->{member});")
            text.append("break;")
        return [*text, "default: break;", "}", "}", ""]

    def _digest(self) -> list[str]:
        text = [
            "static int p4_digest(const phv_t *p, uint32_t id, uint8_t *out, uint32_t capacity) {",
            "(void)p; (void)out; (void)capacity;",
            "switch (id) {",
        ]
        for item in self.context.program.json.get("learn_lists", []):
            text.append(f"case {item['id']}: {{ // {item['name']}")
            with self.context.refusals(f"digest {item['name']}"):
                body: list[str] = []
                at = 0
                for name in self._elements(item, "digest"):
                    storage = self.context.layout.fields[name]
                    size = (storage.field.width + 7) // 8
                    reference = self.context.layout.plain(*name)
                    mask = f"low_mask({storage.field.width})"
                    if storage.is_wide:
                        body.append(f"memcpy(out + {at}, {reference}, {size});")
                    else:
                        body.append(
                            f"store_be(out + {at}, {size}, (uint64_t){reference} & {mask});"
                        )
                    at += size
                text.append(f"if (capacity < {at}) return P_FULL;")
                text += [*body, f"return {at};"]
            text.append("}")
        return [*text, "default: return P_NOT_FOUND;", "}", "}", ""]
