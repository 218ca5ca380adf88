# SPDX-FileCopyrightText: 2026 The Switchfold Authors
# SPDX-License-Identifier: Apache-2.0
"""One switch used by several threads at once."""

import threading
from collections.abc import Iterator
from pathlib import Path
from typing import Any, cast

import numpy as np
import pytest

from first_byte import compile_first_byte
from switchfold.softswitch.errors import PortNotFoundError, SwitchStateError
from switchfold.softswitch.switch.mem_port import MemPort
from switchfold.softswitch.switch.native import NativeSwitch
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


def test_close_while_other_threads_use_a_port(tmp_path: Path) -> None:
    program = compile_first_byte(tmp_path)
    for _ in range(20):
        switch = Switch(program)
        switch.ports.add(1, "mem")
        switch.start()
        port = switch.ports.mem_port(1)
        errors: list[Exception] = []

        def use(port: MemPort = port, errors: list[Exception] = errors) -> None:
            frames, lengths = np.zeros((4, 64), np.uint8), np.full(4, 64, np.int32)
            try:
                while True:
                    port.send(frames, lengths)
                    port.receive(frames, lengths, 0.0)
            except (PortNotFoundError, SwitchStateError) as error:
                errors.append(error)

        users = [threading.Thread(target=use) for _ in range(3)]
        for user in users:
            user.start()
        switch.close()
        for user in users:
            user.join(60)
        assert len(errors) == len(users)


class ClosedMeanwhile:
    """A NativeSwitch that another thread closes as soon as this one has read its handle."""

    def __init__(self, handle: object) -> None:
        self._reads = iter((handle, None))

    @property
    def _handle(self) -> object:
        return next(self._reads)


def test_handle_of_a_switch_that_closes_is_never_none() -> None:
    handle = object()
    native, read = ClosedMeanwhile(handle), cast("Any", NativeSwitch.handle).fget
    assert read(native) is handle
    with pytest.raises(SwitchStateError):
        read(native)
