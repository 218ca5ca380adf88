# SPDX-FileCopyrightText: 2026 The Switchfold Authors
# SPDX-License-Identifier: Apache-2.0
"""Every generation that anybody has ever seen, and whether they only grew."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from kill_points.state_file import State
from kill_points.switch_tables import Tables


class GenerationHistory:
    """Is told of the same world again and again; outlives databases."""

    def __init__(self) -> None:
        self.newest = 0
        """The newest that anything has shown."""
        self._known: set[int] = set()

    def note(
        self, state: State, switches: Mapping[str, Tables], workers: Mapping[str, Sequence[int]]
    ) -> list[str]:
        """Return what has gone backwards since the last time.

        `workers`: by process, the generations of all its results, in order.
        """
        found: list[str] = []
        if state.generation < self.newest:
            found.append(f"the database counts from {state.generation}, after {self.newest}")
        seen = {view["generation"] for view in state.views}
        for name, tables in switches.items():
            generations = {params["generation"] for _, params in tables.entries["job"].values()}
            if foreign := generations - seen:
                found.append(f"switch {name} has {sorted(foreign)}, the database does not")
            seen |= generations
        for name, generations in workers.items():
            if generations != sorted(generations):
                found.append(f"{name} went back: {generations}")
            seen.update(generations)
        if old := [one for one in seen - self._known if one <= self.newest]:
            found.append(f"generations {sorted(old)} are new, and not above {self.newest}")
        self._known |= seen
        self.newest = max([self.newest, state.generation, *seen])
        return found
