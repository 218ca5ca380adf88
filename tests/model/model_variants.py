# SPDX-FileCopyrightText: 2026 The Switchfold Authors
# SPDX-License-Identifier: Apache-2.0
"""The variants of the Promela models, and what the checker must find in each."""

from __future__ import annotations

from dataclasses import dataclass

ONE_SWITCH = "slot_protocol.pml"
TREE = "tree_protocol.pml"
HOT_ROW = "hot_row_protocol.pml"
HOT_VALUES = "hot_row_values.pml"


@dataclass(frozen=True, kw_only=True)
class Variant:
    """One run of the model checker."""

    name: str
    shows: str
    defines: dict[str, int]
    model: str = ONE_SWITCH
    has_error: bool = False
    """Whether the checker must find an error."""
    is_long: bool = False
    """Whether the search takes so long that the tests leave it out."""

    @property
    def is_about_progress(self) -> bool:
        """Whether the checker looks for rounds that never end, under weak fairness."""
        return "LIVENESS" in self.defines


def _tree(name: str, shows: str, **defines: int) -> Variant:
    return Variant(name=f"tree: {name}", shows=shows, defines=defines, model=TREE)


def _tree_defect(name: str, shows: str, **defines: int) -> Variant:
    return Variant(name=f"tree, {name}", shows=shows, defines=defines, model=TREE, has_error=True)


def _hot_row(name: str, shows: str, **defines: int) -> Variant:
    return Variant(name=f"hot row: {name}", shows=shows, defines=defines, model=HOT_ROW)


def _hot_row_defect(name: str, shows: str, **defines: int) -> Variant:
    return Variant(
        name=f"hot row, {name}", shows=shows, defines=defines, model=HOT_ROW, has_error=True
    )


def _values_defect(name: str, shows: str, **defines: int) -> Variant:
    return Variant(
        name=f"values, {name}", shows=shows, defines=defines, model=HOT_VALUES, has_error=True
    )


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
        ROUNDS=2,
        PARTIAL=1,
        LIVENESS=1,
    ),
    _tree(
        "progress without a worker above",
        "a worker of the root stops: flushes that the inner switch passes on end the rounds",
        ROUNDS=2,
        PARTIAL=1,
        LIVENESS=1,
        DEAD=2,
    ),
    _tree(
        "progress with a quorum",
        "2 of 3, a worker of the inner switch stops: rounds end",
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
    _hot_row(
        "exactly-once",
        "2 workers, 2 pushes each, any loss, duplication and delay: each push counts once",
        ROUNDS=3,
    ),
    _hot_row(
        "restarted switch",
        "the switch loses its registers at any time, and ends rounds twice",
        ROUNDS=2,
        RESTARTS=1,
    ),
    _hot_row(
        "new generation",
        "the same, with rounds of a new view",
        ROUNDS=2,
        PUSHES=1,
        GENERATIONS=2,
        RESTARTS=1,
    ),
    _hot_row(
        "new epoch",
        "the row gets other keys and another exponent: no sum is taken for one of the others",
        ROUNDS=2,
        EPOCHS=2,
    ),
    _hot_row(
        "new epoch, the server looks at epochs alone",
        "the same, if it does not decide the rounds of the last entry",
        ROUNDS=2,
        EPOCHS=2,
        ENTRY_FENCE=0,
    ),
    _hot_row(
        "any tree",
        "switches send any sums at any time, and the server crashes at any time",
        ANY_TREE=1,
        CRASHES=1,
    ),
    _hot_row(
        "any tree, three workers",
        "the same with three workers",
        NUM_WORKERS=3,
        PUSHES=1,
        ROUNDS=2,
        ANY_TREE=1,
        CRASHES=1,
    ),
    _hot_row(
        "any tree, generations",
        "two views, and a worker that hears of the second one late",
        ROUNDS=2,
        GENERATIONS=2,
        ANY_TREE=1,
    ),
    _hot_row(
        "any tree, new process",
        "a worker's process is started again: no push of either counts twice",
        ANY_TREE=1,
        CRASHES=1,
        RENEWS=1,
    ),
    Variant(
        name="hot row: restarted switch, three rounds",
        shows="a slot copy that is used again",
        defines={"ROUNDS": 3, "RESTARTS": 1, "RENAMES": 0},
        model=HOT_ROW,
        is_long=True,
    ),
    Variant(
        name="hot row: restarted switch, three workers",
        shows="the same with three workers",
        defines={"NUM_WORKERS": 3, "PUSHES": 1, "ROUNDS": 3, "RESTARTS": 1, "RENAMES": 0},
        model=HOT_ROW,
        is_long=True,
    ),
    _hot_row(
        "progress by the switch",
        "if packets get through in the end, all pushes become durable, though nobody asks",
        LIVENESS=1,
        ROUNDS=3,
        FENCES=0,
    ),
    Variant(
        name="hot row: progress by TCP",
        shows="if TCP gets through in the end, all pushes become durable, whatever switches do",
        defines={"LIVENESS": 2, "ROUNDS": 2, "ANY_TREE": 1, "CRASHES": 1},
        model=HOT_ROW,
        is_long=True,
    ),
    _hot_row(
        "progress by TCP, no crash",
        "the same with a server that does not crash",
        LIVENESS=2,
        ROUNDS=2,
        ANY_TREE=1,
    ),
    _hot_row_defect(
        "second sums applied",
        "another sum of a round has a push that has come by TCP meanwhile",
        ANY_TREE=1,
        FIRST_ONLY=0,
    ),
    _hot_row_defect(
        "rounds forgotten in a crash",
        "the server applies a sum again",
        ANY_TREE=1,
        CRASHES=1,
        KEEPS_ROUNDS=0,
    ),
    _hot_row_defect(
        "acknowledged before logged",
        "a push is lost in a crash after its worker has dropped it",
        ANY_TREE=1,
        CRASHES=1,
        LOGS_FIRST=0,
    ),
    _hot_row_defect(
        "sent by TCP too early",
        "a push comes by TCP, and in a sum as well",
        ANY_TREE=1,
        KEEPS_NAME=0,
    ),
    _hot_row_defect(
        "pushed again too early",
        "a push has two names, and is in the sums of both rounds",
        RENAMES_LOST=0,
    ),
    _hot_row_defect(
        "one counted round remembered",
        "a worker sends by TCP what the round before the last has counted",
        ANY_TREE=1,
        KEEPS_TWO=0,
    ),
    _hot_row_defect(
        "counted rounds forgotten with their view",
        "a worker that was away sends by TCP what the last view has counted",
        ROUNDS=2,
        GENERATIONS=2,
        ANY_TREE=1,
        KEEPS_ROWS=0,
    ),
    _hot_row_defect(
        "epochs not compared",
        "a sum is taken for one of other keys",
        ROUNDS=2,
        EPOCHS=2,
        ENTRY_FENCE=0,
        EPOCH_CHECK=0,
    ),
    _hot_row_defect(
        "new process goes on with the old one's rounds",
        "two pushes have one name, so one of them is lost",
        ANY_TREE=1,
        RENEWS=1,
        PROCESS_FENCE=0,
    ),
    _hot_row_defect(
        "no wait for the round before the last",
        "a sum that the server has not got is overwritten",
        SLOT_RULE=0,
    ),
    _hot_row_defect(
        "nobody asks the server to decide",
        "what is lost in a switch is waited for without end",
        LIVENESS=2,
        ROUNDS=2,
        ANY_TREE=1,
        FENCES=0,
        ASKS=0,
    ),
    Variant(
        name="values: versions",
        shows="a worker reads what no crash takes back, and no version goes backwards in an epoch",
        defines={"VERSIONS": 3},
        model=HOT_VALUES,
    ),
    _values_defect(
        "written before logged",
        "a version has other values after a crash",
        WRITES_LOGGED=0,
    ),
    _values_defect(
        "old version in a new epoch",
        "the copy holds this version for the old epoch, so the row stays cold",
        NEW_VERSION=0,
    ),
    _values_defect(
        "older versions taken over",
        "a late packet takes a switch back",
        NEWER_ONLY=0,
    ),
    _values_defect(
        "any version asked for",
        "a switch that lost its registers answers with an older version",
        ASKS=0,
    ),
]
