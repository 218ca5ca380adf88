# SPDX-FileCopyrightText: 2026 The Switchfold Authors
# SPDX-License-Identifier: Apache-2.0
"""The packet rate benchmark: its frames, its arithmetic, and that it notices a wrong frame."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from benchmarks.packet_rate import contenders, mem_rate, rate_report, traffic
from packet_frames import internet_checksum
from switchfold.hostlib.slots import wire


def figures(pps: float, per_core: float) -> dict[str, Any]:
    values = {"pps": pps, "pps_per_core": per_core, "cpu_us_per_packet": 1.0, "cores": 1.0}
    return {key: {"median": value, "min": value, "max": value} for key, value in values.items()}


def test_aims_compare_medians() -> None:
    veth = {
        "bare": figures(300e3, 400e3),
        "softswitch": figures(250e3, 300e3),
        "bmv2": figures(5e3, 2e3),
    }
    rows = {"narrow": {"mem": figures(1e6, 2e6), "veth": veth}, "wide": {"veth": veth}}
    found = {aim["what"]: (aim["found"], aim["is_met"]) for aim in rate_report.aims(rows)}
    assert found == {
        "narrow, mem, packets/s per core": (2e6, True),
        "narrow, veth, of the bare forwarder": (0.75, True),
        "narrow, veth, times BMv2's packets/s": (50.0, True),
        "wide, veth, of the bare forwarder": (0.75, True),
        "wide, veth, times BMv2's packets/s": (50.0, True),
    }
    assert "75%" in rate_report.describe("narrow", rows["narrow"])
    veth |= {"bare-super": figures(3e6, 4e6), "softswitch-super": figures(1.5e6, 2e6)}
    found = {aim["what"]: (aim["found"], aim["is_met"]) for aim in rate_report.aims(rows)}
    assert found["wide, veth, super-frames, of the bare forwarder"] == (0.5, False)
    assert found["wide, veth, super-frames, packets/s"] == (1.5e6, True)
    assert "50%" in rate_report.describe("wide", rows["wide"])
    without = {"l3": {"veth": {key: veth[key] for key in ("bare", "softswitch")}}}
    assert [aim["what"] for aim in rate_report.aims(without)] == ["l3, veth, of the bare forwarder"]


def test_rounds_keep_udp_checksums_right() -> None:
    made = traffic.aggregation("narrow", 8)
    frames = made.frames[3].copy()
    for number in (1, 0xFFFF, 0x1_0000, 0x89AB_CDEF):
        frames = made.frames[3].copy()
        mem_rate.put_round(made, frames, number, np.zeros(traffic.NUM_PORTS, np.uint32))
        for frame in frames:
            segment = frame[wire.ETHERNET_BYTES + wire.IPV4_BYTES :].tobytes()
            pseudo = frame[26:34].tobytes() + bytes([0, 17]) + len(segment).to_bytes(2, "big")
            assert internet_checksum(pseudo + segment) == 0


@pytest.mark.parametrize("name", ["narrow", "l3"])
def test_mem_run_verifies_what_comes_out(name: str) -> None:
    slots = 16
    make = traffic.l3_forwarding if name == "l3" else lambda n: traffic.aggregation("narrow", n)
    of = make(slots)
    fill = contenders.setup(name, slots)
    with mem_rate.mem_bench(of, contenders.program(name), fill, {0}) as bench:
        result = bench.run(3, is_verified=True)
        assert result.sent == 3 * slots * (1 if name == "l3" else traffic.NUM_PORTS)
        assert result.cpu_s > 0
        of.answers[:, :, -1] ^= 1
        with pytest.raises(SystemExit, match="unexpected frame"):
            bench.run(1, is_verified=True)
