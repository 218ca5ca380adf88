# SPDX-FileCopyrightText: 2026 The Switchfold Authors
# SPDX-License-Identifier: Apache-2.0
"""`switchfold tolerance`: trains a model at several loss rates, and finds what it bears."""

from __future__ import annotations

import re
from collections.abc import Sequence
from pathlib import Path
from typing import Final

import click

from ....hostlib.loss_fill import FillPolicy
from ....hostlib.tolerance_file import read_models, store_model
from ...errors import ConfigError, ToolError
from ..installed_torch import has_torch
from ..output import print_table
from .outcome import FoundTolerance, RateResult, TrainingOutcome, judge
from .plot import KINDS, draw_tolerances
from .rig import ToleranceRig, TrainingPlan

BUILT_IN: Final = (
    *("mf-digits", "mf-wordnet", "mlp-digits", "mlp-wordnet"),
    *("cnn-digits", "cnn-mnist", "rnn-wordnet", "rnn-manual"),
)
"""Names of models.py, which loads torch."""
_SCRIPT: Final = re.compile(r"[A-Za-z_][\w.]*:[A-Za-z_]\w*")
_COLUMNS: Final = (
    *("tolerated", "missing", "most of a sum", "epochs", "metric", "s.d."),
    *("equal epochs", "equal metric"),
)


def read_rates(_: click.Context, __: click.Parameter, text: str) -> list[float]:
    """Return rising rates, 0 among them."""
    try:
        rates = {float(each) for each in text.split(",")}
    except ValueError as exc:
        raise click.BadParameter(f"{text!r} is no list of shares such as 0,0.05,0.1") from exc
    wrong = [rate for rate in rates if not 0 <= rate < 1]
    if wrong:
        raise click.BadParameter(f"{wrong[0]:g} is no share of contributions: 0 to below 1")
    if not rates - {0.0}:
        raise click.BadParameter(f"{text!r} has no rate above 0 to compare with no loss")
    return sorted(rates | {0.0})


@click.command(
    epilog="Exit codes: 0 measured, 1 an error or a training that did not end, 2 wrong use."
)
@click.option(
    "--model",
    "models",
    multiple=True,
    type=click.Choice(BUILT_IN),
    help="A built-in model with its data; may be repeated.",
)
@click.option(
    "--script",
    "scripts",
    multiple=True,
    metavar="MODULE:FUNCTION",
    help="A model of yours; may be repeated.",
)
@click.option(
    "--workers",
    type=click.IntRange(2, 32),
    default=4,
    show_default=True,
    help="Number of workers.",
)
@click.option(
    "--rates",
    default="0,0.01,0.05,0.1,0.2,0.4",
    show_default=True,
    callback=read_rates,
    metavar="SHARES",
    help="Tolerated shares of contributions, with commas; 0 is always among them.",
)
@click.option(
    "--seeds",
    "num_seeds",
    type=click.IntRange(1, 100),
    default=5,
    show_default=True,
    help="Trainings of each rate, with seeds 1, 2, and so on.",
)
@click.option(
    "--epochs",
    type=click.IntRange(1, 10_000),
    help="Passes over the training data.  [default: the model's own]",
)
@click.option(
    "--fill",
    type=click.Choice([each.value for each in FillPolicy]),
    default=FillPolicy.MEAN.value,
    show_default=True,
    help="What fills the gaps of sums.",
)
@click.option(
    "--timeout",
    "timeout_s",
    type=click.FloatRange(min=0, min_open=True),
    default=600,
    show_default=True,
    help="Seconds that one training may take.",
)
@click.option(
    "--out",
    type=click.Path(dir_okay=False, path_type=Path),
    default=Path("tolerance.json"),
    show_default=True,
    help="File of tolerances; other models in it stay.",
)
@click.option(
    "--plot",
    "picture",
    type=click.Path(dir_okay=False, path_type=Path),
    help="Picture of all models in the file: .svg, .png or .pdf.",
)
def tolerance(  # noqa: PLR0913 - click passes options by name
    *,
    models: Sequence[str],
    scripts: Sequence[str],
    workers: int,
    rates: Sequence[float],
    num_seeds: int,
    epochs: int | None,
    fill: str,
    timeout_s: float,
    out: Path,
    picture: Path | None,
) -> None:
    """Find the largest share of lost gradients that the training of a model bears.

    Workers are namespaces around one switch, so this needs root and PyTorch. For each rate, their
    links lose that share of the packets to the switch, and sums may lack as much. Measured are the
    epochs to the target (95 % of what training without loss gains) and the metric in the end.

    A function of --script takes (seed, rank, num_ranks) and returns a
    switchfold.hostlib.torch.TrainingTask.

    \b
    Examples:
      switchfold tolerance --model mlp-digits
      switchfold tolerance --model cnn-digits --model rnn-wordnet --plot tolerance.png
      switchfold tolerance --script train:task --rates 0,0.02,0.05 --seeds 3
      SWITCHFOLD_TOLERANCE=tolerance.json:train:task python train.py
    """  # fmt: skip
    sources = [*models, *scripts]
    if not sources:
        raise click.UsageError(f"give --model ({', '.join(BUILT_IN)}) or --script MODULE:FUNCTION")
    for script in scripts:
        if not _SCRIPT.fullmatch(script):
            raise click.UsageError(f"--script {script!r} is not MODULE:FUNCTION")
    if picture is not None and picture.suffix not in KINDS:
        raise click.UsageError(f"--plot {picture} does not end in {', '.join(KINDS)}")
    if not has_torch():
        raise ToolError(
            "'switchfold tolerance' needs PyTorch, which is missing; run 'make deps-torch' in a"
            " checkout, or pip install '.[torch]'"
        )
    if out.exists():
        read_models(out)  # before hours of training
    elif not out.parent.is_dir():
        raise ConfigError(f"{out.parent} is no folder; make it, or give another --out")
    circumstances = {"workers": workers, "seeds": num_seeds, "fill": fill}
    with ToleranceRig(workers) as rig:
        for source in sources:
            plan = TrainingPlan(
                source=source,
                rates=rates,
                seeds=range(1, num_seeds + 1),
                fill=fill,
                epochs=epochs,
                timeout_s=timeout_s,
            )
            found = _find(rig, plan)
            store_model(out, source, found.entry(**circumstances))
            print_found(found)
            if picture is not None:
                draw_tolerances(read_models(out), picture)
    click.echo(f"{out}: {', '.join(sources)}")


def _find(rig: ToleranceRig, plan: TrainingPlan) -> FoundTolerance:
    outcomes: list[TrainingOutcome] = []
    for outcome in rig.run(plan):
        outcomes.append(outcome)
        click.echo(
            f"{plan.source}: tolerated {outcome.rate:g}, seed {outcome.seed}: missing"
            f" {outcome.missing:.3f}, metric {outcome.metrics[-1]:.4f}"
        )
    return judge(plan.source, outcomes)


def print_found(found: FoundTolerance) -> None:
    """Show the table of a model, and what it bears."""
    print_table(
        f"{found.model}: target {found.target:.4g}, {len(found.rates[0].metrics)} seeds",
        _COLUMNS,
        [_cells(each) for each in found.rates],
    )
    by_metric = found.equal_metric
    x2 = "not judged, give 2 seeds or more" if by_metric is None else f"{by_metric:g}"
    click.echo(
        f"largest tolerance: equal epochs (x1) {found.equal_epochs:g}, equal metric (x2) {x2};"
        f" by all criteria {found.loss:g}"
    )
    of_loss = next(each for each in found.rates if each.rate == found.loss)
    if of_loss is found.rates[-1]:
        click.echo(f"{found.loss:g} is the largest that was tried: the model may bear more")
    if found.loss:
        click.echo(f"with {found.loss:g} tolerated, {of_loss.missing:.4f} were missing")
    for each in found.rates[1:]:
        if not each.is_tried:
            click.echo(f"{each.rate:g} was not tried: no sum lacked anything, so it does not count")


def _cells(each: RateResult) -> tuple[str, ...]:
    deviation = each.deviation
    return (
        f"{each.rate:g}",
        f"{each.missing:.4f}",
        f"{each.most_missing:.4f}",
        each.shown_epochs,
        f"{each.mean_metric:.4f}",
        "-" if deviation is None else f"{deviation:.4f}",
        _word(each.has_equal_epochs),
        _word(each.has_equal_metric),
    )


def _word(verdict: bool | None) -> str:
    return {True: "yes", False: "no", None: "-"}[verdict]
