# SPDX-FileCopyrightText: 2026 The Switchfold Authors
# SPDX-License-Identifier: Apache-2.0
"""One switch used by several threads at once."""

import threading
from collections.abc import Iterator
from pathlib import Path

import numpy as np
import pytest

from first_byte import compile_first_byte
from switchfold.softswitch.switch.switch import Switch

ROUNDS = 1000


@pytest.fixture
def switch(tmp_path: Path) -> Iterator[Switch]:
    with Switch(compile_first_byte(tmp_path)) as switch:
        for number in (1, 2):
            switch.ports.add(number, "mem")
        yield switch


def test_threads_get_their_own_frames(switch: Switch) -> None:
    mixed: list[bytes] = []

    def use(number: int) -> None:
        frame = bytes([4, 2, 0, 0]) + bytes([number]) * 9000
        for _ in range(ROUNDS):
            [(_, sent)] = switch.process(1, frame)
            if sent[4:] != frame[4:]:
                mixed.append(sent)
            switch.packet_out(frame)

    threads = [threading.Thread(target=use, args=(number,)) for number in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert mixed == []


def test_packet_out_that_is_too_long(switch: Switch) -> None:
    with pytest.raises(ValueError, match="9232"):
        switch.packet_out(bytes(9233))
    switch.start()
    with pytest.raises(ValueError, match="9232"):
        switch.packet_out(bytes(9233))


def test_receive_refuses_memory_that_is_not_to_be_written(switch: Switch) -> None:
    frames, lengths = np.zeros((4, 64), np.uint8), np.zeros(4, np.int32)
    frames.flags.writeable = False
    with pytest.raises(ValueError, match="writeable"):
        switch.ports.mem_port(1).receive(frames, lengths, 0)
