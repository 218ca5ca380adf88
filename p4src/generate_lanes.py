# SPDX-FileCopyrightText: 2026 The Switchfold Authors
# SPDX-License-Identifier: Apache-2.0
"""Write the P4 text that repeats once per lane, for each variant.

P4 has no arrays of registers, and one register per lane is what keeps a packet to one
read-modify-write per register. `python -m switchfold.p4src.generate_lanes` writes the files; a test
fails when they are out of date.
"""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Final

VALUES_PER_PACKET: Final = {"narrow": 32, "wide": 352}
"""Lanes of each variant; hostlib.slots.wire holds the same numbers, and a test compares them."""

P4SRC: Final = Path(__file__).resolve().parent

_BANNER: Final = """\
// SPDX-FileCopyrightText: 2026 The Switchfold Authors
// SPDX-License-Identifier: Apache-2.0
//
// Written by p4src/generate_lanes.py: change that, not this.
"""

_HEADER: Final = """\
{banner}// {values} lanes per packet.
#ifndef SWITCHFOLD_LANES_P4
#define SWITCHFOLD_LANES_P4

const bit<32> VALUES_PER_PACKET = {values};

// The one datagram size of this variant.
const bit<16> UDP_LENGTH = UDP_BYTES + HEADER_BYTES + {values} * VALUE_BYTES;
const bit<16> IPV4_TOTAL_LENGTH = IPV4_BYTES + UDP_LENGTH;

header lanes_h {{
{fields}
}}

#endif
"""

_CONTROL: Final = """\
{banner}//
// The slot copy's {values} lanes: one register each. A packet runs at most one of the actions,
// hence one read-modify-write per register. After each action the packet's lanes hold what the
// copy holds.
//
// Lanes are two's complement; registers hold bit<32>, since that is all v1model promises, and
// casts make sum and maximum signed. A lane has saturated exactly where the saturated sum differs
// from the wrapped one.
control Lanes(inout headers_t hdr, inout metadata_t md) {{
{registers}

    bit<32> held;
    bit<32> wrapped;

    action lanes_overwrite() {{
{overwrite}
    }}

    action lanes_add() {{
{add}
    }}

    action lanes_max() {{
{maximum}
    }}

    action lanes_read() {{
{read}
    }}

    apply {{
        if (md.slot_access == SLOT_ACCESS_OVERWRITE) {{
            lanes_overwrite();
        }} else if (md.slot_access == SLOT_ACCESS_ADD) {{
            lanes_add();
        }} else if (md.slot_access == SLOT_ACCESS_MAX) {{
            lanes_max();
        }} else if (md.slot_access == SLOT_ACCESS_READ) {{
            lanes_read();
        }}
    }}
}}
"""


def _overwrite(lane: str) -> str:
    return f"        lane{lane}.write(md.slot_copy, hdr.lanes.v{lane});"


def _add(lane: str) -> str:
    return (
        f"        lane{lane}.read(held, md.slot_copy);\n"
        f"        wrapped = held + hdr.lanes.v{lane};\n"
        f"        hdr.lanes.v{lane} = (bit<32>)((int<32>)held |+| (int<32>)hdr.lanes.v{lane});\n"
        f"        md.saturated_bits = md.saturated_bits | (wrapped ^ hdr.lanes.v{lane});\n"
        f"        lane{lane}.write(md.slot_copy, hdr.lanes.v{lane});"
    )


def _maximum(lane: str) -> str:
    return (
        f"        lane{lane}.read(held, md.slot_copy);\n"
        f"        if ((int<32>)held > (int<32>)hdr.lanes.v{lane}) {{\n"
        f"            hdr.lanes.v{lane} = held;\n"
        f"        }}\n"
        f"        lane{lane}.write(md.slot_copy, hdr.lanes.v{lane});"
    )


def _read(lane: str) -> str:
    return f"        lane{lane}.read(hdr.lanes.v{lane}, md.slot_copy);"


def _per_lane(values: int, line: Callable[[str], str]) -> str:
    return "\n".join(line(f"{lane:03d}") for lane in range(values))


def lanes_header(values: int) -> str:
    """Return include/lanes_<variant>.p4: the lanes' header and the datagram's size."""
    fields = _per_lane(values, lambda lane: f"    bit<32> v{lane};")
    return _HEADER.format(banner=_BANNER, values=values, fields=fields)


def lanes_control(values: int) -> str:
    """Return bmv2/lanes_<variant>.p4: the lanes' registers and what a packet does to them."""
    return _CONTROL.format(
        banner=_BANNER,
        values=values,
        registers=_per_lane(
            values, lambda lane: f"    register<bit<32>>(SLOT_REGISTER_SIZE) lane{lane};"
        ),
        overwrite=_per_lane(values, _overwrite),
        add=_per_lane(values, _add),
        maximum=_per_lane(values, _maximum),
        read=_per_lane(values, _read),
    )


def generated_files(p4src: Path = P4SRC) -> dict[Path, str]:
    """Return the text of every generated file by its path."""
    files: dict[Path, str] = {}
    for variant, values in VALUES_PER_PACKET.items():
        files[p4src / "include" / f"lanes_{variant}.p4"] = lanes_header(values)
        files[p4src / "bmv2" / f"lanes_{variant}.p4"] = lanes_control(values)
    return files


def write_lanes(p4src: Path = P4SRC) -> list[Path]:
    """Write the files whose text changed; return their paths."""
    written: list[Path] = []
    for path, text in generated_files(p4src).items():
        if not path.exists() or path.read_text(encoding="utf-8") != text:
            path.write_text(text, encoding="utf-8")
            written.append(path)
    return written


if __name__ == "__main__":
    for changed in write_lanes():
        print(f"wrote {changed.relative_to(P4SRC.parent)}")
