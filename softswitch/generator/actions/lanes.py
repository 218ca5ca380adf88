# SPDX-FileCopyrightText: 2026 The Switchfold Authors
# SPDX-License-Identifier: Apache-2.0
"""Loops out of repetition: equal statements over consecutive lanes become one loop over arrays.

Statements are compared as text whose array indices and action variables are marked. A block of
statements may repeat if every index stays or grows by a constant, and every variable stays or is
private to its block.
"""

from collections import Counter

from ..headers import MARK, resolve_marks

MIN_REPEATS = 4
MIN_STATEMENTS = 8
MAX_PERIOD = 48
LOOP = "for (size_t i = 0;"
"""What a rolled loop begins with."""


class _Statement:
    """A statement taken apart into its text between marks, and the marks."""

    def __init__(self, text: str) -> None:
        self.text = text
        self.shape = MARK.sub(lambda found: f"\x01{found[1]}\x02", text)
        self.marks = [(found[1], found[2]) for found in MARK.finditer(text)]


def count_locals(statements: list[str]) -> Counter[str]:
    """Count how often each action variable is named."""
    return Counter(
        found[2] for text in statements for found in MARK.finditer(text) if found[1] == "L"
    )


def roll(statements: list[str], totals: Counter[str]) -> list[str]:
    """Replace repetition by loops; totals counts the variables of the whole action."""
    items = [_Statement(text) for text in statements]
    result: list[str] = []
    at = 0
    while at < len(items):
        found = _find_loop(items, at, totals)
        if found is None:
            result.append(items[at].text)
            at += 1
            continue
        period, repeats = found
        shift = _best_shift(items, at, period)
        if shift:
            result += [item.text for item in items[at : at + shift]]
            at += shift
            repeats = _repeats(items, at, period, totals)
        result.append(_emit_loop(items[at : at + period * repeats], period, repeats))
        at += period * repeats
    return result


def _find_loop(items: list[_Statement], at: int, totals: Counter[str]) -> tuple[int, int] | None:
    limit = min(MAX_PERIOD, (len(items) - at) // MIN_REPEATS)
    for period in range(1, limit + 1):
        if items[at].shape != items[at + period].shape:
            continue
        repeats = _repeats(items, at, period, totals)
        if repeats >= MIN_REPEATS and repeats * period >= MIN_STATEMENTS:
            return period, repeats
    return None


def _best_shift(items: list[_Statement], at: int, period: int) -> int:
    """Statements to leave before the loop, so that an iteration stays within one lane.

    Iterations that read what the one before wrote could not run side by side.
    """

    def spread(shift: int) -> int:
        first = _block(items, at + shift, period)
        second = _block(items, at + shift + period, period)
        pairs = zip(first, second, strict=True)
        moving = {old for (kind, old), (_, new) in pairs if kind == "I" and old != new}
        return len(moving)

    return min(range(period), key=spread)


def _block(items: list[_Statement], start: int, period: int) -> list[tuple[str, str]]:
    return [mark for item in items[start : start + period] for mark in item.marks]


def _repeats(items: list[_Statement], at: int, period: int, totals: Counter[str]) -> int:
    first = _block(items, at, period)
    second = _block(items, at + period, period)
    repeats = 1
    while at + (repeats + 1) * period <= len(items):
        start = at + repeats * period
        shapes = zip(items[at : at + period], items[start : start + period], strict=True)
        if any(left.shape != right.shape for left, right in shapes):
            break
        block = _block(items, start, period)
        if not _is_step(first, second, block, repeats) or not _is_private(first, block, totals):
            break
        repeats += 1
    return repeats


def _is_step(
    first: list[tuple[str, str]],
    second: list[tuple[str, str]],
    block: list[tuple[str, str]],
    step: int,
) -> bool:
    for (kind, start), (_, after), (_, now) in zip(first, second, block, strict=True):
        if kind == "I" and int(now) != int(start) + step * (int(after) - int(start)):
            return False
    return True


def _is_private(
    first: list[tuple[str, str]], block: list[tuple[str, str]], totals: Counter[str]
) -> bool:
    """Whether variables that differ are renamed one to one and used nowhere else."""
    names: dict[str, str] = {}
    for (kind, old), (_, new) in zip(first, block, strict=True):
        if kind == "L" and names.setdefault(old, new) != new:
            return False
    if len(set(names.values())) != len(names):
        return False
    renamed = {old: new for old, new in names.items() if old != new}
    in_first = Counter(name for kind, name in first if kind == "L")
    in_block = Counter(name for kind, name in block if kind == "L")
    return all(
        in_first[old] == totals[old] and in_block[new] == totals[new]
        for old, new in renamed.items()
    )


def _emit_loop(items: list[_Statement], period: int, repeats: int) -> str:
    first = _block(items, 0, period)
    second = _block(items, period, period)
    marks = zip(first, second, strict=True)
    texts: list[str] = []
    for item in items[:period]:
        parts = MARK.split(item.text)
        line = parts[0]
        for index in range(1, len(parts), 3):
            kind, value = parts[index], parts[index + 1]
            _, (_, after) = next(marks)
            line += value if kind == "L" else _index(int(value), after)
            line += parts[index + 2]
        texts.append(line)
    body = "\n".join(texts)
    return f"{LOOP} i < {repeats}; i++) {{\n{body}\n}}"


def _index(start: int, after: str) -> str:
    step = int(after) - start
    if step == 0:
        return str(start)
    term = "i" if step == 1 else f"i * {step}" if step > 0 else f"- i * {-step}"
    return f"{start} {term}" if step < 0 else term if start == 0 else f"{start} + {term}"


def finish(statements: list[str]) -> str:
    """Join statements and resolve the marks that are left."""
    return resolve_marks("\n".join(statements))
