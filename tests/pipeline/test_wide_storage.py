# SPDX-FileCopyrightText: 2026 The Switchfold Authors
# SPDX-License-Identifier: Apache-2.0
"""Wide fields of odd widths at odd offsets: selected on, matched, set, kept in registers."""

import random
from collections.abc import Iterator

import pytest

from pipeline_driver import PROGRAMS, Driver
from switchfold.softswitch.switch.pipeline import P_BAD_ARGUMENT, P_OK

KEY = {"operation": 8, "tag": 3, "a": 65, "b": 127, "c": 130, "e": 256, "f": 1000, "pad": 3}
VALUE = {"path": 5, "a": 65, "b": 127, "c": 130, "e": 256, "f": 1000, "seen": 100, "pad": 5}
DEFAULT_E = 0xFFFF_0000_0000_0000_0000_0000_0000_0001


@pytest.fixture
def driver() -> Iterator[Driver]:
    held = Driver(PROGRAMS / "wide_storage.json")
    yield held
    held.close()


def ones(width: int) -> int:
    return (1 << width) - 1


def pack(widths: dict[str, int], values: dict[str, int]) -> bytes:
    total = 0
    for name, width in widths.items():
        assert 0 <= values.get(name, 0) <= ones(width), name
        total = total << width | values.get(name, 0)
    return total.to_bytes(sum(widths.values()) // 8, "big")


def unpack(widths: dict[str, int], data: bytes) -> dict[str, int]:
    total = int.from_bytes(data, "big")
    values: dict[str, int] = {}
    for name, width in reversed(widths.items()):
        values[name] = total & ones(width)
        total >>= width
    return values


def anything(source: random.Random) -> dict[str, int]:
    return {name: source.getrandbits(width) for name, width in KEY.items()}


def send(driver: Driver, key: dict[str, int], port: int = 1) -> dict[str, int]:
    """Send a packet; check what all of them have in common; return the fields of `value`."""
    key = dict.fromkeys(KEY, 0) | key
    frame = pack(KEY, key)
    outcome = driver.process(frame + b"rest")
    assert outcome.frame is not None
    assert outcome.out.egress_spec == port
    size = sum(VALUE.values()) // 8
    value = unpack(VALUE, outcome.frame[:size])
    assert value["seen"] == int.from_bytes(frame, "big") >> (len(frame) * 8 - 100)
    moved = key["e"] >> 35 & ones(66)
    after = {
        **key,
        "b": key["b"] & ~(ones(66) << 5) | moved << 5,
        "c": (key["c"] + 1) & ones(130),
    }
    assert unpack(KEY, outcome.frame[size:-4]) == after
    assert outcome.frame[-4:] == b"rest"
    return value


def test_fields_at_any_offset_come_and_go_unchanged(driver: Driver) -> None:
    source = random.Random(3)
    for _ in range(50):
        key = anything(source) | {"operation": 0}
        value = send(driver, key)
        assert (value["c"], value["e"], value["f"]) == (ones(130), DEFAULT_E, 0)


@pytest.mark.parametrize(
    ("key", "path"),
    [
        ({}, 0),
        ({"a": 1 << 64 | 1, "tag": 5}, 2),
        ({"a": 1 << 64 | 1, "tag": 4}, 0),
        ({"a": 1, "tag": 5}, 0),
        ({"tag": 6, "b": 0x70000000_00000000_00000000_000000AB}, 4),
        ({"tag": 6, "b": 0x70000000_00000000_00000000_000000AA}, 0),
        ({"a": 0x1F000000000000000, "b": 3}, 8),
        ({"a": 0x1FFFFFFFFFFFFFFFF, "b": ones(127)}, 8),
        ({"a": 0x1FFFFFFFFFFFFFFFF, "b": ones(127) - 1}, 0),
        ({"operation": 7, "tag": 5, "a": 0x80000000000000001 >> 3 | 1 << 64, "b": 0}, 0),
    ],
)
def test_select_on_more_than_64_bits(driver: Driver, key: dict[str, int], path: int) -> None:
    assert send(driver, key)["path"] == path


def test_select_on_a_long_lookahead(driver: Driver) -> None:
    wanted = 0x07A8000000000000001
    key = unpack(KEY, (wanted << 1592 - 76).to_bytes(199, "big"))
    assert send(driver, key)["path"] == 1
    assert send(driver, key | {"a": key["a"] ^ 1})["path"] == 0
    assert send(driver, key | {"b": 5})["path"] == 1


def test_exact_match_and_wide_parameters(driver: Driver) -> None:
    source = random.Random(4)
    entries = {source.getrandbits(65): source.getrandbits(65) for _ in range(100)}
    for match, parameter in entries.items():
        driver.insert("by_a", [match], "set_a", [parameter])
    for match, parameter in entries.items():
        assert send(driver, {"a": match})["a"] == parameter
        assert send(driver, {"a": match ^ 1 << 64})["a"] == 0
    assert send(driver, {"a": ones(65)})["a"] == 0x10000000000000003


def test_longest_prefix_of_127_bits(driver: Driver) -> None:
    base = 0x5555_5555_5555_5555_5555_5555_5555_5555
    for length in (0, 1, 63, 64, 65, 126, 127):
        driver.insert("by_b", [(base, length), 2], "set_b", [length, 1])
    for differing, length in ((0, 63), (1, 64), (62, 64), (63, 64), (64, 65), (125, 126)):
        key = {"b": base ^ 1 << 126 - differing, "tag": 2}
        found = max(n for n in (0, 1, 63, 64, 65, 126) if n <= differing)
        assert send(driver, key)["b"] == found + 1, (differing, length)
    assert send(driver, {"b": base, "tag": 2})["b"] == 128
    assert send(driver, {"b": base, "tag": 3})["b"] == 0


def test_ternary_over_1130_bits(driver: Driver) -> None:
    high = 1 << 129
    driver.insert("by_c", [(high, high), (0, 0)], "set_c", [1], priority=1)
    driver.insert("by_c", [(high | 7, ones(130)), (1 << 999 | 1, 1 << 999 | 1)], "set_c", [2], 5)
    assert send(driver, {"c": high | 7, "f": 1 << 999 | 5})["c"] == 2
    assert send(driver, {"c": high | 7, "f": 1 << 999})["c"] == 1
    assert send(driver, {"c": 7, "f": 1 << 999 | 1})["c"] == ones(130)


def test_range_over_256_bits(driver: Driver) -> None:
    low, high = 1 << 100, (1 << 200) + 12345
    driver.insert("by_e", [(low, high)], "set_e", [1 << 255], priority=1)
    for value, is_inside in ((low, 1), (high, 1), (low - 1, 0), (high + 1, 0), (1 << 255, 0)):
        assert send(driver, {"e": value})["e"] == (1 << 255 if is_inside else DEFAULT_E)


def test_slice_and_mask_of_wide_keys(driver: Driver) -> None:
    part = 0x123456789 << 800 | 99
    driver.insert("by_f", [part, 0xAB << 240 | 5], "set_f", [1, 1 << 999, 6])
    key = {"f": part << 3 | 7 | 1 << 990, "e": 0xAB << 240 | 0x3330 | 5}
    assert send(driver, key, port=6)["f"] == 1 << 999 | 1
    assert send(driver, key | {"f": key["f"] ^ 8})["f"] == 0
    assert send(driver, key | {"e": key["e"] ^ 1})["f"] == 0
    assert send(driver, key | {"e": key["e"] ^ 1 << 242})["f"] == 0
    assert send(driver, key | {"e": key["e"] ^ 1 << 250}, port=6)["f"] == 1 << 999 | 1


def test_registers_of_any_width_count_modulo_their_width(driver: Driver) -> None:
    source = random.Random(5)
    short = odd = signed = wide = longest = 0
    for _ in range(20):
        key = anything(source) | {"operation": 1, "tag": 6, "b": 0}
        value = send(driver, key)
        assert (value["a"], value["b"], value["c"]) == (odd, short, signed)
        assert (value["e"], value["f"]) == (wide, longest >> 1000)
        short = (short + key["e"]) & ones(9)
        odd = (odd + key["a"]) & ones(65)
        signed = (signed - key["c"]) & ones(130)
        wide = (wide * 3 + key["e"]) & ones(256)
        longest = (key["f"] << 250 | longest >> 250) & ones(2000)
    assert driver.register("short_register", 6) == short
    assert driver.register("odd_register", 6) == odd
    assert driver.register("signed_register", 6) == signed
    assert driver.register("long_register", 6) == wide
    assert driver.register("longest_register", 6) == longest
    assert driver.register("longest_register", 5) == 0


def test_registers_are_written_as_big_endian_bytes(driver: Driver) -> None:
    assert driver.write_register("odd_register", 3, bytes([1, *range(8)])) == P_OK
    assert driver.register("odd_register", 3) == 0x01_00_01_02_03_04_05_06_07
    assert driver.write_register("odd_register", 3, bytes([2, *range(8)])) == P_BAD_ARGUMENT
    assert driver.write_register("odd_register", 3, bytes(8)) == P_BAD_ARGUMENT
    assert driver.write_register("longest_register", 7, bytes(range(250))) == P_OK
    assert driver.register("longest_register", 7) == int.from_bytes(bytes(range(250)), "big")
    assert driver.write_register("short_register", 0, b"\x01\xff") == P_OK
    assert driver.write_register("short_register", 0, b"\x02\x00") == P_BAD_ARGUMENT
    assert driver.register("short_register", 0) == 511
