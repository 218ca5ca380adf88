# SPDX-FileCopyrightText: 2026 The Switchfold Authors
# SPDX-License-Identifier: Apache-2.0
"""The variants of the Promela model of sums that may lack a bounded share."""

from __future__ import annotations

from model_variant import Variant

LOSS = "loss_tolerance.pml"


def _loss(name: str, shows: str, *, is_long: bool = False, **defines: int) -> Variant:
    return Variant(
        name=f"loss tolerance: {name}", shows=shows, defines=defines, model=LOSS, is_long=is_long
    )


def _loss_defect(name: str, shows: str, **defines: int) -> Variant:
    return Variant(
        name=f"loss tolerance, {name}", shows=shows, defines=defines, model=LOSS, has_error=True
    )


LOSS_VARIANTS = [
    _loss(
        "two workers",
        "any loss, duplication and delay: the bound holds, and all workers complete",
        LENGTH=6,
    ),
    _loss(
        "each worker's bound",
        "of each worker's contributions, a tensor lacks no more than it may",
        LENGTH=6,
        TOTAL=6,
        LIMIT=2,
    ),
    _loss(
        "two slots",
        "the same, with chunks of two slots under way",
        SLOTS=2,
        LENGTH=4,
        TOTAL=2,
    ),
    _loss(
        "two tensors",
        "a worker goes on with the next tensor, though it misses results of this one",
        TENSORS=2,
        LENGTH=3,
    ),
    _loss(
        "two tensors, one by one",
        "the same with workers that wait for each tensor",
        is_long=True,
        TENSORS=2,
        LENGTH=4,
        SYNC=1,
    ),
    _loss(
        "a tensor that may lack nothing",
        "its results may be missed as well, as the next tensor's rounds close early",
        TENSORS=2,
        LENGTH=3,
        STRICT=1,
    ),
    _loss(
        "three workers",
        "closers pay for one or two contributions to a chunk, and successors pay as well",
        NUM_WORKERS=3,
        LENGTH=3,
        TOTAL=4,
    ),
    _loss(
        "progress",
        "if what is sent again gets through in the end, all tensors of all workers complete",
        LENGTH=6,
        LIVENESS=1,
    ),
    _loss(
        "whoever pays",
        "who closes a chunk matters to no bound, and to no end",
        is_long=True,
        NUM_WORKERS=3,
        LENGTH=4,
        TOTAL=3,
        TURNS=0,
    ),
    _loss(
        "three workers, each worker's bound",
        "the same as with two",
        is_long=True,
        NUM_WORKERS=3,
        LENGTH=5,
        TOTAL=4,
        LIMIT=3,
    ),
    _loss(
        "three workers, two tensors",
        "the same as with two",
        is_long=True,
        NUM_WORKERS=3,
        TENSORS=2,
        LENGTH=2,
        TOTAL=3,
    ),
    _loss(
        "two slots, eight chunks",
        "two workers miss results of several chunks of a slot",
        is_long=True,
        SLOTS=2,
        LENGTH=8,
        TOTAL=4,
    ),
    _loss_defect(
        "flushes without a debit",
        "a tensor lacks more than it may",
        DEBITS=0,
    ),
    _loss_defect(
        "a flusher's budget not split",
        "each worker lets go the whole",
        SPLITS=0,
    ),
    _loss_defect(
        "a flusher's bound of one worker not split",
        "each worker lets go of one worker what all may let go of it",
        TOTAL=12,
        LIMIT=2,
        SPLITS=0,
    ),
    _loss_defect(
        "the switch ignores what flushes expect",
        "a sum lacks more than was paid for",
        NUM_WORKERS=3,
        LENGTH=3,
        EXPECTS=0,
    ),
    _loss_defect(
        "all comes back with the result",
        "what was missing is paid for once more",
        KEEPS=0,
    ),
    _loss_defect(
        "chunks under way not counted",
        "two of them lack the same worker, which may be missing in one",
        SLOTS=2,
        LENGTH=8,
        TOTAL=6,
        LIMIT=2,
        COUNTS_OPEN=0,
    ),
    _loss_defect(
        "a worker stops that has missed a result",
        "the others have nothing left to pay with, and wait for it",
        GOES_ON=0,
    ),
    _loss_defect(
        "a worker pays that has missed a result",
        "two workers wait for each other: each has missed what the other one has",
        STAYS_WHOLE=0,
    ),
    _loss_defect(
        "a worker pays in the next tensor that has missed a result",
        "the same, as the next tensor's first chunk follows this one's last in its slot",
        TENSORS=2,
        LENGTH=3,
        NEXT_TOO=0,
    ),
    _loss_defect(
        "a worker pays that has missed a result, and no tensor ends",
        "the same as a run without end",
        STAYS_WHOLE=0,
        LIVENESS=1,
    ),
]
