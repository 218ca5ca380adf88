# SPDX-FileCopyrightText: 2026 The Switchfold Authors
# SPDX-License-Identifier: Apache-2.0
"""Gathers the facts of cluster and model, and writes the information book."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any, Final, Literal, final

from ..errors import SchemeError
from ..parameter_server.layout import PAIR_BYTES, PairLayout
from .best_scheme import Cost, three_way, two_way
from .book import STORED, InformationBook, LayerEntry, Place
from .cluster import Cluster
from .cost import Scheme, check_scheme
from .layer import Layer
from .wire_cost import goes_by_multicast, seconds

FIRST_PORT: Final = 21400
"""First port for shards, then workers, that come without a port."""
Automatic = Literal["auto", "two-way"]
Wanted = Automatic | Scheme
Choice = Wanted | str | Mapping[str, Wanted | str]
"""One choice for all layers, or a choice by layer; layers without one get "auto"."""


@dataclass(frozen=True, kw_only=True)
class JobHosts:
    """Where the processes of a job listen."""

    job: str = ""
    """Name of the job."""
    workers: Sequence[tuple[str, int]] = ()
    """(address, port) of each; port 0: a free number from `first_port` on. Without workers,
    addresses stay empty."""
    servers: Sequence[tuple[str, int]] = ()
    """Of each shard, likewise; co-located shards get the workers' addresses."""
    first_port: int = FIRST_PORT


@dataclass(frozen=True, kw_only=True)
class CostModel:
    """By what "auto" chooses a scheme."""

    cost: Cost = seconds
    """The measure that it minimises."""
    is_multicast: Callable[[Layer, Cluster], bool] = goes_by_multicast
    """Returns whether a switch multicasts the layer's factors."""


_NOWHERE: Final = JobHosts()
_IN_SECONDS: Final = CostModel()


@final
class Coordinator:
    """Chooses the schemes for all hosts; one host has it and sends the book to the others.

    `scheme`: "auto" (PS, INA or SFB), "two-way" (PS or SFB), a mapping, or one scheme for all
    layers; layers without factors then use PS in place of SFB or Adam. Raises SchemeError.
    """

    def __init__(
        self,
        layers: Sequence[Layer],
        cluster: Cluster,
        *,
        hosts: JobHosts = _NOWHERE,
        scheme: Choice = "auto",
        pair_bytes: int = PAIR_BYTES,
        costs: CostModel = _IN_SECONDS,
    ) -> None:
        self._layers = tuple(layers)
        self._costs = costs
        self._hosts = hosts
        self._pair_bytes = pair_bytes
        self._wanted = _wanted(scheme, self._layers)
        self._book = self._write(1, cluster)

    @property
    def book(self) -> InformationBook:
        """The newest book."""
        return self._book

    def query(self, name: str) -> LayerEntry:
        """Return the book's entry of a layer; SchemeError if it is unknown."""
        return self._book.query(name)

    def best_scheme(self, name: str) -> Scheme:
        """Return the scheme of a layer; SchemeError if it is unknown."""
        return self._book.best_scheme(name)

    def change(
        self,
        *,
        workers: Sequence[tuple[str, int]] | None = None,
        servers: Sequence[tuple[str, int]] | None = None,
        **facts: Any,
    ) -> InformationBook:
        """Choose again for a cluster with other facts; the epoch rises if the book changes.

        `facts` are fields of `Cluster`, such as batch or slots. With `workers` or `servers`,
        num_workers or num_servers defaults to their number. Raises SchemeError, which leaves the
        book unchanged.
        """
        old = self._book, self._hosts
        if workers is not None:
            self._hosts = replace(self._hosts, workers=workers)
            facts.setdefault("num_workers", len(workers))
        if servers is not None:
            self._hosts = replace(self._hosts, servers=servers)
            facts.setdefault("num_servers", len(servers))
        try:
            book = self._write(self._book.epoch, self._book.cluster.replace(**facts))
            if book != self._book:
                self._book = self._write(self._book.epoch + 1, book.cluster)
        except SchemeError:
            self._book, self._hosts = old
            raise
        return self._book

    def _write(self, epoch: int, cluster: Cluster) -> InformationBook:
        layout = PairLayout(cluster.num_servers, pair_bytes=self._pair_bytes)
        entries: list[LayerEntry] = []
        for layer in self._layers:
            scheme = self._decide(layer, cluster)
            pairs = ()
            if scheme in STORED:
                number = layout.add(layer.name, layer.num_values, is_whole=scheme is Scheme.ADAM)
                pairs = layout.keys[number].pairs
            is_copied = scheme is Scheme.SFB and self._costs.is_multicast(layer, cluster)
            entries.append(LayerEntry(layer=layer, scheme=scheme, pairs=pairs, is_copied=is_copied))
        servers, workers = self._hosts.servers, self._hosts.workers
        if not servers and workers and cluster.is_colocated:
            servers = [
                (workers[shard % len(workers)][0], 0) for shard in range(cluster.num_servers)
            ]
        places = self._places(
            [*(servers or [("", 0)] * cluster.num_servers)],
            [*(workers or [("", 0)] * cluster.num_workers)],
        )
        count = len(servers) or cluster.num_servers
        return InformationBook(
            epoch=epoch,
            job=self._hosts.job,
            cluster=cluster,
            pair_bytes=self._pair_bytes,
            servers=places[:count],
            workers=places[count:],
            entries=tuple(entries),
        )

    def _decide(self, layer: Layer, cluster: Cluster) -> Scheme:
        wanted = self._wanted[layer.name]
        if wanted == "auto":
            return three_way(layer, cluster, self._costs.cost)
        if wanted == "two-way":
            return two_way(layer, cluster)
        if wanted is Scheme.INA and not cluster.can_aggregate:
            raise SchemeError(
                f"layer {layer.name} has the scheme 'ina', but there is no switch or it has too few"
                f" free slots ({cluster.slots}); choose 'auto', 'ps' or 'sfb'"
            )
        return wanted

    def _places(
        self, servers: list[tuple[str, int]], workers: list[tuple[str, int]]
    ) -> tuple[Place, ...]:
        """Return all places; those without a port get one that no other place on any host has."""
        taken = {port for _, port in (*servers, *workers)}
        free = (port for port in range(self._hosts.first_port, 1 << 16) if port not in taken)
        places: list[Place] = []
        for address, port in (*servers, *workers):
            given = port or next(free, 0)
            if not given:
                raise SchemeError(
                    f"no free port from {self._hosts.first_port} on; choose a lower first_port"
                )
            places.append(Place(address, given))
        return tuple(places)


def _wanted(choice: Choice, layers: Sequence[Layer]) -> dict[str, Wanted]:
    """Return the wanted scheme of each layer."""
    if isinstance(choice, Mapping):
        unknown = sorted(set(choice) - {layer.name for layer in layers})
        if unknown:
            raise SchemeError(
                f"a scheme is given for {unknown[0]!r}, but no layer is called that; layers are"
                f" {', '.join(layer.name for layer in layers[:8])}"
            )
        found: dict[str, Wanted] = {}
        for layer in layers:
            wanted = parse_scheme(choice.get(layer.name, "auto"))
            if isinstance(wanted, Scheme):
                check_scheme(wanted, layer)
            found[layer.name] = wanted
        return found
    wanted = parse_scheme(choice)
    by_factors = wanted in (Scheme.SFB, Scheme.ADAM)
    return {
        layer.name: Scheme.PS if by_factors and not layer.has_factors else wanted
        for layer in layers
    }


def parse_scheme(wanted: Wanted | str) -> Wanted:
    """Return the scheme or the rule for its choice; SchemeError lists the possible values."""
    if wanted == "auto" or wanted == "two-way":  # noqa: PLR1714 - types are narrowed by this
        return wanted
    runnable = [each for each in Scheme if each is not Scheme.INA_PS]
    for each in runnable:
        if wanted in (each, each.value):
            return each
    names = ", ".join(each.value for each in runnable)
    raise SchemeError(f"no scheme {wanted!r}; choose auto, two-way, {names}")
