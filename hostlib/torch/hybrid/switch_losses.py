# SPDX-FileCopyrightText: 2026 The Switchfold Authors
# SPDX-License-Identifier: Apache-2.0
"""What the gradients of layers that the switch sums may lack."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any, cast, final

from numpy.typing import NDArray

from ...errors import ConfigurationError
from ...loss_fill import FillPolicy, TensorFill
from ...loss_tolerance import NO_LOSS, Delivery, LossTolerance, strictest
from ...session import Session
from ...session_checks import check_large_first_of
from ...step_tolerance import CriticalRegimes, LossGuard, StepTolerance
from ..agreement import require_equal_replicas
from ..bounded_loss import BoundedSum
from .trained_layers import TrainedLayer

LayerTolerance = LossTolerance | Mapping[str, LossTolerance]
"""Of all layers, or by layer or parameter name; a layer that is not named lacks nothing."""


@final
class SwitchLosses:
    """Tolerance and fill of each layer's sum; deliveries of the last iteration.

    Without a choice, each sum tolerates what the session's job does. Raises ConfigurationError for
    names that the model does not have, for a choice without a session whose job tolerates loss, and
    for critical regimes, a guard or large values first that would change nothing.
    """

    def __init__(  # noqa: PLR0913 - options of HybridParallel
        self,
        layers: Sequence[TrainedLayer],
        choice: LayerTolerance | None,
        fill: FillPolicy,
        session: Session | None,
        *,
        critical: CriticalRegimes | None = None,
        guard: LossGuard | None = None,
        large_first: bool = False,
    ) -> None:
        self._fill = fill
        self._large_first = large_first
        self._worker_id = 0 if session is None else session.view.worker_id
        self._of_job = None if session is None else session.view.straggler.tolerance
        if choice is not None and self._of_job is None:
            raise ConfigurationError(
                "a tolerance, but no session whose job has one: set SWITCHFOLD_TOLERANCE on all"
                " ranks, or pass a session that was joined with StragglerPolicy(tolerance=...)"
            )
        if choice is not None:
            _check(choice, layers)
        given = choice.values() if isinstance(choice, Mapping) else (choice,)
        require_equal_replicas(self._of_job, *given)
        if large_first:
            if session is None:
                raise ConfigurationError(
                    "large_first without a session; it is of gradients that a switch sums"
                )
            check_large_first_of(session.view, session.options)
        self._choice = self._of_job if choice is None else choice
        self.steps = StepTolerance(critical, guard, tolerance=self._choice)
        """What each iteration tolerates; whoever begins one says so."""
        self._sums: dict[str, BoundedSum] = {}
        self.deliveries: dict[str, Delivery] = {}
        """By layer."""

    @property
    def of_others(self) -> LossTolerance | None:
        """The tolerance of sums that lack nothing, as the session takes it."""
        return None if self._of_job is None else NO_LOSS

    def forget(self) -> None:
        """Begin without layers and without a past, as after another plan."""
        self._sums.clear()
        self.deliveries.clear()
        self.steps.restart()

    def add(self, key: str, layer: str, parameters: Sequence[str]) -> None:
        """Note which parameters of a layer the sum of a key has."""

        def note(delivery: Delivery) -> None:
            self.deliveries[layer] = delivery

        def observe(result: NDArray[Any], delivery: Delivery | None) -> None:
            self.steps.note(key, result, delivery)

        self._sums[key] = BoundedSum(
            tolerance=self._of(layer, parameters),
            fill=TensorFill(self._fill, self._worker_id),
            note=note,
            observe=observe,
            large_first=self._large_first,
        )

    def bounded(self, key: str) -> BoundedSum:
        """Return what the sum of a key may lack in this iteration."""
        bounded = self._sums[key]
        return replace(bounded, tolerance=self.steps.of(bounded.tolerance))

    def _of(self, layer: str, parameters: Sequence[str]) -> LossTolerance | None:
        choice = self._choice
        if choice is None or isinstance(choice, LossTolerance):
            return choice
        of_layer = choice.get(layer)
        return strictest(choice.get(name, of_layer) for name in parameters)


def _check(choice: object, layers: Sequence[TrainedLayer]) -> None:
    if isinstance(choice, LossTolerance):
        return
    if not isinstance(choice, Mapping):
        raise ConfigurationError(
            f"tolerance is {choice!r}; give a LossTolerance, or a mapping from names of layers or"
            " parameters to one"
        )
    known = {layer.name for layer in layers}
    names = {parameter.name for layer in layers for parameter in layer.parameters}
    for name, tolerance in cast("Mapping[object, object]", choice).items():
        if name not in known | names:
            raise ConfigurationError(
                f"a tolerance is given for {name!r}, but the model has no such layer or parameter;"
                f" its layers are {', '.join(sorted(known)[:8])}"
            )
        if not isinstance(tolerance, LossTolerance):
            raise ConfigurationError(
                f"the tolerance of {name!r} is {tolerance!r}; give a LossTolerance, or leave the"
                " name out for gradients that lack nothing"
            )
