# SPDX-FileCopyrightText: 2026 The Switchfold Authors
# SPDX-License-Identifier: Apache-2.0
"""The variants of the Promela models, and what the checker must find in each."""

from __future__ import annotations

from hot_row_variants import HOT_VARIANTS
from loss_variants import LOSS_VARIANTS
from model_variant import Variant

TREE = "tree_protocol.pml"


def _tree(name: str, shows: str, *, is_large: bool = False, **defines: int) -> Variant:
    return Variant(
        name=f"tree: {name}", shows=shows, defines=defines, model=TREE, is_large=is_large
    )


def _tree_defect(name: str, shows: str, **defines: int) -> Variant:
    return Variant(name=f"tree, {name}", shows=shows, defines=defines, model=TREE, has_error=True)


VARIANTS = [
    Variant(
        name="exactly-once",
        shows="3 workers, both copies, loss, duplication, any delay, new generation: sums exact",
        defines={"ROUNDS": 8, "GENERATIONS": 2},
    ),
    Variant(
        name="partial",
        shows="any worker may flush at any time: every result of a round is the same and exact",
        defines={"ROUNDS": 3, "GENERATIONS": 1, "PARTIAL": 1},
    ),
    Variant(
        name="partial, flushes expect two",
        shows="no round ends with fewer workers than a flush expects",
        defines={"ROUNDS": 3, "GENERATIONS": 1, "PARTIAL": 1, "FLUSHES_EXPECT": 2},
    ),
    Variant(
        name="partial, contributions expect two",
        shows="rounds end with the workers that contributions expect",
        defines={"ROUNDS": 3, "GENERATIONS": 1, "PARTIAL": 1, "CONTRIBUTIONS_EXPECT": 2},
    ),
    Variant(
        name="progress",
        shows="if retransmissions get through in the end, all rounds of all workers end",
        defines={"ROUNDS": 3, "GENERATIONS": 2, "LIVENESS": 1},
    ),
    Variant(
        name="no round check",
        shows="a version bit in place of the round (SwitchML's rule): a late duplicate corrupts",
        defines={"ROUNDS": 4, "GENERATIONS": 1, "ROUND_CHECK": 0},
        has_error=True,
    ),
    _tree(
        "exactly-once",
        "an inner switch and its root, loss, duplication, any delay on every hop: sums exact",
        ROUNDS=6,
        GENERATIONS=2,
    ),
    _tree(
        "partial",
        "any worker may flush at any time: all workers of both switches see the same result",
        ROUNDS=3,
        PARTIAL=1,
    ),
    _tree(
        "quorum",
        "the root closes with 2 of 3: all workers see the same result",
        ROUNDS=3,
        PARTIAL=1,
        QUORUM=2,
    ),
    _tree(
        "contributions expect two",
        "the root closes with what contributions expect: all workers see the same result",
        ROUNDS=3,
        PARTIAL=1,
        CONTRIBUTIONS_EXPECT=2,
        FLUSHES_EXPECT=3,
    ),
    _tree(
        "flushes expect two",
        "no round ends with fewer workers than a flush expects, whoever closes first",
        ROUNDS=3,
        PARTIAL=1,
        FLUSHES_EXPECT=2,
    ),
    _tree(
        "hot row",
        "sums of pushes are exact, though switches lose their registers and sum a round again",
        ROUNDS=4,
        PARTIAL=1,
        HOT=1,
    ),
    _tree(
        "progress",
        "if a retransmission gets to the root and back in the end, all rounds of all workers end",
        ROUNDS=3,
        GENERATIONS=2,
        LIVENESS=1,
    ),
    _tree(
        "progress without a worker below",
        "a worker of the inner switch stops: flushes end the others' rounds",
        is_large=True,
        ROUNDS=2,
        PARTIAL=1,
        LIVENESS=1,
    ),
    _tree(
        "progress without a worker above",
        "a worker of the root stops: flushes that the inner switch passes on end the rounds",
        is_large=True,
        ROUNDS=2,
        PARTIAL=1,
        LIVENESS=1,
        DEAD=2,
    ),
    _tree(
        "progress with a quorum",
        "2 of 3, a worker of the inner switch stops: rounds end",
        is_large=True,
        ROUNDS=2,
        PARTIAL=1,
        LIVENESS=1,
        QUORUM=2,
    ),
    _tree(
        "progress with flushes that expect two",
        "a worker of the root stops: no flush leaves out a worker whom the root still expects",
        ROUNDS=2,
        PARTIAL=1,
        LIVENESS=1,
        DEAD=2,
        FLUSHES_EXPECT=2,
    ),
    _tree(
        "progress with contributions that expect two",
        "the same if contributions expect two as well",
        ROUNDS=2,
        PARTIAL=1,
        LIVENESS=1,
        DEAD=2,
        FLUSHES_EXPECT=2,
        CONTRIBUTIONS_EXPECT=2,
    ),
    _tree_defect(
        "the root alone heeds what a flush expects",
        "a round ends with two workers for a flush that expects three",
        ROUNDS=3,
        PARTIAL=1,
        FLUSHES_EXPECT=3,
        INNER_EXPECTS=0,
    ),
    _tree_defect(
        "the root alone heeds what a flush expects, and waits",
        "a worker that the inner switch has left out is missed by the root for ever",
        ROUNDS=2,
        PARTIAL=1,
        LIVENESS=1,
        DEAD=2,
        FLUSHES_EXPECT=2,
        INNER_EXPECTS=0,
    ),
    _tree_defect(
        "a leaf ends its round early",
        "the root waits for ever for a worker that the inner switch has left out",
        ROUNDS=2,
        PARTIAL=1,
        LIVENESS=1,
        DEAD=2,
        FLUSHES_EXPECT=2,
        CONTRIBUTIONS_EXPECT=2,
        EARLY_LEAF=1,
    ),
    _tree_defect(
        "a child's second sum added",
        "a restarted leaf sums a round of a hot row again, and the root counts pushes twice",
        PARTIAL=1,
        HOT=1,
        CHILD_CHECK=0,
    ),
    _tree_defect(
        "flushes expect more workers than an inner switch has left",
        "no defect of a switch, but a limit: such flushes do not end the round",
        ROUNDS=2,
        PARTIAL=1,
        LIVENESS=1,
        DEAD=1,
        FLUSHES_EXPECT=2,
    ),
    _tree_defect(
        "no round check of contributions",
        "a late duplicate gets into the inner switch's sum",
        CONTRIBUTION_CHECK=0,
    ),
    _tree_defect(
        "no round check of results",
        "a late duplicate of an old result ends the round",
        RESULT_CHECK=0,
    ),
    _tree_defect(
        "results while open",
        "an old result ends a round that is still being summed",
        OPEN_CHECK=0,
    ),
    _tree_defect(
        "results from children",
        "a child makes up a result for the others",
        ROGUE=1,
        PARENT_CHECK=0,
    ),
    _tree_defect(
        "results not stored",
        "a retransmission is answered with the partial sum",
        STORES=0,
    ),
    _tree_defect(
        "late contributions added",
        "the inner switch sends two different sums for one round",
        ROUNDS=3,
        PARTIAL=1,
        ADDS_LATE=1,
    ),
    _tree_defect(
        "sent up once only",
        "a loss between the switches stops the job",
        ROUNDS=3,
        LIVENESS=1,
        RESENDS=0,
    ),
    _tree_defect(
        "flushes not passed on",
        "a worker of the root stops, and with it the workers of the inner switch",
        ROUNDS=2,
        PARTIAL=1,
        LIVENESS=1,
        DEAD=2,
        RELAYS=0,
    ),
    _tree_defect(
        "flushes of one level",
        "a worker of the root stops, and no flush is meant for the root",
        ROUNDS=2,
        PARTIAL=1,
        LIVENESS=1,
        DEAD=2,
        FLUSHES_RISE=0,
    ),
    _tree_defect(
        "no notices",
        "a worker whose round is past waits for ever",
        ROUNDS=3,
        PARTIAL=1,
        LIVENESS=1,
        NOTICES=0,
    ),
    _tree_defect(
        "a quorum without flushes",
        "the inner switch waits for all its children: a quorum of the root does not reach it",
        ROUNDS=3,
        PARTIAL=1,
        LIVENESS=1,
        QUORUM=2,
        FLUSHES=0,
    ),
    *HOT_VARIANTS,
    *LOSS_VARIANTS,
]
