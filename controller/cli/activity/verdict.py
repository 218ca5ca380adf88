# SPDX-FileCopyrightText: 2026 The Switchfold Authors
# SPDX-License-Identifier: Apache-2.0
"""What limits a job: a link, a worker, the workers' own work, a processor; or why that is unknown.

Nothing is concluded from what was not measured.
"""

from __future__ import annotations

import enum
from dataclasses import dataclass
from typing import Final

from ...fabric.trees.tree_text import amount
from .looks import LEAST_LOOKS
from .processors import ProcessorFigures
from .window import ActivityWindow, LinkFigures

FULL: Final = 0.85
"""Use of its stated rate from which a link counts as full while the job exchanges values."""
STALLED: Final = 0.3
"""Share of the time that all others wait for one worker from which it is the limit."""
IDLE: Final = 0.6
"""Share of the time without any round from which the workers' own work is the limit."""
BUSY: Final = 0.9
"""Share of a machine's cores in use from which its processor counts as full."""
_OFTEN: Final = 0.6
"""Share of the looks in which rounds wait for one worker alone, worth a remark."""


class Limit(enum.StrEnum):
    """What kind of thing limits a job."""

    LINK = "link"
    WORKER = "worker"
    WORKERS = "workers"
    """What all of them do between their sums."""
    PROCESSOR = "processor"
    UNKNOWN = "unknown"


@dataclass(frozen=True, kw_only=True)
class SlowVerdict:
    """What limits a job, with the figures that show it."""

    limit: Limit
    name: str
    """Of the link, worker or process; "" where there is none."""
    text: str
    remedy: str


def judge(window: ActivityWindow, processors: ProcessorFigures | None) -> SlowVerdict:
    """Return what limits the job of a window; `processors` None: they are not known here.

    A full link comes first: what is behind it is late, and processors that wait may look busy.
    """
    return (
        _no_figures(window)
        or _own_work(window)
        or _full_link(window)
        or _stalling_worker(window)
        or _full_processor(processors)
        or _nothing_found(window, processors)
    )


def _no_figures(window: ActivityWindow) -> SlowVerdict | None:
    if len(window) < LEAST_LOOKS:
        return _unknown("too few looks at it: its view has changed meanwhile, or it has ended")
    if window.last.path != "switch":
        return _unknown("its hosts sum without a switch, and no counter tells their rounds apart")
    if not window.num_rounds and window.idle_share == 1.0:
        seen = "".join(f"; not read: {error}" for error in window.errors)
        return _unknown(
            f"it has summed nothing for {window.seconds:.1f} s{seen}",
            "look at its workers; 'switchfold doctor' checks job and switches",
        )
    return None


def _own_work(window: ActivityWindow) -> SlowVerdict | None:
    if window.idle_share < IDLE:
        return None
    return SlowVerdict(
        limit=Limit.WORKERS,
        name="",
        text=f"no round was under way for {_percent(window.idle_share)} of {window.seconds:.1f} s:"
        " all workers do something else between their sums",
        remedy="look at the workers' computing and data loading; the network waits for them",
    )


def _stalling_worker(window: ActivityWindow) -> SlowVerdict | None:
    worker = max(window.workers(), key=lambda each: each.stalled_share, default=None)
    if worker is None or worker.stalled_share < STALLED:
        return None
    return SlowVerdict(
        limit=Limit.WORKER,
        name=str(worker.worker_id),
        text=f"for {_percent(worker.stalled_share)} of {window.seconds:.1f} s, the others waited"
        f" for worker {worker.worker_id} alone, which sent nothing",
        remedy="look at that worker's computing and data loading, and at other processes on its"
        " host",
    )


def _full_link(window: ActivityWindow) -> SlowVerdict | None:
    links = [link for link in window.links() if (link.exchange_use or 0.0) >= FULL]
    if not links:
        return None
    link = max(links, key=lambda each: each.exchange_use or 0.0)
    name = f"{link.sender}-{link.receiver}"
    more = f" (and {len(links) - 1} more directions)" if len(links) > 1 else ""
    return SlowVerdict(
        limit=Limit.LINK,
        name=name,
        text=f"while values were exchanged, the link from {link.sender} to {link.receiver} was"
        f" {_percent(link.exchange_use or 0.0)} full, at {_rate(link)}{more}",
        remedy="see 'switchfold tree show' for other trees, give the link a higher rate, or send"
        " fewer bytes (precision 'block')",
    )


def _full_processor(processors: ProcessorFigures | None) -> SlowVerdict | None:
    if processors is None or processors.busy_share < BUSY:
        return None
    used = processors.cores_by_process
    most = max(used, key=lambda name: used[name], default="")
    own = sum(used.values())
    others = max(processors.busy_share * processors.num_cores - own, 0.0)
    parts = f"; other processes, as workers are, used {others:.2f}"
    if most:
        parts = f"; of the testbed's own processes, {most} used most: {used[most]:.2f}{parts}"
    remedy = "use more cores, fewer workers on this machine, or the program 'wide'"
    if others > own:
        remedy = f"end what else runs here ('ps aux --sort=-%cpu' lists it); else {remedy}"
    return SlowVerdict(
        limit=Limit.PROCESSOR,
        name=most,
        text=f"{_percent(processors.busy_share)} of this machine's {processors.num_cores} cores"
        f" were busy{parts}",
        remedy=remedy,
    )


def _nothing_found(window: ActivityWindow, processors: ProcessorFigures | None) -> SlowVerdict:
    rated = [link for link in window.links() if link.exchange_use is not None]
    reasons: list[str] = []
    if rated:
        busiest = max(rated, key=lambda each: each.exchange_use or 0.0)
        use = _percent(busiest.exchange_use or 0.0)
        reasons.append(f"the busiest link, {busiest.sender} to {busiest.receiver}, was {use} full")
    unrated = len(window.links()) - len(rated)
    if unrated:
        reasons.append(f"{unrated} directions of links have no stated rate")
    reasons += [f"not read: {error}" for error in window.errors]
    late = max(window.workers(), key=lambda worker: worker.last_share, default=None)
    if late is not None and late.last_share >= _OFTEN:
        reasons.append(
            f"rounds waited most for worker {late.worker_id}, which kept sending: it, its host or"
            " its link may be slower than the others"
        )
    elif not window.errors:
        reasons.append("no worker was waited for alone")
    if processors is None:
        reasons.append("processor times of its machines are not known here")
    else:
        busy = _percent(processors.busy_share)
        reasons.append(f"{busy} of this machine's {processors.num_cores} cores were busy")
    return _unknown("; ".join(reasons))


def _unknown(reason: str, remedy: str = "") -> SlowVerdict:
    return SlowVerdict(
        limit=Limit.UNKNOWN,
        name="",
        text=f"cannot tell: {reason}",
        remedy=remedy
        or "state the rates of all links in the controller's file; look at the workers' metrics,"
        " and at process_cpu_seconds_total of each process (docs/metrics.md)",
    )


def _rate(link: LinkFigures) -> str:
    stated = "" if link.rate_bits_per_s is None else amount(link.rate_bits_per_s, "bit/s")
    return f"{amount(link.bits_per_s, 'bit/s')} on average of {stated}"


def _percent(share: float) -> str:
    return f"{100 * share:.0f} %"
