# SPDX-FileCopyrightText: 2026 The Switchfold Authors
# SPDX-License-Identifier: Apache-2.0
"""Makes loops of repetition: blocks of statements that differ only in lanes and private variables.

A block may repeat if every lane stays or moves by a constant, and every variable of the action
stays or is used in its block alone.
"""

from collections import Counter
from dataclasses import dataclass, replace

from .operands import Lane, Local, Node, rebuild, walk
from .statements import Body, If, Loop, Statement

MIN_REPEATS = 4
MIN_STATEMENTS = 8
MAX_PERIOD = 48


def find_loops(body: Body) -> Body:
    """Replace repetition in the body of an action, and in its branches, by loops.

    Every variable of the action is written before it is read.
    """
    return _find_loops(body, _locals(body))


def _find_loops(body: Body, totals: Counter[str]) -> Body:
    inner = tuple(
        replace(
            item,
            taken=_find_loops(item.taken, totals),
            other=_find_loops(item.other, totals),
        )
        if isinstance(item, If)
        else item
        for item in body
    )
    return _Series(inner, totals).roll()


def _locals(body: Body) -> Counter[str]:
    """How often each variable of the action is named."""
    return Counter(node.name for node in walk(body) if isinstance(node, Local))


@dataclass(frozen=True)
class _Shaped:
    """A statement taken apart into what must be equal, its lanes and its variables."""

    statement: Statement
    shape: Statement
    lanes: tuple[int, ...]
    names: tuple[str, ...]


def _take_apart(statement: Statement) -> _Shaped:
    lanes: list[int] = []
    names: list[str] = []

    def blank(node: Node) -> Node | None:
        match node:
            case Lane(start):
                lanes.append(start)
                return Lane(0)
            case Local(name):
                names.append(name)
                return replace(node, name="")
            case Loop():
                return node
            case _:
                return None

    shape = rebuild(statement, blank)
    return _Shaped(statement, shape, tuple(lanes), tuple(names))


class _Series:
    """Statements in a row."""

    def __init__(self, body: Body, totals: Counter[str]) -> None:
        self.items = [_take_apart(statement) for statement in body]
        self.totals = totals
        """How often the whole action names each variable."""
        numbers: dict[Statement, int] = {}
        self.shapes = [numbers.setdefault(item.shape, len(numbers)) for item in self.items]
        """Numbers that are equal where the shapes are."""

    def roll(self) -> Body:
        """The statements with loops in place of repetition."""
        result: list[Statement] = []
        at = 0
        while at < len(self.items):
            period = self._find_period(at)
            if period is None:
                result.append(self.items[at].statement)
                at += 1
                continue
            shift = self._best_shift(at, period)
            result += [item.statement for item in self.items[at : at + shift]]
            at += shift
            count = self._repeats(at, period)
            result.append(self._loop(at, period, count))
            at += period * count
        return tuple(result)

    def _find_period(self, at: int) -> int | None:
        """Statements of the shortest block that starts here and repeats often enough."""
        limit = min(MAX_PERIOD, (len(self.items) - at) // MIN_REPEATS)
        for period in range(1, limit + 1):
            if self.shapes[at] != self.shapes[at + period]:
                continue
            repeats = self._repeats(at, period)
            if repeats >= MIN_REPEATS and repeats * period >= MIN_STATEMENTS:
                return period
        return None

    def _best_shift(self, at: int, period: int) -> int:
        """Statements to leave before the loop, so that a turn stays within one lane.

        Turns that read what the one before wrote could not run side by side.
        """

        def spread(shift: int) -> int:
            first = self._lanes(at + shift, period)
            second = self._lanes(at + shift + period, period)
            return len({old for old, new in zip(first, second, strict=True) if old != new})

        return min(range(period), key=spread)

    def _lanes(self, start: int, period: int) -> list[int]:
        return [lane for item in self.items[start : start + period] for lane in item.lanes]

    def _names(self, start: int, period: int) -> list[str]:
        return [name for item in self.items[start : start + period] for name in item.names]

    def _repeats(self, at: int, period: int) -> int:
        """How often the block that starts here comes in a row."""
        shapes = self.shapes[at : at + period]
        first, second = self._lanes(at, period), self._lanes(at + period, period)
        names = self._names(at, period)
        repeats = 1
        while at + (repeats + 1) * period <= len(self.items):
            start = at + repeats * period
            if self.shapes[start : start + period] != shapes:
                break
            now = self._lanes(start, period)
            expected = (
                lane + repeats * (after - lane) for lane, after in zip(first, second, strict=True)
            )
            if now != list(expected) or not self._is_private(names, self._names(start, period)):
                break
            repeats += 1
        return repeats

    def _is_private(self, first: list[str], block: list[str]) -> bool:
        """Whether variables that differ are renamed one to one and used nowhere else."""
        pairs = set(zip(first, block, strict=True))
        renamed = {old: new for old, new in pairs if old != new}
        if len(pairs) != len(set(first)) or len(pairs) != len(set(block)):
            return False
        return all(
            first.count(old) == self.totals[old] and block.count(new) == self.totals[new]
            for old, new in renamed.items()
        )

    def _loop(self, at: int, period: int, count: int) -> Loop:
        first, second = self._lanes(at, period), self._lanes(at + period, period)
        steps = (after - lane for lane, after in zip(first, second, strict=True))

        def move(node: Node) -> Node | None:
            if isinstance(node, Lane):
                return replace(node, step=next(steps))
            return node if isinstance(node, Loop) else None

        body = tuple(rebuild(item.statement, move) for item in self.items[at : at + period])
        return Loop(count, body, source=body[0].source)
