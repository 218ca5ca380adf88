# SPDX-FileCopyrightText: 2026 The Switchfold Authors
# SPDX-License-Identifier: Apache-2.0
"""The variants of the Promela models of hot rows: pushes, and values."""

from __future__ import annotations

from model_variant import Variant

HOT_ROW = "hot_row_protocol.pml"
HOT_VALUES = "hot_row_values.pml"


def _hot_row(name: str, shows: str, *, is_large: bool = False, **defines: int) -> Variant:
    return Variant(
        name=f"hot row: {name}", shows=shows, defines=defines, model=HOT_ROW, is_large=is_large
    )


def _long_hot_row(name: str, shows: str, **defines: int) -> Variant:
    return Variant(
        name=f"hot row: {name}", shows=shows, defines=defines, model=HOT_ROW, is_long=True
    )


def _hot_row_defect(name: str, shows: str, **defines: int) -> Variant:
    return Variant(
        name=f"hot row, {name}", shows=shows, defines=defines, model=HOT_ROW, has_error=True
    )


def _values_defect(name: str, shows: str, **defines: int) -> Variant:
    return Variant(
        name=f"values, {name}", shows=shows, defines=defines, model=HOT_VALUES, has_error=True
    )


HOT_VARIANTS = [
    _hot_row(
        "exactly-once",
        "2 workers, 2 pushes each, any loss, duplication and delay: each push counts once",
        ROUNDS=2,
    ),
    _hot_row(
        "exactly-once, three rounds",
        "a slot copy that is used again; what was too late goes by TCP",
        is_large=True,
        ROUNDS=3,
        RENAMES=0,
    ),
    _long_hot_row(
        "exactly-once, three rounds, pushed again",
        "the same, and what was too late may be pushed in another round",
        ROUNDS=3,
    ),
    _hot_row(
        "restarted switch",
        "the switch loses its registers at any time, and ends rounds twice",
        is_large=True,
        ROUNDS=2,
        RESTARTS=1,
        RENAMES=0,
    ),
    _hot_row(
        "restarted switch, pushed again",
        "the same, and what was too late may be pushed in another round: one push each",
        ROUNDS=3,
        PUSHES=1,
        RESTARTS=1,
    ),
    _long_hot_row(
        "restarted switch, pushed again, two pushes",
        "the same with two pushes each",
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
        is_large=True,
        ROUNDS=2,
        EPOCHS=2,
    ),
    _hot_row(
        "new epoch, the server looks at epochs alone",
        "the same, if it does not decide the rounds of the last entry; late pushes go by TCP",
        is_large=True,
        ROUNDS=2,
        EPOCHS=2,
        ENTRY_FENCE=0,
        RENAMES=0,
    ),
    _hot_row(
        "new epoch, the server looks at epochs alone, pushed again",
        "the same, and what was too late may be pushed in another round: one push each",
        ROUNDS=3,
        PUSHES=1,
        EPOCHS=2,
        ENTRY_FENCE=0,
    ),
    _long_hot_row(
        "new epoch, the server looks at epochs alone, pushed again, two pushes",
        "the same with two pushes each",
        ROUNDS=2,
        EPOCHS=2,
        ENTRY_FENCE=0,
    ),
    _hot_row(
        "any tree",
        "switches send any sums at any time, and the server crashes at any time",
        is_large=True,
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
        is_large=True,
        ROUNDS=2,
        GENERATIONS=2,
        ANY_TREE=1,
    ),
    _hot_row(
        "any tree, new process",
        "a worker's process is started again: no push of either counts twice",
        is_large=True,
        ANY_TREE=1,
        CRASHES=1,
        RENEWS=1,
    ),
    _long_hot_row(
        "restarted switch, three rounds",
        "a slot copy that is used again",
        ROUNDS=3,
        RESTARTS=1,
        RENAMES=0,
    ),
    _long_hot_row(
        "restarted switch, three workers",
        "the same with three workers",
        NUM_WORKERS=3,
        PUSHES=1,
        ROUNDS=3,
        RESTARTS=1,
        RENAMES=0,
    ),
    _hot_row(
        "progress by the switch",
        "if packets get through in the end, all pushes become durable, though nobody asks",
        is_large=True,
        LIVENESS=1,
        ROUNDS=3,
        FENCES=0,
    ),
    _long_hot_row(
        "progress by TCP",
        "if TCP gets through in the end, all pushes become durable, whatever switches do",
        LIVENESS=2,
        ROUNDS=2,
        ANY_TREE=1,
        CRASHES=1,
    ),
    _hot_row(
        "progress by TCP, no crash",
        "the same with a server that does not crash",
        is_large=True,
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
