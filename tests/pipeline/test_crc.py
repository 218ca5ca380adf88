# SPDX-FileCopyrightText: 2026 The Switchfold Authors
# SPDX-License-Identifier: Apache-2.0
"""The runtime's CRCs against those of the standard library and a plain one, bit by bit."""

import binascii
import ctypes
import random
import subprocess
import zlib
from collections.abc import Callable

import pytest

from switchfold.softswitch.compilation.compiler import FLAGS, INCLUDES, RUNTIME, find_compiler

ONES = 0xFFFF_FFFF


def crc_16(data: bytes, crc: int) -> int:
    for byte in data:
        crc ^= byte
        for _ in range(8):
            crc = crc >> 1 ^ (0xA001 if crc & 1 else 0)
    return crc


ORACLES: dict[str, Callable[[bytes, int], int]] = {
    "crc_32": lambda data, crc: zlib.crc32(data, crc ^ ONES) ^ ONES,
    "crc_16": crc_16,
    "crc_ccitt": binascii.crc_hqx,
}


@pytest.fixture(scope="module")
def library(tmp_path_factory: pytest.TempPathFactory) -> ctypes.CDLL:
    path = tmp_path_factory.mktemp("crc") / "crc.so"
    command = [*find_compiler(), *FLAGS, "-Werror", *INCLUDES, "-o", str(path)]
    subprocess.run([*command, str(RUNTIME / "program" / "crc.c")], check=True)
    return ctypes.CDLL(str(path))


@pytest.mark.parametrize("name", ORACLES)
def test_crc_of_every_length_in_two_pieces(library: ctypes.CDLL, name: str) -> None:
    function = library[name]
    function.argtypes = [ctypes.c_uint32, ctypes.c_char_p, ctypes.c_uint32]
    function.restype = ctypes.c_uint32
    source = random.Random(name)
    for length in (*range(60), 1500, 9232):
        data = source.randbytes(length)
        start = source.choice((0, 0xFFFF, ONES if name == "crc_32" else 0x1D0F))
        cut = source.randint(0, length)
        found = function(function(start, data[:cut], cut), data[cut:], length - cut)
        assert found == ORACLES[name](data, start), (length, cut, start)
