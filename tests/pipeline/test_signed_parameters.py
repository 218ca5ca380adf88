# SPDX-FileCopyrightText: 2026 The Switchfold Authors
# SPDX-License-Identifier: Apache-2.0
"""Signed parameters of actions keep their sign, from the program and from the control plane."""

import json
import random
from pathlib import Path

from pipeline_driver import PROGRAMS, Driver

WIDTHS = {"wider": 32, "widest": 100, "pad": 4, "shifted": 16, "larger": 16, "total": 16,
          "sum": 70, "end": 2}  # fmt: skip


def wrap(value: int, width: int) -> int:
    """Return the low bits as a signed number."""
    value &= (1 << width) - 1
    return value - (1 << width) if value >> (width - 1) else value


def check(driver: Driver, operands: tuple[int, int, int], parameters: tuple[int, ...]) -> None:
    x, y, z = operands
    p, q, r, u = parameters
    frame = ((x & 255) << 88 | (y & 0xFFFF) << 72 | (z & (1 << 70) - 1) << 2).to_bytes(12, "big")
    outcome = driver.process(frame)
    assert outcome.frame is not None
    values = {
        "wider": p,
        "widest": q,
        "pad": 0,
        "shifted": p >> 2,
        "larger": max(p, y),
        "total": max(-32768, min(32767, r + y)),
        "sum": q + z,
        "end": 0,
    }
    flags = (p < 0) | (q < z) << 1 | (r == x) << 2 | (u > 0x7FFF) << 3
    total = flags
    for name, width in WIDTHS.items():
        total = total << width | values[name] & (1 << width) - 1
    assert outcome.frame[12:].hex() == total.to_bytes(33, "big").hex(), (operands, parameters)


def changed(folder: Path, default: list[int]) -> Driver:
    """Return a driver of the program without its entries and with another default entry."""
    data = json.loads((PROGRAMS / "signed_parameters.json").read_text(encoding="utf-8"))
    for table in data["pipelines"][0]["tables"]:
        if table["name"].endswith("by_x"):
            del table["entries"]
            table["max_size"] = 256
            table["default_entry"]["action_data"] = [hex(value) for value in default]
    path = folder / "signed_parameters.json"
    path.write_text(json.dumps(data), encoding="utf-8")
    return Driver(path, folder)


def test_negative_values_of_the_program(tmp_path: Path) -> None:
    parameters = [-5, -0x100000000000000000, -1, 0xFFFF]
    driver = changed(tmp_path, parameters)
    source = random.Random(6)
    for x in (4, 127, -128, -1):
        for z in (0, -1, 70, -(1 << 69), (1 << 69) - 1, wrap(source.getrandbits(70), 70)):
            for y in (0, -32768, 32767, wrap(source.getrandbits(16), 16)):
                check(driver, (x, y, z), tuple(parameters))
    driver.close()


def test_negative_values_of_the_control_plane(tmp_path: Path) -> None:
    driver = changed(tmp_path, [0, 0, 0, 0])
    source = random.Random(7)
    for x in range(-128, 128):
        p, q, r = (wrap(source.getrandbits(width), width) for width in (16, 70, 8))
        u = source.getrandbits(16)
        driver.insert("by_x", [x & 255], "compute", [p, q, r, u])
        y, z = wrap(source.getrandbits(16), 16), wrap(source.getrandbits(70), 70)
        check(driver, (x, y, z), (p, q, r, u))
        check(driver, (x, p, q), (p, q, r, u))
    driver.close()
