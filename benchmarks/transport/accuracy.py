# SPDX-FileCopyrightText: 2026 The Switchfold Authors
# SPDX-License-Identifier: Apache-2.0
"""Time to accuracy over links that lose packets, and what a formula says of it.

The models of `switchfold tolerance` train on four workers of the fabric of `bench transport`, by
each contender in turn: over the switches with selective repair and with a tolerance, and by TCP
among hosts (Switchfold's and Gloo's) through the same switches. Beside the time to a model's target
is the job completion time of Xia et al. (APNet 2019), epochs x (compute + 2 x network time), from
the epochs in the file of tolerances, and from an epoch's computation and from sums that the same
run has timed by themselves. Each sum of these is verified, and all ranks must end with the same
weights.

example:
  switchfold bench accuracy --models mlp-digits --conditions 0.01,0.05:up --seeds 3 --out results

exit status: 0 when all was measured, also if a contender failed; 1 when the run stopped, because of
the testbed; 2 when an option is wrong.
"""

from __future__ import annotations

import argparse
import sys
from collections.abc import Sequence
from contextlib import ExitStack
from dataclasses import asdict
from pathlib import Path
from typing import Any, Final

ROOT = Path(__file__).resolve().parents[2]
sys.path[:0] = [str(ROOT)]

from benchmarks.support.machine import (  # noqa: E402
    check_machine,
    describe_machine,
    machine_line,
    parse_rate,
)
from benchmarks.support.results import parameters_of, write_json  # noqa: E402
from benchmarks.transport.conditions import LossCondition, parse_condition  # noqa: E402
from benchmarks.transport.congestion import default_control  # noqa: E402
from benchmarks.transport.contenders import REPAIR, RING, TransportContender  # noqa: E402
from benchmarks.transport.evaluation import checked, count  # noqa: E402
from benchmarks.transport.job_time import (  # noqa: E402
    HEADING,
    Expected,
    TrainingParts,
    expected_of,
    figures_of,
    line_of,
    rows_of,
)
from benchmarks.transport.training_rig import TrainingCase, TrainingRig  # noqa: E402
from switchfold.bmv2_topos.errors import TestbedError  # noqa: E402
from switchfold.controller.cli.tolerance.command import BUILT_IN  # noqa: E402
from switchfold.controller.cli.tolerance.errors import ToleranceRunError  # noqa: E402
from switchfold.controller.cli.tolerance.rig import TrainingPlan  # noqa: E402
from switchfold.hostlib import ToleranceFileError  # noqa: E402
from switchfold.hostlib.tolerance_file import read_models  # noqa: E402

MODELS: Final = "mf-digits,mlp-digits,cnn-digits,rnn-manual"
CONDITIONS: Final = "0.01,0.05:up"


def trainable(tolerance: float) -> dict[str, TransportContender]:
    """Return the contenders that train, by name."""
    share = f"{100 * tolerance:g} %"
    every = (
        TransportContender(name=REPAIR, title="switches, selective repair", place="switches"),
        TransportContender(
            name="tolerant",
            title=f"switches, {share} tolerated",
            place="switches",
            tolerance=tolerance,
        ),
        TransportContender(name=RING, title="TCP among hosts", place="hosts"),
        TransportContender(name="gloo", title="TCP by Gloo", place="hosts"),
    )
    return {each.name: each for each in every}


def parse_options(arguments: Sequence[str] | None) -> argparse.Namespace:
    """Read the options; SystemExit with status 2 says what is wrong with one."""
    parser = argparse.ArgumentParser(
        prog="switchfold bench accuracy",
        description=__doc__,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    add = parser.add_argument
    add(
        "--models",
        default=MODELS,
        metavar="LIST",
        help=f"of {', '.join(BUILT_IN)}; default {MODELS}",
    )
    add(
        "--conditions",
        type=checked(lambda text: [parse_condition(each.strip()) for each in text.split(",")]),
        default=CONDITIONS,
        metavar="LIST",
        help=f"as `bench transport` takes them, without traffic; default {CONDITIONS}",
    )
    add("--contenders", default="", metavar="LIST", help="names; default all")
    add(
        "--tolerance",
        type=float,
        default=0.1,
        metavar="SHARE",
        help="what sums of the contender `tolerant` may lack, default 0.1",
    )
    add("--seeds", type=checked(count), default=1, metavar="N", help="trainings of each, default 1")
    add(
        "--rounds",
        type=checked(count),
        default=16,
        metavar="N",
        help="sums that are timed before each training, default 16",
    )
    add(
        "--rate",
        type=checked(parse_rate),
        default="25M",
        metavar="RATE",
        help="of each host's link; uplinks have half of it; default 25M",
    )
    add("--timeout", type=float, default=120.0, metavar="S", help="of one training, default 120")
    add(
        "--tolerances",
        type=Path,
        default=ROOT / "docs" / "measured_tolerance.json",
        metavar="FILE",
        help="what `switchfold tolerance --out` has found: the targets, and the formula's epochs",
    )
    add(
        "--out",
        type=Path,
        default=ROOT / "benchmarks" / "results",
        metavar="FOLDER",
        help="for accuracy.json",
    )
    options = parser.parse_args(arguments)
    if not 0 < options.tolerance < 1:
        parser.error(f"--tolerance {options.tolerance:g}: a share above 0 and below 1")
    if any(each.has_traffic for each in options.conditions):
        parser.error("--conditions: no other traffic crosses this fabric")
    if options.timeout <= 0:
        parser.error("--timeout is a time above 0")
    known = trainable(options.tolerance)
    names = [each.strip() for each in options.contenders.split(",")] if options.contenders else None
    if unknown := set(names or ()) - known.keys():
        parser.error(f"no contender {', '.join(sorted(unknown))}; choose from {', '.join(known)}")
    options.contenders = [each for each in known.values() if names is None or each.name in names]
    options.models = [each.strip() for each in options.models.split(",")]
    if unknown := set(options.models) - set(BUILT_IN):
        parser.error(f"no model {', '.join(sorted(unknown))}; choose from {', '.join(BUILT_IN)}")
    try:
        options.expected = expectations(options)
    except ToleranceFileError as exc:
        parser.error(f"--tolerances: {exc}")
    return options


def expectations(options: argparse.Namespace) -> dict[str, dict[str, Expected]]:
    """Return what the file of tolerances says, by model and contender; ToleranceFileError."""
    entries = read_models(options.tolerances)
    found: dict[str, dict[str, Expected]] = {}
    for model in options.models:
        if model not in entries:
            raise ToleranceFileError(
                f"{options.tolerances} has no model {model!r}; measure it with"
                f" `switchfold tolerance --model {model} --out {options.tolerances}`"
            )
        where = f"model {model!r} in {options.tolerances}"
        found[model] = {
            each.name: expected_of(entries[model], each.tolerance, where)
            for each in options.contenders
        }
    return found


class AccuracyRun:
    """All trainings; the rig is made again after one that failed."""

    def __init__(self, options: argparse.Namespace) -> None:
        self._options = options
        self._stack = ExitStack()
        self._rig: TrainingRig | None = None
        self.parts: dict[str, dict[str, dict[str, list[TrainingParts]]]] = {}
        """By condition, model and contender."""
        self.failures: dict[str, str] = {}
        """Why trainings failed, by their names."""

    def close(self) -> None:
        """Take the rig down."""
        self._rig = None
        self._stack.close()

    def train(self, condition: LossCondition, model: str) -> dict[str, list[TrainingParts]]:
        """Let all contenders train a model in turn; those that fail take no further part in it."""
        found: dict[str, list[TrainingParts]] = {each.name: [] for each in self._options.contenders}
        self.parts.setdefault(condition.name, {})[model] = found
        away: set[str] = set()
        for seed in range(1, self._options.seeds + 1):
            for contender in self._options.contenders:
                if contender.name in away:
                    continue
                case = TrainingCase(
                    plan=TrainingPlan(
                        source=model, rates=(), seeds=(), timeout_s=self._options.timeout
                    ),
                    contender=contender,
                    condition=condition,
                    seed=seed,
                    rounds=self._options.rounds,
                )
                try:
                    found[contender.name].append(self._opened().train(case))
                except ToleranceRunError as exc:
                    away.add(contender.name)
                    self.failures[str(case)] = str(exc)
                    print(f"failed: {exc}", flush=True)
                    self._abandon(exc)
        return found

    def _opened(self) -> TrainingRig:
        if self._rig is None:
            self._rig = self._stack.enter_context(TrainingRig(self._options.rate))
        return self._rig

    def _abandon(self, error: ToleranceRunError) -> None:
        """Take a rig down whose ranks no longer answer."""
        self._rig = None
        self._stack.__exit__(type(error), error, error.__traceback__)


def measure_all(options: argparse.Namespace, machine: dict[str, Any]) -> None:
    """Train all; print a table and write the results after each model."""
    titles = {each.name: each.title for each in options.contenders}
    rows: dict[str, dict[str, Any]] = {}
    run = AccuracyRun(options)
    with ExitStack() as stack:
        stack.callback(run.close)
        for condition in options.conditions:
            for model in options.models:
                found = run.train(condition, model)
                expected = options.expected[model]
                here = rows_of(
                    {n: figures_of(each, expected[n]) for n, each in found.items() if each}
                )
                rows.setdefault(condition.name, {})[model] = here
                write(run, rows, options, machine)
                target = next(iter(expected.values())).target
                print(f"\ncondition {condition.name}, {model} to {target:.4g}\n\n{HEADING}")
                for name, row in here.items():
                    print(line_of(titles[name], row, expected[name]), flush=True)


def write(
    run: AccuracyRun,
    rows: dict[str, dict[str, Any]],
    options: argparse.Namespace,
    machine: dict[str, Any],
) -> None:
    """Write what has been measured so far."""
    trainings = {
        condition: {
            model: {name: [asdict(each) for each in found] for name, found in by_name.items()}
            for model, by_name in by_model.items()
        }
        for condition, by_model in run.parts.items()
    }
    content = {
        "machine": machine,
        "parameters": parameters_of(options),
        "failures": run.failures,
        "rows": rows,
        "trainings": trainings,
    }
    write_json(options.out / "accuracy.json", content)


def main(arguments: Sequence[str] | None = None) -> None:
    """Run the benchmark; SystemExit says why it stopped."""
    options = parse_options(arguments)
    check_machine()
    machine = describe_machine() | {"congestion_control": default_control()}
    print(machine_line(machine))
    print(
        f"4 workers on two leaves, links of hosts {options.rate / 1e6:g} Mbit/s, uplinks"
        f" {options.rate / 2e6:g} Mbit/s; {options.seeds} seeds, contenders in turn; timed sums"
        " verified, equal weights on all ranks",
        flush=True,
    )
    try:
        measure_all(options, machine)
    except TestbedError as exc:
        raise SystemExit(f"benchmark stopped: {exc}") from exc
    print(f"\nwrote {options.out / 'accuracy.json'}")


if __name__ == "__main__":
    main()
