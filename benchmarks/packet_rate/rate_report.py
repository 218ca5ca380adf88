# SPDX-FileCopyrightText: 2026 The Switchfold Authors
# SPDX-License-Identifier: Apache-2.0
"""Report of the packet rate benchmark: a line for each contender, and whether aims are met."""

from __future__ import annotations

from typing import Any

SHARE_OF_BARE = 0.70
TIMES_BMV2 = {"narrow": 8.0, "wide": 40.0}
MEM_PPS = {"narrow": 1.5e6, "wide": 0.5e6}
NAMES = {
    "bare": "bare forwarder",
    "softswitch": "softswitch",
    "bare-super": "bare, super-frames",
    "softswitch-super": "softswitch, super",
    "bmv2": "BMv2",
}
BARE = {"softswitch": "bare", "softswitch-super": "bare-super"}
"""The forwarder that is the limit of each."""
SUPER_WIDE_PPS = 1e6
COLUMNS = (
    f"{'':<7} {'over':<5} {'contender':<18} {'packets/s':>10} {'min':>10} {'max':>10}"
    f" {'cores':>5} | {'per core':>10} {'us each':>7} |"
    f" {'of bare':>7} {'x BMv2':>7} {'of bare':>7} {'x BMv2':>7}"
)


def heading(repeats: int, *, has_bmv2: bool) -> str:
    """Return the lines above the table."""
    missing = "" if has_bmv2 else "; BMv2 is not measured: simple_switch_grpc is not on the PATH"
    return (
        f"medians of {repeats} repeats after a warm-up, in turn; every frame compared{missing}\n"
        "packets: answered frames into the switch; per core: divided by the processor time of the "
        "switch's process\nof bare, x BMv2: ratios of packets per core, then of packets/s\n\n"
        f"{COLUMNS}"
    )


def ratio(
    row: dict[str, Any], to: str, figure: str = "pps_per_core", *, of: str = "softswitch"
) -> float | None:
    """Return softswitch's rate over another contender's; None if that was not measured."""
    if to not in row or of not in row:
        return None
    return row[of][figure]["median"] / row[to][figure]["median"]


def _line(name: str, over: str, label: str, found: dict[str, Any], ratios: str = "") -> str:
    pps, core = found["pps"], found["pps_per_core"]
    return (
        f"{name:<7} {over:<5} {label:<18} {pps['median']:10,.0f} {pps['min']:10,.0f}"
        f" {pps['max']:10,.0f} {found['cores']['median']:5.2f} | {core['median']:10,.0f}"
        f" {found['cpu_us_per_packet']['median']:7.2f} |{ratios}"
    )


def describe(name: str, row: dict[str, Any]) -> str:
    """Return the lines of one workload."""
    lines: list[str] = []
    if "mem" in row:
        lines.append(_line(name, "mem", "softswitch", row["mem"]))
    for label, text in NAMES.items():
        veth = row.get("veth", {})
        if label not in veth:
            continue
        ratios = ""
        if label in BARE:
            for figure in ("pps_per_core", "pps"):
                bare = ratio(veth, BARE[label], figure, of=label)
                bmv2 = ratio(veth, "bmv2", figure, of=label)
                ratios += f" {100 * (bare or 0):6.0f}% {'' if bmv2 is None else f'{bmv2:.0f}':>7}"
        lines.append(_line(name, "veth", text, veth[label], ratios))
    return "\n".join(lines)


def aims(rows: dict[str, Any]) -> list[dict[str, Any]]:
    """Return each measured aim: what, wanted, found, is_met."""
    found: list[dict[str, Any]] = []

    def add(what: str, wanted: float, value: float | None) -> None:
        if value is not None:
            found.append(
                {
                    "what": what,
                    "wanted": wanted,
                    "found": value,
                    "is_met": value >= wanted,
                }
            )

    for name, row in rows.items():
        if "mem" in row and name in MEM_PPS:
            value = row["mem"]["pps_per_core"]["median"]
            add(f"{name}, mem, packets/s per core", MEM_PPS[name], value)
        if "veth" in row:
            add(f"{name}, veth, of the bare forwarder", SHARE_OF_BARE, ratio(row["veth"], "bare"))
            with_super = ratio(row["veth"], "bare-super", of="softswitch-super")
            add(f"{name}, veth, super-frames, of the bare forwarder", SHARE_OF_BARE, with_super)
            if name == "wide" and "softswitch-super" in row["veth"]:
                value = row["veth"]["softswitch-super"]["pps"]["median"]
                add("wide, veth, super-frames, packets/s", SUPER_WIDE_PPS, value)
            if name in TIMES_BMV2:
                value = ratio(row["veth"], "bmv2", "pps")
                add(f"{name}, veth, times BMv2's packets/s", TIMES_BMV2[name], value)
    return found


def describe_aims(found: list[dict[str, Any]]) -> str:
    """Return one line for each aim."""

    def number(value: float) -> str:
        return f"{value:,.0f}" if value >= 100 else f"{value:.2f}"

    return "\n".join(
        f"{'met    ' if aim['is_met'] else 'NOT MET'} {aim['what']}: at least "
        f"{number(aim['wanted'])}, found {number(aim['found'])}"
        for aim in found
    )
