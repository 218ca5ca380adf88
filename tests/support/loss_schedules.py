# SPDX-FileCopyrightText: 2026 The Switchfold Authors
# SPDX-License-Identifier: Apache-2.0
"""Random schedules of sums that may lack a share, watched by a ledger: `make loss-schedules`.

python -m loss_schedules [--schedules N] [--first N] [--seed N], with this folder on the path.
`--schedules 1 --first N` repeats one. A schedule sums some tensors over a network in C
(loss_network.h). The ledger reads the record of each packet, in Python. In one of REFERENCE_EVERY
schedules, the plain reference of the slot protocol gets each packet that came to the switch, too,
and must send the same bytes.
"""

from __future__ import annotations

import random
import sys
from collections import Counter

import numpy as np
from numpy.typing import NDArray

from loss_ledger import LossLedger
from loss_network import (
    ANSWERED_ALL,
    ANSWERED_ONE,
    ARRIVED,
    GOT,
    KINDS,
    NUM_VALUES,
    SENT,
    LossNetwork,
    Part,
    SettingsStruct,
)
from reference_job import ReferenceJob, worker_children
from schedule_runs import run_schedules
from slot_reference import Destination, ReferenceSwitch
from switchfold.hostlib.loss_tolerance import LossTolerance
from switchfold.hostlib.slots.switch_reducer import split_slots
from switchfold.hostlib.slots.wire import view_datagrams

REPORT_EVERY = 5000
REFERENCE_EVERY = 50
TREE, GENERATION = 7, 1000
"""Of loss_network.c."""
SILENCE = KINDS.index("silence of one")
"""Lets others be two rounds ahead, so that a result is gone: the rarest thing to happen."""


class _ReferenceReplay:
    """The reference of the slot protocol, which gets what came to the network's switch."""

    def __init__(self, num_workers: int, slot_count: int) -> None:
        self._switch = ReferenceSwitch(NUM_VALUES)
        self._switch.jobs[TREE] = ReferenceJob(
            job_id=TREE,
            generation=GENERATION,
            slot_base=0,
            slot_count=slot_count,
            children=worker_children({i: (i, i) for i in range(num_workers)}),
            num_workers=num_workers,
            quorum=num_workers,
            allow_partial=True,
        )

    def compare(self, records: NDArray[np.uint8]) -> None:
        """Check each answer of the network's switch, and that there was one where one is due."""
        kinds, workers = records[:, :4].copy().view(np.uint16).T.tolist()
        expected: bytes | None = None
        kind_of_reply = -1
        for kind, worker, row in zip(kinds, workers, records[:, 4:], strict=True):
            if kind in (ANSWERED_ONE, ANSWERED_ALL):
                assert (kind, row.tobytes()) == (kind_of_reply, expected), "the reference differs"
                expected = None
            elif kind == ARRIVED:
                assert expected is None, "the reference answers"
                packet = view_datagrams(row[None, :].copy(), NUM_VALUES).reshape(())
                _, reply = self._switch.receive(worker, worker, packet)
                if reply is not None:
                    expected = reply.datagram.tobytes()
                    is_for_all = reply.to is Destination.CHILDREN
                    kind_of_reply = ANSWERED_ALL if is_for_all else ANSWERED_ONE
        assert expected is None, "the reference answers"


def _follow(ledger: LossLedger, network: LossNetwork, records: NDArray[np.uint8]) -> None:
    """Show the ledger the packets of a sum."""
    for kind, worker, packet in network.packets(records):
        if kind == SENT:
            ledger.note_sent(worker, packet)
        elif kind == ARRIVED:
            ledger.note_arrived(worker, packet)
        elif kind == GOT:
            ledger.note_got(worker, packet)
        else:
            ledger.note_answered(packet)


def _parts(chance: random.Random, tolerance: LossTolerance, num_workers: int) -> list[Part]:
    """Draw a tensor: its chunks and their values, which are large, and who begins late."""
    count = chance.randint(1, 40)
    values = np.random.default_rng(chance.getrandbits(32)).integers(
        -(1 << 24), 1 << 24, (num_workers, count, NUM_VALUES), np.int32
    )
    large = None
    if chance.random() < 0.25:
        large = np.array([chance.random() < 0.5 for _ in range(count)], np.uint8)
    late, late_s = chance.randrange(num_workers), chance.choice([0, 0, 0.01, 0.3])
    return [
        Part(
            values=values[worker],
            large=large,
            budget=tolerance.budget(num_workers, count, worker)
            if tolerance.lost(num_workers, count)
            else None,
            late_s=late_s if worker == late else 0.0,
        )
        for worker in range(num_workers)
    ]


def _check(ledger: LossLedger, parts: list[Part]) -> NDArray[np.uint32]:
    """Check what the workers have; return who is in each chunk, by one that has all results."""
    ledger.check_whole()
    whole = [(worker, part) for worker, part in enumerate(parts) if not part.has_missed]
    assert whole, "some worker has each tensor from the switch"
    for worker, part in whole:
        ledger.check(worker, part.output, part.bitmaps)
        assert part.contributors.tolist() == [int(b).bit_count() for b in part.bitmaps]
    return whole[0][1].bitmaps


def run_schedule(number: int, seed: int) -> Counter[str]:
    """Sum some tensors; return what happened. AssertionError says what is wrong."""
    chance = random.Random(f"{seed} {number}")
    num_workers = chance.randint(2, 5)
    loss = chance.choice([0.01, 0.05, 0.1, 0.3, 0.6])
    worker_floor = chance.choice([None, 0.5, 0.9])
    tolerance = LossTolerance(loss=loss, worker_floor=worker_floor)
    slot_count = chance.choice([4, 4, 5, 5, 16, 64])
    exponent_slots, value_slots = split_slots(slot_count)
    ledger = LossLedger(num_workers, value_slots, loss=loss, worker_floor=worker_floor)
    settings = SettingsStruct(
        seed=chance.getrandbits(64),
        num_workers=num_workers,
        exponent_slots=exponent_slots,
        slot_count=slot_count,
        kind=chance.choice([*range(len(KINDS)), SILENCE]),
        one=chance.randrange(num_workers),
        is_adaptive=chance.random() < 0.25,
        loss=chance.choice([0, 0.01, 0.05, 0.1, 0.3]),
        duplication=chance.choice([0, 0.05]),
        reordering=chance.choice([0, 0.05]),
        silence_s=chance.choice([0.02, 0.1, 0.5]),
        delay_s=chance.choice([0.0001, 0.002]),
        packet_s=1 / 8000,
        pause_s=0.0005,
    )
    reference = None
    if number % REFERENCE_EVERY == 0:
        reference = _ReferenceReplay(num_workers, slot_count)
    counts: Counter[str] = Counter()
    with LossNetwork(settings) as network:
        for tensor in range(1, 4):
            parts = _parts(chance, tolerance, num_workers)
            is_large = None if parts[0].large is None else parts[0].large.astype(np.bool_)
            ledger.begin(tensor, np.array([part.values for part in parts], np.int64), is_large)
            network.sum(parts)
            records = network.raw_records
            _follow(ledger, network, records)
            if reference is not None:
                reference.compare(records)
            bitmaps = _check(ledger, parts).tolist()
            counts["packets"] += len(records)
            share = sum(each.bit_count() for each in bitmaps) / (num_workers * len(bitmaps))
            assert share >= 1 - loss
            for worker in range(num_workers):
                of_one = sum(each >> worker & 1 for each in bitmaps) / len(bitmaps)
                least = max(0.0, 1 - 2 * loss) if worker_floor is None else worker_floor
                assert of_one >= least - 1e-9, f"worker {worker}"
    counts.update(flushes=ledger.num_flushes, lacking=ledger.num_lacking, missed=ledger.num_missed)
    return counts


if __name__ == "__main__":
    sys.exit(run_schedules("loss_schedules", __doc__, run_schedule, REPORT_EVERY))
