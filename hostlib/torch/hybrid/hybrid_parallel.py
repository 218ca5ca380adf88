# SPDX-FileCopyrightText: 2026 The Switchfold Authors
# SPDX-License-Identifier: Apache-2.0
"""Data-parallel training in which each parameter travels by the scheme that is cheapest for it."""

from __future__ import annotations

from collections.abc import Generator
from contextlib import contextmanager
from types import TracebackType
from typing import Any, Self, cast, final

import torch
import torch.distributed as dist
from torch import nn

from ...config import credentials_from_environment, secret_from_environment
from ...credentials import Role, credentials_in, require_choice
from ...errors import ConfigurationError, SchemeError
from ...loss_fill import FillPolicy
from ...loss_tolerance import Delivery
from ...schemes import Cluster, InformationBook, Scheme
from ...session import Session
from ...step_tolerance import CriticalRegimes, LossGuard, StepTolerance
from ...straggler import StragglerPolicy
from ..bounded_loss import fill_policy
from ..process_group.environment import peer_address
from ..process_group.process_group import SwitchfoldProcessGroup
from ..syncers.syncer import SyncerTrace
from .group_talk import GroupTalk
from .plan import SchemeChoice
from .run import HybridOptions, HybridRun
from .scheme_transports import Servers
from .switch_losses import LayerTolerance


@final
class HybridParallel(nn.Module):
    """Wraps a module for data-parallel training; gradients are averaged over the ranks.

    As with DistributedDataParallel, all ranks start with the parameters and buffers of rank 0.
    `backward()` returns when `.grad` holds the mean over the ranks for every parameter that any
    rank has used; other parameters keep their `.grad`, or None. The exchange of a layer's gradients
    starts while the backward pass still computes (wait-free). Optimizers, clipping and loss scaling
    need no change, and all ranks hold the same bits.

    `scheme` is "auto" (the cost model chooses per parameter), "two-way", "ps", "sfb", "ina",
    "adam", or a mapping by layer or parameter name. Where a scheme sends factors, parameters
    without factors use "auto".
    `group`: a process group, by default that of torch.distributed. `session`: the session for INA
    and multicasts, by default that of a group of the backend "switchfold"; it is not closed here.
    `batch`: rows K of all linear layers in an iteration; None: the rows of each layer in the first
    forward pass. `cluster`: facts for the cost model, such as link rate and RTT; None: 1 Gbit/s
    and 200 us.
    `servers`: shards of the parameter server. None: one on each rank; a number: one on each of so
    many first ranks; ["host:port", ...]: external servers with the rule "mean".
    `pool`: number of threads and copy streams, and so of layers in flight at a time.
    `overlap` False: layers start at the end of the backward pass.
    `multicast`: switches multicast the factors of each layer for which the cost model finds that
    faster than TCP. In these layers no rank may have more rows in an iteration than `batch`, or
    than rank 0 had in the first forward pass.
    `straggler`: policy for late ranks, by default that of the session's job.
    `tolerance`: what gradients that the switch sums may lack because packets were lost, for all
    layers or as a mapping by layer or parameter name; a layer takes the strictest of its parameters
    and lacks nothing if it is not named. The session's job must have a tolerance, which is the
    default. `critical`: what they may lack in critical regimes of the training, if less. `guard`:
    when they lack nothing for a while, because loss takes what they may lack.
    `fill`: what takes the place of what is missing (`FillPolicy`).
    `front_first`: gradients of front layers that the switch sums, which the next forward pass needs
    first, have a higher priority in its queues; `session` must ask for a `max_priority` of 2 or
    more. `large_first`: of gradients that the switch sums, packets of large values lack nothing,
    and have a higher priority if `session` has more than one (`Session.allreduce`).
    `timeout_s`: limit for the exchange of a layer, counted from its turn.
    `first_iteration`: number of the first iteration, for a run that resumes with the same servers;
    see `iteration`.
    `address`: address at which other ranks reach this one by TCP; empty: SWITCHFOLD_PEER_ADDRESS,
    or the address that faces MASTER_ADDR. `token`: secret of external servers; empty:
    SWITCHFOLD_TOKEN. `credentials`: folder with this worker's certificate, for TLS with other ranks
    and with external servers; empty: SWITCHFOLD_CREDENTIALS. `insecure`: without credentials, go on
    without TLS; a warning says so.

    All ranks must pass the same options; those of this paragraph and `cluster` may differ. Raises
    ConfigurationError; forward and backward passes raise SyncError.
    """

    def __init__(  # noqa: PLR0913 - options as in torch's DistributedDataParallel
        self,
        module: nn.Module,
        *,
        group: Any = None,
        scheme: SchemeChoice = "auto",
        batch: int | None = None,
        overlap: bool = True,
        servers: Servers = None,
        pool: int = 4,
        multicast: bool = False,
        session: Session | None = None,
        cluster: Cluster | None = None,
        straggler: StragglerPolicy | None = None,
        tolerance: LayerTolerance | None = None,
        critical: CriticalRegimes | None = None,
        guard: LossGuard | None = None,
        fill: FillPolicy | str = FillPolicy.MEAN,
        front_first: bool = False,
        large_first: bool = False,
        timeout_s: float = 60.0,
        first_iteration: int = 0,
        address: str = "",
        token: str = "",
        credentials: str = "",
        insecure: bool = False,
    ) -> None:
        super().__init__()
        self.module = module
        group = _default_group() if group is None else group
        own = credentials_in(credentials) or credentials_from_environment()
        require_choice(
            own,
            who="HybridParallel",
            role=Role.WORKER,
            options=("credentials=... or SWITCHFOLD_CREDENTIALS", "insecure=True"),
            insecure=insecure,
        )
        if session is None and isinstance(group, SwitchfoldProcessGroup):
            session = group.session
        options = HybridOptions(
            scheme=scheme,
            batch=batch,
            overlap=overlap,
            servers=servers,
            pool=pool,
            multicast=multicast,
            cluster=cluster,
            straggler=straggler,
            tolerance=tolerance,
            critical=critical,
            guard=guard,
            fill=fill_policy(fill),
            front_first=front_first,
            large_first=large_first,
            timeout_s=timeout_s,
            first_iteration=first_iteration,
            address=address or peer_address(dist.get_rank()),
            token=token or secret_from_environment(),
            credentials=own,
        )
        device = next(module.parameters(), torch.empty(0)).device
        self._run = HybridRun(module, GroupTalk(group, device), session, options)

    def forward(self, *args: Any, **kwargs: Any) -> Any:
        """Call the module; the previous iteration must have ended on this rank."""
        self._run.before_forward()
        output = self.module(*args, **kwargs)
        if torch.is_grad_enabled():
            self._run.after_forward()
        return output

    @contextmanager
    def no_sync(self) -> Generator[None]:
        """Only accumulate gradients in the passes inside; the next pass outside sends their sum."""
        was_accumulating = self._run.is_accumulating
        self._run.is_accumulating = True
        try:
            yield
        finally:
            self._run.is_accumulating = was_accumulating

    def replan(self, batch: int | None = None) -> None:
        """Choose the schemes again; all ranks must call it between the same two iterations.

        Call it after facts have changed: the rows of an iteration, or the session's slots. Without
        `batch`, the next forward pass counts the rows. Raises SchemeError before the first plan.
        """
        self._run.replan(batch)

    @property
    def book(self) -> InformationBook:
        """The scheme and the storage of each parameter; `query` and `best_scheme` read it.

        Raises SchemeError before the first forward pass, if no `batch` was given.
        """
        if self._run.plan is None:
            raise SchemeError(
                "the information book is written in the first forward pass; pass batch to have it"
                " at once"
            )
        return self._run.plan.book

    def best_scheme(self, name: str) -> Scheme:
        """Return the scheme of a parameter; SchemeError if it is unknown."""
        return self.book.best_scheme(name)

    @property
    def iteration(self) -> int:
        """Number of the next backward pass that synchronises; save it with a checkpoint."""
        return self._run.iteration

    @property
    def trace(self) -> SyncerTrace:
        """Start and end of each layer's steps: move, send, receive, move."""
        return self._run.trace

    @property
    def completion(self) -> dict[str, bool]:
        """Bits of the current or last iteration, by layer."""
        schedule = self._run.schedule
        if schedule is None:
            return {}
        bits = schedule.completion.bits
        return {syncer.name: bits[syncer.index] for syncer in self._run.layer_syncers}

    @property
    def num_contributors(self) -> dict[str, int]:
        """Least number of ranks in any part of the last mean gradient, by layer."""
        return {syncer.name: syncer.num_contributors for syncer in self._run.layer_syncers}

    @property
    def deliveries(self) -> dict[str, Delivery]:
        """What the gradients of the last iteration lack, by layer that the switch sums.

        All ranks read the same. The elements are the layer's parameters that the switch sums, in
        their order.
        """
        return self._run.deliveries

    @property
    def step_tolerance(self) -> StepTolerance:
        """What the last iteration tolerated, and why; the same on all ranks."""
        return self._run.step_tolerance

    @property
    def counters(self) -> dict[str, dict[str, Any]]:
        """Payload floats that this rank sent and received, under ps, server and sfb."""
        return self._run.counters

    def state_dict(self, *args: Any, **kwargs: Any) -> Any:
        """Return the module's own state, which loads with and without the wrapper."""
        return cast("Any", self.module).state_dict(*args, **kwargs)

    def load_state_dict(self, *args: Any, **kwargs: Any) -> Any:
        """Load the module's own state; all ranks must load the same."""
        return cast("Any", self.module).load_state_dict(*args, **kwargs)

    def close(self) -> None:
        """End connections and threads, and remove all hooks from the module, which stays usable."""
        self._run.close()

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self,
        exc_type: type[BaseException] | None,
        exc: BaseException | None,
        traceback: TracebackType | None,
    ) -> None:
        self._run.close(is_failed=exc is not None)


def _default_group() -> Any:
    if not dist.is_initialized():
        raise ConfigurationError(
            "no process group: call torch.distributed.init_process_group first, or pass group"
        )
    return dist.group.WORLD
