# SPDX-FileCopyrightText: 2026 The Switchfold Authors
# SPDX-License-Identifier: Apache-2.0
"""Plans of small batches beside an integer program, in which transfers may pause and share links.

The paper's program was not available to us; this one is ours. Time is cut into slots. Each update
goes directly, or to one host, which sends the sum when it has all of its members.
"""

from __future__ import annotations

import random
from itertools import combinations_with_replacement
from typing import Any

import numpy as np
import pytest

from switchfold.controller.scheduler.grouping import AggregationPlaces, plan_groups
from switchfold.controller.scheduler.network import ResidualNetwork
from switchfold.controller.scheduler.ordering import order_transfers
from transfer_cases import push, star

optimize = pytest.importorskip("scipy.optimize", reason="the program needs SciPy to be solved")
sparse = pytest.importorskip("scipy.sparse", reason="the program needs SciPy to be solved")

SLOT_S = 0.5
UPDATE = 1.0
"""Size of an update, and capacity of a whole link in a second."""


class TransferProgram:
    """Columns, rows and limits of one mixed-integer program, built by name."""

    def __init__(self) -> None:
        self._columns: dict[tuple[object, ...], int] = {}
        self._costs: list[float] = []
        self._most: list[float] = []
        self._whole: list[int] = []
        self._rows: list[tuple[dict[int, float], float, float]] = []

    def column(
        self, *name: object, cost: float = 0.0, most: float = np.inf, whole: bool = False
    ) -> int:
        if name not in self._columns:
            self._columns[name] = len(self._costs)
            self._costs.append(cost)
            self._most.append(1.0 if whole else most)
            self._whole.append(int(whole))
        return self._columns[name]

    def row(self, terms: dict[int, float], least: float, most: float) -> None:
        self._rows.append((terms, least, most))

    def least(self) -> float:
        matrix = sparse.lil_matrix((len(self._rows), len(self._costs)))
        for number, (terms, _, _) in enumerate(self._rows):
            for column, factor in terms.items():
                matrix[number, column] = factor
        found: Any = optimize.milp(
            self._costs,
            integrality=self._whole,
            bounds=optimize.Bounds(0, self._most),
            constraints=optimize.LinearConstraint(
                matrix.tocsr(), [row[1] for row in self._rows], [row[2] for row in self._rows]
            ),
            options={"mip_rel_gap": 1e-4},
        )
        assert found.success, found.message
        return float(found.fun)


def least_mean_commit_s(rates: list[float], helper: float | None, slots: int) -> float:
    """A bound below which no plan is: commits count from the start of their last slot.

    `rates` are those of the workers' links as shares of the server's link, `helper` that of the
    host that may gather, None if there is none.
    """
    program = TransferProgram()
    column, row = program.column, program.row
    times = range(slots)
    count = len(rates)
    in_sum = [column("in sum", i, whole=True) if helper else None for i in range(count)]

    def active(name: str, *index: int) -> list[int]:
        """Columns that are 1 until the last slot of a transfer."""
        flags = [column(name, *index, t, whole=True) for t in times]
        for t in times[1:]:
            row({flags[t]: 1, flags[t - 1]: -1}, -np.inf, 0)
        return flags

    for t in times:
        server = {column("direct", i, t): 1.0 for i in range(count)}
        if helper:
            server[column("sum", t)] = 1.0
            row({column("sum", t): 1}, 0, helper * SLOT_S)
            row({column("gather", i, t): 1.0 for i in range(count)}, 0, helper * SLOT_S)
        row(server, 0, SLOT_S)
    for i, rate in enumerate(rates):
        flags = active("direct is active", i)
        direct = {column("direct", i, t): 1.0 for t in times}
        chosen = in_sum[i]
        row(direct | ({chosen: UPDATE} if chosen is not None else {}), UPDATE, UPDATE)
        commit = column("commit", i, cost=1 / count)
        row({commit: 1} | dict.fromkeys(flags, -SLOT_S), -SLOT_S, np.inf)
        for t in times:
            row({column("direct", i, t): 1, flags[t]: -rate * SLOT_S}, -np.inf, 0)
            if chosen is not None:
                uplink = {column("direct", i, t): 1.0, column("gather", i, t): 1.0}
                row(uplink, 0, rate * SLOT_S)
        if chosen is not None:
            gathered = {column("gather", i, t): 1.0 for t in times}
            row(gathered | {chosen: -UPDATE}, 0, 0)
    if helper:
        _add_sum(program, active("sum is active"), count, slots)
    return program.least()


def _add_sum(program: TransferProgram, flags: list[int], count: int, slots: int) -> None:
    """The sum leaves when all members are there; its members are committed with it."""
    column, row = program.column, program.row
    horizon_s = SLOT_S * slots
    row({column("sum", t): 1.0 for t in range(slots)}, 0, UPDATE)
    for i in range(count):
        chosen = column("in sum", i)
        row({column("sum", t): 1.0 for t in range(slots)} | {chosen: -UPDATE}, 0, np.inf)
        late = {column("commit", i): 1.0, chosen: -horizon_s}
        row(late | dict.fromkeys(flags, -SLOT_S), -horizon_s - SLOT_S, np.inf)
    for t in range(slots):
        row({column("sum", t): 1, flags[t]: -SLOT_S}, -np.inf, 0)
        may_leave = column("sum may leave", t, whole=True)
        row({column("sum", t): 1, may_leave: -SLOT_S}, -np.inf, 0)
        # With part of a slot in hand: what is gathered within a slot may leave within it.
        there = {column("gather", i, s): 1.0 for i in range(count) for s in range(t + 1)}
        wanted = {column("in sum", i): -UPDATE for i in range(count)}
        row(there | wanted | {may_leave: -count * UPDATE}, -count * UPDATE, np.inf)


def found_mean_commit_s(rates: list[float], helper: float | None) -> float:
    others: dict[str, int | tuple[int, int]] = {
        f"h{n}": round(100 * rate) for n, rate in enumerate(rates, 1)
    }
    places = AggregationPlaces()
    if helper:
        others["a1"] = round(100 * helper)
        places = AggregationPlaces(hosts=["a1"])
    residual = ResidualNetwork(star(0, others=others))
    requests = [push(n) for n in range(1, len(rates) + 1)]
    ordered, _ = order_transfers(residual.fork(), requests, 0.0)
    plan = plan_groups(residual, [each.request for each in ordered], 0.0, places)
    return sum(plan.commits_s.values()) / len(rates)


def test_program_knows_what_is_best_for_equal_updates() -> None:
    """Directly: 1, 2, 3, 4 s. With a host: 1, 2, and the sum of the others at 3 s."""
    assert least_mean_commit_s([1.0] * 4, None, 10) == pytest.approx(2.5 - SLOT_S, rel=1e-3)
    assert found_mean_commit_s([1.0] * 4, None) == pytest.approx(2.5)
    assert least_mean_commit_s([1.0] * 4, 1.0, 10) == pytest.approx(2.25 - SLOT_S, rel=1e-3)
    assert found_mean_commit_s([1.0] * 4, 1.0) == pytest.approx(2.25)


THREE = list(combinations_with_replacement([0.5, 1.0], 3))
FOUR = list(combinations_with_replacement([0.5, 1.0], 4))


@pytest.mark.parametrize(
    ("helper", "cases"), [(None, THREE + FOUR), (1.0, THREE), (0.5, THREE)], ids=str
)
def test_mean_commit_is_within_a_third_of_the_programs(
    helper: float | None, cases: list[tuple[float, ...]]
) -> None:
    for case in cases:
        bound_s = least_mean_commit_s(list(case), helper, 10)
        found_s = found_mean_commit_s(list(case), helper)
        assert found_s >= bound_s - 1e-3, case
        # In the program's own time, a commit is at the end of its slot.
        assert found_s <= 1.3 * (bound_s + SLOT_S), case


@pytest.mark.parametrize("seed", range(6))
def test_mean_commit_of_larger_batches_is_within_a_third_of_the_programs(seed: int) -> None:
    chance = random.Random(seed)
    rates = [chance.choice([0.5, 1.0]) for _ in range(5 + seed % 2)]
    bound_s = least_mean_commit_s(rates, None, 14)
    found_s = found_mean_commit_s(rates, None)
    assert bound_s - 1e-3 <= found_s <= 1.3 * (bound_s + SLOT_S), rates
