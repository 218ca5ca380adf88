# SPDX-FileCopyrightText: 2026 The Switchfold Authors
# SPDX-License-Identifier: Apache-2.0
"""Standard metadata: what the runtime fills in, and what it acts on."""

from softswitch.generator.context import STANDARD, Context

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
        return "\n".join([*self._starts(), *self._outputs()])

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
