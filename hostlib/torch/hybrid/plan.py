# SPDX-FileCopyrightText: 2026 The Switchfold Authors
# SPDX-License-Identifier: Apache-2.0
"""Chooses the scheme of each parameter and writes the information book."""

from __future__ import annotations

import json
import logging
import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import final

from ...errors import ConfigurationError, SchemeError
from ...schemes import Cluster, Coordinator, CostModel, InformationBook, JobHosts, Layer, Scheme
from ...schemes.coordinator import parse_scheme
from ...schemes.wire_cost import goes_by_multicast, seconds
from ...session import Session
from .trained_layers import TrainedLayer, TrainedParameter

SchemeChoice = str | Mapping[str, str]
"""One scheme for all layers, or a scheme by layer or parameter name."""
_FACTOR_SCHEMES = ("sfb", "adam")
_logger = logging.getLogger("switchfold.hostlib.torch")


@dataclass(frozen=True)
class Usage:
    """What a forward pass has shown about the model."""

    rows: dict[str, int]
    """Rows K of each weight with factors, by parameter name; 0: its module was not called."""
    order: list[int]
    """Layers in the order of their first use."""


@dataclass(frozen=True)
class HybridPlan:
    """The plan that all ranks follow."""

    book: InformationBook
    order: list[int]
    """Layers in the order in which their syncers start: that of the backward pass."""
    rows: dict[str, int]
    """Rows K of each weight with factors, by parameter name."""

    def of_epoch(self, epoch: int) -> HybridPlan:
        """Return the plan with a book of another epoch."""
        return replace(self, book=replace(self.book, epoch=epoch))

    def to_json(self) -> bytes:
        """Return the plan as JSON, for the other ranks."""
        fields = {"book": self.book.to_json(), "order": self.order, "rows": self.rows}
        return json.dumps(fields).encode()

    @classmethod
    def from_json(cls, text: bytes) -> HybridPlan:
        """Return the plan that `to_json` wrote."""
        read = json.loads(text)
        return cls(InformationBook.from_json(read["book"]), read["order"], read["rows"])


def cluster_facts(
    given: Cluster | None,
    *,
    num_workers: int,
    num_servers: int,
    batch: int,
    session: Session | None,
    multicast: bool,
) -> Cluster:
    """Return the facts of a job: the given ones, updated from the session and the ranks.

    `num_servers` 0: each worker hosts a shard.
    """
    facts: dict[str, object] = {"num_workers": num_workers, "batch": max(batch, 1)}
    facts["num_servers"] = num_servers
    facts["is_colocated"] = not num_servers
    facts["has_switch"] = session is not None and session.view.is_on_switch
    if session is not None:
        facts["slots"] = min(session.view.slot_count, given.slots if given else 1 << 31)
        facts["values_per_packet"] = session.view.values_per_packet
    facts["has_multicast"] = multicast and session is not None and session.can_multicast
    if multicast and not facts["has_multicast"]:
        _logger.warning("factors go by TCP: no single switch reaches all ranks for a multicast")
    return (given or Cluster(num_workers=num_workers)).replace(**facts)


@final
class Planner:
    """Makes the plan on rank 0."""

    def __init__(
        self,
        layers: Sequence[TrainedLayer],
        choice: SchemeChoice,
        *,
        job: str,
        is_partial: bool,
    ) -> None:
        self._layers = layers
        self._job = job
        self._is_partial = is_partial
        self._parameters = [parameter for layer in layers for parameter in layer.parameters]
        self._choice = self._by_parameter(choice)

    def _by_parameter(self, choice: SchemeChoice) -> dict[str, str]:
        """Return the wanted scheme by parameter name; only weights with factors get sfb or adam."""
        if isinstance(choice, str):
            choice = {layer.name: choice for layer in self._layers}
        wanted: dict[str, str] = {}
        known = {layer.name: layer for layer in self._layers}
        names = {parameter.name: parameter for parameter in self._parameters}
        for name, scheme in choice.items():
            try:
                parse_scheme(scheme)
            except SchemeError as error:
                raise ConfigurationError(f"scheme for {name}: {error}") from error
            if name in names:
                if scheme in _FACTOR_SCHEMES and not names[name].linears:
                    raise ConfigurationError(
                        f"scheme {scheme!r} for {name}: only weights of nn.Linear modules have"
                        " factors; choose 'ps', 'ina' or 'auto'"
                    )
                wanted[name] = scheme
            elif name in known:
                for parameter in known[name].parameters:
                    is_possible = parameter.linears or scheme not in _FACTOR_SCHEMES
                    wanted.setdefault(parameter.name, scheme if is_possible else "auto")
            else:
                raise ConfigurationError(
                    f"a scheme is given for {name!r}, but the model has no such layer; it has"
                    f" {', '.join([*known][:8])}"
                )
        return wanted

    def plan(
        self,
        cluster: Cluster,
        usage: Usage | None,
        *,
        workers: Sequence[tuple[str, int]],
        servers: Sequence[tuple[str, int]],
    ) -> HybridPlan:
        """Choose the schemes. Without a usage, all linear layers have the cluster's K rows."""
        layers: list[Layer] = []
        rows: dict[str, int] = {}
        schemes: dict[str, str] = {}
        for parameter in self._parameters:
            has_factors = bool(parameter.linears)
            if has_factors:
                seen = cluster.batch if usage is None else usage.rows.get(parameter.name, 0)
                has_factors = seen > 0
                rows[parameter.name] = seen
            layers.append(parameter.as_layer(has_factors=has_factors))
            schemes[parameter.name] = self._wanted(parameter, cluster, has_factors=has_factors)

        def cost(scheme: Scheme, layer: Layer, facts: Cluster) -> float:
            if self._is_partial and scheme is Scheme.SFB:
                return math.inf  # factors of a late worker cannot be left out
            return seconds(scheme, layer, facts.replace(batch=rows.get(layer.name) or 1))

        def is_multicast(layer: Layer, facts: Cluster) -> bool:
            return goes_by_multicast(layer, facts.replace(batch=rows.get(layer.name) or 1))

        coordinator = Coordinator(
            layers,
            cluster,
            hosts=JobHosts(job=self._job, workers=workers, servers=servers),
            scheme=schemes,
            costs=CostModel(cost=cost, is_multicast=is_multicast),
        )
        return HybridPlan(coordinator.book, self._order(usage), rows)

    def _wanted(self, parameter: TrainedParameter, cluster: Cluster, *, has_factors: bool) -> str:
        scheme = self._choice.get(parameter.name, "auto")
        if scheme == "ina" and not cluster.can_aggregate:
            _logger.warning(
                "parameter %s goes by 'ps' instead of 'ina': the job has no slots on a switch",
                parameter.name,
            )
            return "ps"
        if scheme == "two-way" and self._is_partial:
            return "ps"
        if scheme in _FACTOR_SCHEMES:
            if self._is_partial:
                raise ConfigurationError(
                    f"scheme {scheme!r} for {parameter.name} in a job that drops stragglers:"
                    " factors of a late worker cannot be left out; choose 'ina', 'ps' or"
                    " 'auto'"
                )
            if not has_factors:
                _logger.warning(
                    "parameter %s has no factors: its module was not called in the first forward"
                    " pass; scheme %r is not used for it",
                    parameter.name,
                    scheme,
                )
                return "auto"
        return scheme

    def _order(self, usage: Usage | None) -> list[int]:
        """Return the layers from the last used to the first, then the unused ones."""
        places = list(range(len(self._layers)))
        if usage is None:
            return places[::-1]
        return usage.order[::-1] + [place for place in places if place not in usage.order]
