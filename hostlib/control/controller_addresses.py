# SPDX-FileCopyrightText: 2026 The Switchfold Authors
# SPDX-License-Identifier: Apache-2.0
"""Addresses of the controllers that share a database, and which of them to call."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any, Final, final

from ..errors import ConfigurationError

LEADER_METADATA: Final = "switchfold-leader-bin"
"""Trailing metadata of a controller that does not lead: the leader's address, "" if none leads."""


@final
class ControllerAddresses:
    """At first those that the caller names, separated by commas; then those learned, too."""

    def __init__(self, text: str) -> None:
        """Raises ConfigurationError when `text` names none."""
        self._all = [one.strip() for one in text.split(",") if one.strip()]
        if not self._all:
            raise ConfigurationError(
                f"controller {text!r} names no address; give HOST:PORT or unix:/PATH, several "
                "separated by commas"
            )
        self.current = self._all[0]
        """Which to call."""

    def __str__(self) -> str:
        return self.current

    @property
    def all(self) -> tuple[str, ...]:
        """All addresses that are known."""
        return tuple(self._all)

    @property
    def are_several(self) -> bool:
        """Whether there is another one to call."""
        return len(self._all) > 1

    def learn(self, addresses: Iterable[str]) -> None:
        """Add addresses that are not known yet."""
        self._all += [one for one in dict.fromkeys(addresses) if one and one not in self._all]

    def turn(self) -> None:
        """Call the next one."""
        self.current = self._all[(self._all.index(self.current) + 1) % len(self._all)]

    def follow(self, leader: str) -> None:
        """Call the leader that a standby has named; the next one if it names itself, or none."""
        if leader and leader != self.current:
            self.learn((leader,))
            self.current = leader
        else:
            self.turn()


def named_leader(error: Any) -> str | None:
    """Return the leader that a gRPC error of a standby names ("": none); None for other errors."""
    for key, value in error.trailing_metadata() or ():
        if key == LEADER_METADATA:
            return bytes(value).decode(errors="replace")
    return None
