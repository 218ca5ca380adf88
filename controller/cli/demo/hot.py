# SPDX-FileCopyrightText: 2026 The Switchfold Authors
# SPDX-License-Identifier: Apache-2.0
"""`switchfold demo hot`: a sparse text model on parameter servers, with proofs of its sums."""

from __future__ import annotations

import os
import time
from collections.abc import Sequence
from contextlib import ExitStack

import click
from rich.console import Console

from ..hot.figures import figures_of
from ..hot.plan import Offload, TablePlan, TableWorkload
from ..hot.rig import Mode, TableRig, TableRun, Variant
from ..hot.steps import epoch_steps
from ..output import fitted_table
from .progress import compile_once, phase
from .proofs import Proof, print_proofs

MIN_ACCURACY = 0.8
MAX_DIFFERENCE = 0.01
"""Of two trainings; asynchronous workers never train twice alike."""
MAX_S = 120.0
BATCH = 64
HOT_KEYS = 1024
_COLUMNS = {
    "pushed keys at servers": "{:.0%}",
    "pulled keys at servers": "{:.0%}",
    "writes": "{:.1%}",
    "1 - h + h/c": "{:.1%}",
    "server us/update": "{:.2f}",
    "samples/s": "{:,.0f}",
}
"""Figures of a run that are shown, and how."""


@click.command(
    epilog="Exit codes: 0 everything is proved, 1 an error or a failed proof, 2 wrong use."
)
@click.option(
    "--workers",
    type=click.IntRange(1, 16),
    default=4,
    show_default=True,
    help="Number of workers.",
)
@click.option(
    "--servers",
    type=click.IntRange(1, 8),
    default=2,
    show_default=True,
    help="Number of parameter servers.",
)
@click.option(
    "--epochs",
    type=click.IntRange(1, 100),
    default=2,
    show_default=True,
    help="Passes over the training data.",
)
@click.option(
    "--mode",
    type=click.Choice(["veth", "udp"]),
    help="veth: namespaces, needs root; udp: loopback ports. Default: veth for root, else udp.",
)
@click.option(
    "--variant",
    type=click.Choice(["wide", "narrow"]),
    default="wide",
    show_default=True,
    help="Values per packet: 352 (wide) or 32 (narrow).",
)
def hot(*, workers: int, servers: int, epochs: int, mode: Mode | None, variant: Variant) -> int:
    """Train a classifier of WordNet's definitions on sparse tables, without and with hot keys.

    Workers are asynchronous. With hot keys, the switch adds up what they push to these (mode veth).
    A second table counts how often each word, and each pair of words, was used; its sums are exact.
    WordNet comes with Debian's package wordnet-base.

    \b
    Examples:
      switchfold demo hot
      switchfold demo hot --mode udp --epochs 1
    """  # fmt: skip
    console = Console()
    chosen: Mode = mode or ("veth" if os.geteuid() == 0 else "udp")
    begun_s = time.monotonic()
    compile_once(console, variant)
    made = TableRig(num_workers=workers, num_servers=servers, mode=chosen, variant=variant)
    with ExitStack() as stack:
        with phase(console, f"starting {servers} parameter servers and a P4 switch (softswitch)"):
            rig = stack.enter_context(made)
        plan = TablePlan(
            workload=TableWorkload.GLOSSES,
            is_training=True,
            hot_keys=HOT_KEYS,
            num_workers=workers,
            num_servers=servers,
            batch=BATCH,
            encrypts_tables=True,
        )
        plan = epoch_steps(plan, rig.num_samples, epochs)
        runs: list[TableRun] = []
        # In mode udp, hosts have no addresses of their own by which the switch knows them.
        for offload in (Offload.NONE, Offload.HOT)[: 2 if chosen == "veth" else 1]:
            with phase(console, f"training on {rig.num_samples:,} texts, offload {offload}"):
                runs.append(rig.run(plan.with_offload(offload)))
    seconds = time.monotonic() - begun_s
    proofs = check_runs(runs, seconds)
    _print_runs(runs, console)
    print_proofs(proofs, console)
    return 0 if all(proof.is_proved for proof in proofs) else 1


def check_runs(runs: Sequence[TableRun], seconds: float) -> list[Proof]:
    """Check what the demo claims of its runs; those with wrong sums have ended with an error."""
    proofs = [proof for run in runs for proof in (_sums(run), _accuracy(run))]
    proofs += [_same_accuracy(run, runs[0]) for run in runs[1:]]
    proofs.append(
        Proof(
            claim=f"all of it takes less than {MAX_S:.0f} s",
            is_proved=seconds < MAX_S,
            measured=f"{seconds:.1f} s",
        )
    )
    return proofs


def _sums(run: TableRun) -> Proof:
    uses = sum(worker.pushed_keys for worker in run.workers) // 2
    return Proof(
        claim=f"offload {run.plan.offload}: each key's number of uses is exact on the servers",
        is_proved=True,
        measured=f"{run.num_keys:,} keys, {uses:,} pushes of a key",
    )


def _accuracy(run: TableRun) -> Proof:
    assert run.accuracy is not None
    return Proof(
        claim=f"offload {run.plan.offload}: accuracy on held-out texts is at least {MIN_ACCURACY}",
        is_proved=run.accuracy >= MIN_ACCURACY,
        measured=f"{run.accuracy:.4f}",
    )


def _same_accuracy(run: TableRun, without: TableRun) -> Proof:
    assert run.accuracy is not None
    assert without.accuracy is not None
    difference = run.accuracy - without.accuracy
    return Proof(
        claim=(
            f"offload {run.plan.offload}: accuracy is within {MAX_DIFFERENCE} of that without"
            " offload"
        ),
        is_proved=abs(difference) <= MAX_DIFFERENCE,
        measured=f"{difference:+.4f}",
    )


def _print_runs(runs: Sequence[TableRun], console: Console) -> None:
    rows: list[tuple[str, ...]] = []
    for run in runs:
        figures = figures_of(run)
        shown = (form.format(figures[name]) for name, form in _COLUMNS.items())
        rows.append((run.plan.offload, *shown))
    title = "What reached the servers, of what workers asked"
    heads = ("offload", *_COLUMNS)
    console.print(fitted_table(title, heads, rows, console.width, right=_COLUMNS))
