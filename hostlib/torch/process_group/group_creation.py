# SPDX-FileCopyrightText: 2026 The Switchfold Authors
# SPDX-License-Identifier: Apache-2.0
"""Creation of a process group: with Gloo, and with a session or the reason why it has none."""

from __future__ import annotations

import functools
import json
import logging
from collections.abc import Callable, Sequence

import torch.distributed as dist

from ...config import fill_setting, precision_setting, tolerance_setting
from ...errors import ConfigurationError, HostlibError
from ...session import Session
from ...straggler import StragglerPolicy
from ..agreement import differences, tolerance_text
from ..errors import GroupJoinError
from ..precision import GroupPrecision
from ..timeline import group_recording
from ..torch_seam import (
    BackendOptions,
    PrefixStore,
    checked,
    is_debugging,
    make_gloo,
)
from .amendments import amend_torch
from .call_check import CallCheck
from .environment import GroupPlace, draw_run, gloo_address, job_name, store_prefix
from .process_group import GroupSettings, SwitchfoldProcessGroup
from .rendezvous import RankPlace, Rendezvous

_logger = logging.getLogger("switchfold.hostlib.torch")


def create_group(options: BackendOptions) -> dist.ProcessGroup:
    """Make a process group for torch.distributed; all its ranks must call it.

    Raises GroupJoinError if the default group cannot join a job. Any other group then runs on Gloo,
    as does a group of one rank.
    """
    amend_torch()
    rank, num_ranks, timeout = options.group_rank, options.group_size, options.timeout
    is_default = not options.global_ranks_in_group
    options.store = PrefixStore(store_prefix(), options.store)
    place = RankPlace(options.store, rank, num_ranks)
    rendezvous = Rendezvous(place, timeout)
    # Gloo's own errors would not name the missing ranks.
    run, *_ = rendezvous.exchange("make", draw_run() if rank == 0 else "")
    process = rank if is_default else options.global_ranks_in_group[rank]
    address = gloo_address(process)
    _logger.info("group %s: Gloo connects from %s", options.group_id, address or "its own choice")
    gloo = make_gloo(options, address=address)
    job = job_name(options.group_id, is_default=is_default)
    session, reason = None, "it has one rank"
    if num_ranks > 1:
        make = functools.partial(GroupPlace, job, rank, num_ranks, process, run=run)
        session, reason = _join(rendezvous, make)
    if session is None:
        if is_default and num_ranks > 1:
            raise GroupJoinError(
                f"rank {rank}: the process group cannot join job {job!r}: {reason}"
            )
        _logger.info("group %s (job %r) runs on Gloo alone: %s", options.group_id, job, reason)
    check = None
    if session is not None and is_debugging():
        check = CallCheck(make_gloo(options, "call-check", address=address), num_ranks)
    return SwitchfoldProcessGroup(
        place,
        name="default" if is_default else options.group_id,
        gloo=gloo,
        backend=checked(gloo, options) if is_debugging() else None,
        session=session,
        settings=GroupSettings(
            recording=group_recording(rank, job) if session is not None else None,
            check=check,
            precision=GroupPrecision(precision_setting()),
            fill=fill_setting(),
        ),
    )


def _join(
    rendezvous: Rendezvous, make_place: Callable[[], GroupPlace]
) -> tuple[Session | None, str]:
    """Return a session, or None and the reason; all ranks return the same kind and reason."""
    transport = place = straggler = None
    problem = ""
    settings: dict[str, str] = {}
    try:
        place = make_place()
        straggler = _straggler()
        settings = _settings()
        transport = place.open_transport()
    except HostlibError as error:
        problem = str(error)
    session = None
    try:
        said = [
            json.loads(text)
            for text in rendezvous.exchange("open", json.dumps([problem, settings]))
        ]
        reason = _problems([problem for problem, _ in said])
        differing = differences([settings for _, settings in said])
        if differing and not reason:
            reason = f"{differing}; set the same on all ranks"
        if reason:
            return None, reason
        assert place is not None
        assert straggler is not None
        assert transport is not None
        opened, transport = transport, None
        try:
            session = place.join(opened, rendezvous.remaining, straggler=straggler)
        except HostlibError as error:
            problem = str(error)
        reason = _problems(rendezvous.exchange("join", problem))
        if reason:
            return None, reason
        joined, session = session, None
        return joined, ""
    finally:
        if transport is not None:
            transport.close()
        if session is not None:
            session.close()


def _straggler() -> StragglerPolicy:
    """Return the policy of a group's job; ConfigurationError if some setting is wrong.

    Read while ranks still exchange problems, so that a wrong setting fails on all of them.
    """
    tolerance, precision = tolerance_setting(), precision_setting()
    fill_setting()
    if tolerance is not None and precision == "exact":
        raise ConfigurationError(
            "SWITCHFOLD_TOLERANCE with SWITCHFOLD_PRECISION=exact: exact sums lack nothing; leave"
            " one of them unset"
        )
    return StragglerPolicy(tolerance=tolerance)


def _settings() -> dict[str, str]:
    """Return the settings that all ranks of a group must have alike."""
    tolerance = tolerance_setting()  # which may read a file
    settings = {
        "SWITCHFOLD_PRECISION": precision_setting(),
        "SWITCHFOLD_TOLERANCE": tolerance_text(tolerance),
    }
    if tolerance is not None:
        settings["SWITCHFOLD_FILL"] = str(fill_setting())
    return settings


def _problems(said: Sequence[str]) -> str:
    """Return the ranks' problems in one line, each text once; empty if there is none."""
    ranks_by_text: dict[str, list[int]] = {}
    for rank, text in enumerate(said):
        if text:
            ranks_by_text.setdefault(text, []).append(rank)
    return "; ".join(f"ranks {ranks}: {text}" for text, ranks in ranks_by_text.items())
