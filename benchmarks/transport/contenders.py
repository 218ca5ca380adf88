# SPDX-FileCopyrightText: 2026 The Switchfold Authors
# SPDX-License-Identifier: Apache-2.0
"""The contenders: who sums, over which fabric, and what a sum may lack."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Final, Literal

from switchfold.hostlib.hosts import LinkCosts

AddingPlace = Literal["switches", "server", "shards", "hosts", "tcp-server"]
"""Who adds: the switches of the fabric, softswitch on a server's host, softswitch on each worker's
host (each sums a part of the tensor), the workers among themselves by TCP, or a TCP server."""
NUM_WORKERS: Final = 4
ALL_LOSS: Final = 0.999
"""The largest tolerance in use: 1 itself is not a tolerance, as every chunk has somebody."""

REPAIR: Final = "repair"
RING: Final = "ring"
"""The contenders that others are compared with: the first one first."""
_CONTROLS: Final = ("cubic", "dctcp")
"""Of TCP, beside the kernel's default."""


@dataclass(frozen=True, kw_only=True)
class TransportContender:
    """One way to sum a tensor."""

    name: str
    title: str
    place: AddingPlace
    tolerance: float | None = None
    """Share of contributions that a sum may lack; None: the job tolerates nothing. Workers that add
    among themselves leave out this share before they send."""
    congestion_control: str = ""
    """Of TCP; "": the kernel's default."""

    @property
    def has_datagrams(self) -> bool:
        """Whether values go by UDP."""
        return self.place in ("switches", "server", "shards")

    @property
    def is_on_plain_fabric(self) -> bool:
        """Whether its fabric only routes."""
        return self.place != "switches"


def contenders(tolerance: float, elements: int) -> dict[str, TransportContender]:
    """Return all contenders by name; `tolerance` is that of those that have one.

    The number of elements of the tensor decides which algorithm the hosts choose among themselves.
    """
    share = f"{100 * tolerance:g} %"
    algorithm = LinkCosts().choose(NUM_WORKERS, elements).value
    every = (
        TransportContender(name="repair", title="switches, selective repair", place="switches"),
        TransportContender(
            name="tolerant",
            title=f"switches, {share} tolerated",
            place="switches",
            tolerance=tolerance,
        ),
        TransportContender(
            name="all", title="switches, all tolerated", place="switches", tolerance=ALL_LOSS
        ),
        TransportContender(name="server", title="UDP server, selective repair", place="server"),
        TransportContender(
            name="server-tolerant",
            title=f"UDP server, {share} tolerated",
            place="server",
            tolerance=tolerance,
        ),
        TransportContender(name="shards", title="UDP transpose, selective repair", place="shards"),
        TransportContender(
            name="shards-tolerant",
            title=f"UDP transpose, {share} tolerated",
            place="shards",
            tolerance=tolerance,
        ),
        TransportContender(name=RING, title=f"TCP {algorithm}", place="hosts"),
        TransportContender(
            name="ring-dropping",
            title=f"TCP {algorithm}, {share} not sent",
            place="hosts",
            tolerance=tolerance,
        ),
        *(
            TransportContender(
                name=f"ring-{control}",
                title=f"TCP {algorithm}, {control.upper()}",
                place="hosts",
                congestion_control=control,
            )
            for control in _CONTROLS
        ),
        TransportContender(name="ps", title="TCP parameter server", place="tcp-server"),
    )
    return {each.name: each for each in every}


def chosen(text: str, tolerance: float, elements: int) -> list[TransportContender]:
    """Return the contenders that commas separate, in the order of the table; "" for all.

    Raises ValueError that names the choices.
    """
    known = contenders(tolerance, elements)
    names = [name.strip() for name in text.split(",")] if text else list(known)
    if unknown := [name for name in names if name not in known]:
        raise ValueError(f"no contender {', '.join(unknown)}; choose from {', '.join(known)}")
    if REPAIR not in names:
        raise ValueError(f"{REPAIR} must be among the contenders: others are compared with it")
    return [each for each in known.values() if each.name in names]


def places(each: Sequence[TransportContender]) -> set[AddingPlace]:
    """Return who adds for these contenders."""
    return {contender.place for contender in each}
