# SPDX-FileCopyrightText: 2026 The Switchfold Authors
# SPDX-License-Identifier: Apache-2.0
"""Every operator from 1 to 2048 bits against Python's integers, on packets with random operands."""

import json
import random
from collections.abc import Callable, Iterator
from functools import partial
from pathlib import Path
from typing import Any

import pytest

from pipeline_driver import PROGRAMS, Driver
from wide_operators import DISTANCE_BITS, WIDTHS, Case, cases, expected, ones, write

PACKETS = 60


def path_of(name: str) -> Path:
    return PROGRAMS / f"wide_operators_{name}.json"


@pytest.fixture(scope="module", params=list(WIDTHS))
def program(request: pytest.FixtureRequest) -> Iterator[tuple[str, Driver]]:
    held = Driver(path_of(request.param))
    yield request.param, held
    held.close()


def operands(case: Case, source: random.Random) -> tuple[int, int, int, int]:
    """Raw bits of a, b, c and d: limits, neighbours of powers of two, and anything."""
    width = case.width

    def number() -> int:
        edge = source.choice((0, 1, 1 << source.randrange(width), 1 << (width - 1), ones(width)))
        near = edge + source.choice((-1, 0, 0, 1))
        return source.choice((near, near, source.getrandbits(width))) & ones(width)

    a = number()
    b = source.choice((number(), a, a ^ 1, ones(width) - a))
    d = source.choice((0, 1, width - 1, width, width + 1, 63, 64, 65, source.getrandbits(8)))
    return a, b, source.getrandbits(1), d & ones(DISTANCE_BITS)


def run(driver: Driver, case: Case, oracle: Callable[..., bytes], seed: int = 1) -> None:
    source = random.Random(f"{case.name} {seed}")
    for _ in range(PACKETS):
        a, b, c, d = operands(case, source)
        result = driver.process(case.packet(a, b, c, d) + b"rest")
        assert result.frame is not None
        assert result.frame[0] == case.number
        wanted = oracle(case.read(a), case.read(b), c, d)
        assert result.frame[1:-4].hex() == wanted.hex(), (case, hex(a), hex(b), c, d)


def test_operators_equal_pythons_integers(program: tuple[str, Driver]) -> None:
    name, driver = program
    for case in cases(name):
        run(driver, case, partial(expected, case))


def test_programs_are_what_the_script_writes() -> None:
    for name in WIDTHS:
        assert path_of(name).with_suffix(".p4").read_text(encoding="utf-8") == write(name)


def replace_operation(data: Any, field: str, change: Callable[[dict[str, Any]], None]) -> int:
    """Change the values assigned to this field in unsigned cases; return how many there were."""
    count = 0
    for action in data["actions"]:
        if ".compute_bit" not in action["name"]:
            continue
        for primitive in action["primitives"]:
            if primitive["op"] != "assign":
                continue
            target = primitive["parameters"][0]
            if target["type"] == "field" and target["value"][1] == field:
                node = primitive["parameters"][1]
                while "op" not in node:
                    node = node["value"]
                change(node)
                count += 1
    return count


def far_left(a: int, b: int, width: int) -> int:
    return a << b if b < width else 0


@pytest.mark.parametrize("name", list(WIDTHS))
def test_what_p4c_does_not_emit_is_exact_too(name: str, tmp_path: Path) -> None:
    """Division by a variable (by 0 it is 0), and distances as wide as the operand."""

    def divide(op: str) -> Callable[[dict[str, Any]], None]:
        return lambda node: node.update(op=op)

    data = json.loads(path_of(name).read_text(encoding="utf-8"))
    assert replace_operation(data, "both", divide("/")) == len(WIDTHS[name])
    assert replace_operation(data, "either", divide("%")) == len(WIDTHS[name])

    def by_b(node: dict[str, Any]) -> None:
        while node["op"] != "<<":
            node = node["left"]["value"]
        field = node["right"]
        while "value" in field and field["type"] == "expression":
            field = field["value"]
        assert field["value"][1] == "d", field
        field["value"] = [field["value"][0], "b"]

    assert replace_operation(data, "left", by_b) == len(WIDTHS[name])
    path = tmp_path / f"{name}.json"
    path.write_text(json.dumps(data), encoding="utf-8")
    driver = Driver(path, tmp_path)
    for case in cases(name):
        if case.is_signed:
            continue

        def oracle(a: int, b: int, c: int, d: int, case: Case = case) -> bytes:
            total = bits = 0
            own = {
                "both": a // b if b else 0,
                "either": a % b if b else 0,
                "left": far_left(a, b, case.width),
            }
            for item in case.results():
                value = own[item.name] if item.name in own else item.oracle(a, b, c, d)
                total = total << item.width | value & ones(item.width)
                bits += item.width
            return (total << -bits % 8).to_bytes((bits + 7) // 8, "big")

        run(driver, case, oracle, seed=2)
    driver.close()
