# SPDX-FileCopyrightText: 2026 The Switchfold Authors
# SPDX-License-Identifier: Apache-2.0
"""Entries change at full packet rate: no packet is lost, and each sees whole entries."""

import threading
import time

import numpy as np
import pytest

from pipeline_driver import PROGRAMS
from switchfold.softswitch import Match, Switch, compile_program
from switchfold.softswitch.errors import EntryNotFoundError

BATCH = 64
LEAST_BATCHES = 400
LEAST_CHANGES = 100
LIMIT_S = 200.0  # a hang's: changes and packets may take turns on one core
FRAME_BYTES = 17


@pytest.mark.parametrize("table", ["exact_large", "masks", "ranges"])
def test_every_packet_sees_a_whole_entry_and_none_is_lost(table: str) -> None:
    program = compile_program(PROGRAMS / "table_kinds.json", cflags=("-Werror",))
    model = next(item for item in program.model.tables if item.name.endswith(f".{table}"))
    actions = {item.name.split(".")[-1]: item.position for item in model.actions}
    kind = {"exact_large": 2, "masks": 4, "ranges": 5}[table]

    def match(number: int) -> Match:
        if table == "ranges":
            low, high = (10 * number).to_bytes(2, "big"), (10 * number + 9).to_bytes(2, "big")
            return Match(low, high, 0, 5)
        key = (number * 2654435761 & 0xFFFFFFFF).to_bytes(4, "big") + number.to_bytes(2, "big")
        return Match(key, b"" if kind == 2 else b"\xff" * 5 + b"\xfe", 0, 0 if kind == 2 else 5)

    def params(value: int) -> bytes:
        return value.to_bytes(4, "big") + (value ^ 0xFFFFFFFF).to_bytes(4, "big")

    subject = 2  # the packets' entry: modified and removed
    frame = np.zeros((BATCH, FRAME_BYTES), np.uint8)
    frame[:, 0] = kind
    key = match(subject).key
    if table == "ranges":
        frame[:, 5:7] = np.frombuffer((10 * subject + 3).to_bytes(2, "big"), np.uint8)
    else:
        frame[:, 1:7] = np.frombuffer(key, np.uint8)
    lengths = np.full(BATCH, FRAME_BYTES, np.int32)
    back, sizes = np.zeros((BATCH, 64), np.uint8), np.zeros(BATCH, np.int32)
    is_done = threading.Event()
    changes = 0
    seen: set[str] = set()
    with Switch(program) as switch:
        switch.ports.add(1, "mem")
        port = switch.ports.mem_port(1)
        switch.start()

        def change() -> None:
            nonlocal changes
            switch.tables.insert(model.position, match(subject), actions["answer"], params(1))
            others: list[int] = []
            while not is_done.is_set():
                changes += 1
                value = changes & 0xFFFFFFFF
                switch.tables.modify(
                    model.position, match(subject), actions["answer"], params(value)
                )
                switch.tables.modify(
                    model.position, match(subject), actions["other"], b"\0\0\0\x63"
                )
                if changes % 3 == 0:
                    switch.tables.delete(model.position, match(subject))
                    switch.tables.insert(
                        model.position, match(subject), actions["answer"], params(value)
                    )
                # Other entries come and go, so that the table grows and shrinks meanwhile.
                number = 10 + changes % 3000
                if len(others) < 2000 and number not in others[-1:]:
                    try:
                        switch.tables.find(model.position, match(number))
                    except EntryNotFoundError:
                        switch.tables.insert(
                            model.position, match(number), actions["answer"], params(number)
                        )
                        others.append(number)
                elif others:
                    switch.tables.delete(model.position, match(others.pop(0)))

        changer = threading.Thread(target=change)
        changer.start()
        try:
            received, batches, end_s = 0, 0, time.monotonic() + LIMIT_S
            while (
                batches < LEAST_BATCHES
                or changes <= LEAST_CHANGES
                or not {"answer", "other"} <= seen
            ):
                assert changer.is_alive()
                assert time.monotonic() < end_s, (batches, changes, seen)
                batches += 1
                assert port.send(frame, lengths) == BATCH
                deadline = time.monotonic() + 60
                while received < BATCH and time.monotonic() < deadline:
                    count = port.receive(back, sizes, 5.0)
                    for row in range(count):
                        first = int.from_bytes(back[row, 9:13].tobytes(), "big")
                        second = int.from_bytes(back[row, 13:17].tobytes(), "big")
                        if (first, second) == (0, 0):
                            seen.add("none")
                        elif (first, second) == (7, 0x63):
                            seen.add("other")
                        else:
                            assert first ^ second == 0xFFFFFFFF, (first, second)
                            seen.add("answer")
                    received += count
                assert received == BATCH, f"of {BATCH} packets {received} came back"
                received = 0
        finally:
            is_done.set()
            changer.join()
        statistics = switch.ports.statistics(1)
        assert statistics["rx_packets"] == statistics["tx_packets"] == BATCH * batches
