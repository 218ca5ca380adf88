# SPDX-FileCopyrightText: 2026 The Switchfold Authors
# SPDX-License-Identifier: Apache-2.0
"""Hybrid training: chooses schemes, connects the ranks, and follows the model's passes."""

from __future__ import annotations

import contextlib
import hashlib
import json
import logging
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, final

import torch
from torch import nn
from torch.utils.hooks import RemovableHandle

from ...credentials import Credentials
from ...errors import ConfigurationError, HostlibError, SchemeError, SessionClosedError
from ...loss_fill import FillPolicy
from ...loss_tolerance import Delivery
from ...schemes import Cluster, Scheme
from ...session import Session
from ...step_tolerance import CriticalRegimes, LossGuard, StepTolerance
from ...straggler import WAIT_FOR_ALL, StragglerPolicy
from ...tracing.timeline import WAIT
from ..layer_priority import num_classes, priority_at
from ..session_use import use_of
from ..staging.streams import mark_now
from ..syncers.sync_error import SyncError, sync_error
from ..syncers.sync_parts import DensePart, FactorPart, FlagPart, SyncPart
from ..syncers.sync_schedule import SyncSchedule
from ..syncers.syncer import Syncer, SyncerTrace, Turn
from ..syncers.syncer_pools import SyncerPools
from ..timeline import group_recording
from .gradient_watch import GradientWatch
from .group_talk import GroupTalk
from .plan import HybridPlan, Planner, SchemeChoice, Usage, cluster_facts
from .scheme_transports import SchemeTransports, Servers, TransportOptions
from .switch_losses import LayerTolerance, SwitchLosses
from .trained_layers import KnownParameters, TrainedLayer, trained_layers
from .used_parameters import UsedParameters

LEAVE_S = 5.0
"""How long a closing rank waits for ranks that still need its answers."""
_logger = logging.getLogger("switchfold.hostlib.torch")


@dataclass(frozen=True, kw_only=True)
class HybridOptions:
    """Options of `HybridParallel`, whose docstring explains them."""

    scheme: SchemeChoice
    batch: int | None
    overlap: bool
    servers: Servers
    pool: int
    multicast: bool
    cluster: Cluster | None
    straggler: StragglerPolicy | None
    tolerance: LayerTolerance | None
    critical: CriticalRegimes | None
    guard: LossGuard | None
    fill: FillPolicy
    front_first: bool
    large_first: bool
    timeout_s: float
    first_iteration: int
    address: str
    token: str
    credentials: Credentials | None

    def __post_init__(self) -> None:
        """Check ranges."""
        if not self.timeout_s > 0:
            raise ConfigurationError(f"timeout_s is {self.timeout_s}; it must be positive")
        if self.first_iteration < 0:
            raise ConfigurationError(f"first_iteration is {self.first_iteration}; it counts from 0")
        if self.batch is not None and self.batch < 1:
            raise ConfigurationError(
                f"batch is {self.batch}; give the rows of an iteration, or None to count them"
            )

    def agreement(self, layers: list[TrainedLayer]) -> list[str]:
        """Return, as text, the options and parameters that must be the same on all ranks."""
        own = {"address", "token", "credentials", "cluster"}
        options = [
            f"option {name}={value!r}" for name, value in vars(self).items() if name not in own
        ]
        parameters = [
            f"parameter {p.name} {tuple(p.tensor.shape)} {p.tensor.dtype}"
            for layer in layers
            for p in layer.parameters
        ]
        return options + parameters


@final
class HybridRun:
    """Everything that `HybridParallel` does besides being a module."""

    def __init__(
        self, module: nn.Module, talk: GroupTalk, session: Session | None, options: HybridOptions
    ) -> None:
        self.trace = SyncerTrace()
        self.iteration = options.first_iteration
        self.is_accumulating = False
        self._epoch = 1
        self.plan: HybridPlan | None = None
        self.schedule: SyncSchedule | None = None
        self.layer_syncers: list[Syncer] = []
        self._options, self._talk, self._session = options, talk, session
        self._place = f"rank {talk.rank}"
        self._is_closed = False
        self._has_ordered = False  # whether any part is submitted to the session
        self._has_claim = False
        self._missing: list[int] = []  # ranks that are not in the session's view
        self._layers = trained_layers(module)
        self._known = KnownParameters(module, self._layers)
        tensors = [each.tensor for layer in self._layers for each in layer.parameters]
        self._device = tensors[0].device
        self._used = UsedParameters(tensors)
        self._straggler = options.straggler or WAIT_FOR_ALL
        if options.straggler is None and session is not None:
            self._straggler = session.view.straggler
        # Before anything is opened, so that all ranks report the same error.
        self._planner = Planner(
            self._layers,
            options.scheme,
            job="hybrid",
            is_partial=self._straggler.leaves_out_late,
        )
        self._check_agreement()
        self._classes = 1
        self._priorities: dict[str, int] = {}  # of the sum that begins with a parameter
        if options.front_first:
            if session is None:
                raise ConfigurationError(
                    f"{self._place}: front_first without a session; priorities are of gradients"
                    " that a switch sums"
                )
            self._classes = num_classes(session, self._place)
        self._losses = SwitchLosses(
            self._layers,
            options.tolerance,
            options.fill,
            session,
            critical=options.critical,
            guard=options.guard,
            large_first=options.large_first,
        )
        self._share_state(module)
        self._recording = group_recording(talk.rank, "hybrid")
        self._timeline = None if self._recording is None else self._recording.timeline
        self._called: list[int] = []  # layers, in the order of their first use
        self._observers: list[RemovableHandle] = []
        # After a failure the model is unchanged: the caller may wrap it with other options.
        with contextlib.ExitStack() as undo:
            if self._recording is not None:
                self._recording.enter_group()
                undo.callback(self._recording.leave_group)
            self._pools = SyncerPools(options.pool, self._device)
            undo.callback(self._pools.close)
            self._transports = self._open_transports()
            undo.callback(self._transports.close)
            self._watch = GradientWatch(self._layers, self, self._used)
            undo.callback(self._watch.close)
            if options.batch is None:
                self._observe()
            else:
                self._decide(options.batch, None)
            undo.pop_all()

    def _check_agreement(self) -> None:
        """Raise ConfigurationError on all ranks if their models or options differ."""
        own = self._options.agreement(self._layers)
        digest = hashlib.sha256("\n".join(own).encode()).digest()
        digests = self._talk.gather_bytes(digest)
        if len(set(digests)) == 1:
            return
        lists = [json.loads(text) for text in self._talk.gather_bytes(json.dumps(own).encode())]
        for rank, other in enumerate(lists):
            if other != lists[0]:
                differing = (set(other) ^ set(lists[0])) or {"the order of parameters"}
                raise ConfigurationError(
                    f"rank {rank} and rank 0 differ in {min(differing)}; all ranks must wrap the"
                    " same model with the same options"
                )

    def _share_state(self, module: nn.Module) -> None:
        """Copy rank 0's parameters and buffers to all ranks."""
        for tensor in (*module.parameters(), *module.buffers()):
            if tensor.numel():
                self._talk.broadcast(tensor)

    def replan(self, batch: int | None) -> None:
        """Drop the plan and make another; all ranks must call it between two iterations."""
        self.before_forward()
        if self.plan is None:
            raise SchemeError("there is no plan yet to replace")
        if isinstance(self._options.servers, Sequence):
            raise ConfigurationError(
                "external parameter servers know the keys of the first plan; close the model,"
                " restart these servers and wrap the module again"
            )
        # Other ranks may still read results of the previous iteration from this rank's shard.
        self._talk.meet(self._options.timeout_s)
        self._transports.close()
        self._epoch += 1
        self.plan, self.schedule, self.layer_syncers = None, None, []
        self._losses.forget()
        self._transports = self._open_transports()
        self._called.clear()
        for factors in self._watch.factors.values():
            self._watch.dense.add(factors.name)
            factors.remove()
        if batch is None:
            self._observe()
        else:
            self._decide(batch, None)

    def _open_transports(self) -> SchemeTransports:
        options = self._options
        return SchemeTransports(
            self._talk,
            self._session,
            TransportOptions(
                servers=options.servers,
                address=options.address,
                token=options.token,
                credentials=options.credentials,
                timeout_s=options.timeout_s,
                straggler=self._straggler,
                losses=self._losses,
                priorities=self._priorities,
            ),
        )

    def _observe(self) -> None:
        """Record the rows K and the order of layers in the next forward pass."""
        for factors in self._watch.factors.values():
            factors.count_rows()
            factors.install()
        for index, layer in enumerate(self._layers):
            hook = self._on_use(index)
            self._observers.append(layer.module.register_forward_pre_hook(hook))

    def _on_use(self, index: int) -> Any:
        def used(_module: nn.Module, _args: Any) -> None:
            if index not in self._called:
                self._called.append(index)

        return used

    def before_forward(self) -> None:
        """Raise SyncError unless the previous iteration has ended.

        Raises ConfigurationError if a parameter has a gradient that no syncer exchanges, and
        SessionClosedError after `close`.
        """
        if self._is_closed:
            raise SessionClosedError("the model was closed; wrap the module again to train it")
        if torch.is_grad_enabled():
            self._known.check()
        if self.schedule is not None:
            self._watch.forget_pass()
            self._release_session()
            self.schedule.check()

    def after_forward(self) -> None:
        """Make the plan after the first observed pass."""
        if self.plan is not None:
            return
        rows = {name: factors.count_rows() for name, factors in self._watch.factors.items()}
        self._decide(max([*rows.values(), 1]), Usage(rows, list(self._called)))

    def _decide(self, batch: int, usage: Usage | None) -> None:
        """Make the plan on rank 0, send it to all ranks, connect, and make the syncers."""
        for observer in self._observers:
            observer.remove()
        self._observers.clear()
        workers, servers = self._transports.open()
        num_servers = 0 if self._options.servers is None else len(servers)
        made = b""
        if self._talk.rank == 0:
            facts = cluster_facts(
                self._options.cluster,
                num_workers=self._talk.num_ranks,
                num_servers=num_servers,
                batch=batch,
                session=self._session,
                multicast=self._options.multicast,
            )
            try:
                made = self._planner.plan(facts, usage, workers=workers, servers=servers).to_json()
            except HostlibError as error:
                made = json.dumps({"error": str(error)}).encode()
        made = self._talk.broadcast_bytes(made)
        refusal = json.loads(made).get("error")
        if refusal is not None:
            raise ConfigurationError(f"the schemes could not be chosen: {refusal}")
        self.plan = HybridPlan.from_json(made).of_epoch(self._epoch)
        self._transports.connect(self.plan.book, self.plan.rows)
        self._make_syncers(self.plan)
        schemes = [entry.scheme.value for entry in self.plan.book.entries]
        counts = {scheme: schemes.count(scheme) for scheme in dict.fromkeys(schemes)}
        _logger.info(
            "%s: information book %s of epoch %d: parameters by scheme: %s",
            self._place,
            self.plan.book.hash,
            self.plan.book.epoch,
            counts,
        )

    def _make_syncers(self, plan: HybridPlan) -> None:
        syncers: list[Syncer] = []
        turn = Turn()
        for number, place in enumerate(plan.order):
            layer = self._layers[place]
            priority = priority_at(number, len(plan.order), self._classes)
            self._priorities |= dict.fromkeys((p.name for p in layer.parameters), priority)
            syncer = Syncer(
                turn,
                layer.name,
                self._parts(layer, plan),
                place=self._place,
                trace=self.trace,
                timeline=self._timeline,
            )
            turn = syncer.next_turn
            syncers.append(syncer)
        self.layer_syncers = list(syncers)
        # A late rank may have gradients, so all parameters count as used without its flags. A lost
        # rank has none.
        fewest = self._talk.num_ranks if self._straggler.leaves_out_late else 0
        flags = FlagPart(self._used, self._transports.flags(), fewest)
        syncers.append(Syncer(turn, flags.key, [flags], place=self._place, trace=self.trace))
        self._has_ordered = syncers[-1].next_turn.first_ticket > 0
        self._turns = {place: index for index, place in enumerate(plan.order)}
        self.schedule = SyncSchedule(
            syncers,
            self._pools,
            has_overlap=self._options.overlap,
            timeout_s=self._options.timeout_s,
            place=self._place,
        )

    def _parts(self, layer: TrainedLayer, plan: HybridPlan) -> list[SyncPart]:
        """Return a layer's parts: one per weight sent as factors, and per key or dense scheme."""
        parts: list[SyncPart] = []
        dense: dict[Scheme, list[Any]] = {}
        for parameter in layer.parameters:
            entry = plan.book.query(parameter.name)
            scheme = entry.scheme
            factors = self._watch.factors.get(parameter.name)
            if scheme in (Scheme.SFB, Scheme.ADAM):
                assert factors is not None
                factors.install()
                self._watch.dense.discard(parameter.name)
                channel = self._transports.factors(scheme, is_copied=entry.is_copied)
                parts.append(FactorPart(parameter.name, factors, channel, self._used))
                continue
            if factors is not None:
                factors.remove()
            dense.setdefault(scheme, []).append(parameter)
        for scheme, parameters in dense.items():
            channel = self._transports.dense(scheme)
            if scheme is Scheme.PS:  # the book has a key for each
                groups = [[parameter] for parameter in parameters]
            else:
                groups = [parameters]
            for group in groups:
                tensors = [parameter.tensor for parameter in group]
                if scheme is Scheme.INA:
                    names = [parameter.name for parameter in group]
                    self._losses.add(group[0].name, layer.name, names)
                parts.append(DensePart(group[0].name, tensors, channel, self._used))
        return parts

    def on_backward_begin(self) -> bool:
        """Begin an iteration, unless gradients are only accumulated."""
        if self.is_accumulating:
            return False
        if self.schedule is None:
            raise SyncError(
                f"{self._place}: a backward pass came before any forward pass through the wrapper;"
                " call the wrapped model, not the module inside"
            )
        self._claim_session()
        self.schedule.begin(self.iteration)
        self._losses.steps.begin_step()
        return True

    def _claim_session(self) -> None:
        """Keep other callers from submitting to the session during the pass."""
        if self._session is None or not self._has_ordered:
            return
        owner = f"the backward pass of {self._place}'s hybrid model"
        where = f"{self._place}, iteration {self.iteration}"
        try:
            other = use_of(self._session).claim(owner, self._options.timeout_s)
        except TimeoutError as error:
            raise sync_error(where, error) from error
        if other:
            raise SyncError(
                f"{where}: {other} uses the same session; give"
                " each model a group of its own (torch.distributed.new_group), or freeze the other"
                " model's parameters in this pass"
            )
        self._has_claim = True

    def _release_session(self) -> None:
        if self._has_claim:
            assert self._session is not None
            assert self.schedule is not None
            self._has_claim = False
            if not self.schedule.settle():
                _logger.warning(
                    "%s, iteration %d: layers were not sent within %g s; tensors that other ranks"
                    " submit to the same session may not match; restart the ranks",
                    self._place,
                    self.iteration,
                    self._options.timeout_s,
                )
            use_of(self._session).release()

    def on_layer(self, layer: int) -> None:
        """Let a layer's syncer start."""
        assert self.schedule is not None
        self.schedule.ready(self._turns[layer], mark_now(self._device))

    def on_backward_end(self) -> None:
        """Wait until all layers are synchronised."""
        assert self.schedule is not None
        waiting = contextlib.nullcontext()
        if self._timeline is not None:
            waiting = self._timeline.span("wait for layers", WAIT)
        try:
            with waiting:
                self.schedule.finish(mark_now(self._device))
            self._used.settle()
            self._note_missing()
        finally:
            self._release_session()
        self.iteration += 1

    def _note_missing(self) -> None:
        """Log the missing ranks, once per change: a session may go on with fewer workers."""
        if self._session is None:
            return
        here = self._session.view.member_ids
        missing = [rank for rank in range(self._talk.num_ranks) if rank not in here]
        if missing == self._missing:
            return
        self._missing = missing
        _logger.warning(
            "%s, iteration %d: %s; means are over %d of %d ranks",
            self._place,
            self.iteration,
            f"the session goes on without ranks {missing}" if missing else "all ranks are back",
            self._talk.num_ranks - len(missing),
            self._talk.num_ranks,
        )

    @property
    def deliveries(self) -> dict[str, Delivery]:
        """What the gradients of the last iteration lack, by layer that the switch sums."""
        return dict(self._losses.deliveries)

    @property
    def step_tolerance(self) -> StepTolerance:
        """What the last iteration tolerated, and why."""
        return self._losses.steps

    @property
    def counters(self) -> dict[str, dict[str, Any]]:
        """Payload floats of this rank, under ps, server and sfb."""
        return self._transports.counters

    def close(self, *, is_failed: bool = False) -> None:
        """End connections and threads, and remove all hooks from the model."""
        if self._is_closed:
            return
        self._is_closed = True
        has_trained = self.iteration > self._options.first_iteration
        if has_trained and not is_failed and self.schedule and not self.schedule.completion.error:
            # Other ranks may still read results of the last iteration from this rank's shard.
            self._talk.meet(min(LEAVE_S, self._options.timeout_s))
        self._release_session()
        if self.schedule is not None:
            self.schedule.fail(SessionClosedError("the model was closed"))
        self._watch.close()
        for observer in self._observers:
            observer.remove()
        self._transports.close()
        self._pools.close()
        if self._recording is not None:
            self._recording.leave_group()
