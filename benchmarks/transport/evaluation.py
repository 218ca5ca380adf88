# SPDX-FileCopyrightText: 2026 The Switchfold Authors
# SPDX-License-Identifier: Apache-2.0
"""Sums over links that lose packets, by every transport in turn, beside selective repair.

Four workers on two leaves of an oversubscribed fabric sum the same tensor again and again: over the
switches, over softswitch on hosts, and by TCP. All contenders take turns under each condition, and
each sum is verified: with what it says to be in it.

example:
  switchfold bench transport --conditions 0.01,0.05:up,burst75 --rounds 40 --out results

exit status: 0 when all was measured; 1 when the run stopped, because of the testbed, a wrong sum or
a worker that ended; 2 when an option is wrong.
"""

from __future__ import annotations

import argparse
import sys
from collections.abc import Callable, Sequence
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
from benchmarks.transport import report  # noqa: E402
from benchmarks.transport.conditions import (  # noqa: E402
    LOSSLESS,
    LossCondition,
    parse_conditions,
)
from benchmarks.transport.congestion import default_control, why_skipped  # noqa: E402
from benchmarks.transport.contenders import TransportContender, chosen  # noqa: E402
from benchmarks.transport.figures import rows_of  # noqa: E402
from benchmarks.transport.rig import (  # noqa: E402
    Round,
    Size,
    TransportRig,
    TransportRunError,
)
from switchfold.bmv2_topos.errors import TestbedError  # noqa: E402

Found = dict[str, dict[str, list[Round]]]
"""Rounds by condition and contender."""
CONDITIONS: Final = (
    "0.001,0.01,0.05,0.05:up,0.05:down,0.2,burst60,burst75,burst90,pulse75,0.01:traffic"
)
WARM_UPS: Final = 2
"""Rounds before the first condition that do not count; before each other one there is one."""


def parse_options(arguments: Sequence[str] | None) -> argparse.Namespace:
    """Read the options; SystemExit with status 2 says what is wrong with one."""
    parser = argparse.ArgumentParser(
        prog="switchfold bench transport",
        description=__doc__,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    add = parser.add_argument
    add(
        "--conditions",
        type=checked(parse_conditions),
        default=CONDITIONS,
        metavar="LIST",
        help="WHAT[:up|:down][:traffic] and so on: a share of packets, or bursts such as burst75 or"
        " pulse75, on both directions of the workers' links or on one, with other TCP traffic or"
        " without;"
        f" the lossless one is always there; default {CONDITIONS}",
    )
    add("--contenders", default="", metavar="LIST", help="names; default all")
    add(
        "--tolerance",
        type=float,
        default=0.1,
        metavar="SHARE",
        help="what sums of the tolerant contenders may lack, default 0.1",
    )
    add(
        "--rounds",
        type=checked(count),
        default=40,
        metavar="N",
        help="sums by each contender under each condition, default 40",
    )
    add(
        "--budget",
        type=float,
        default=20.0,
        metavar="S",
        help="a contender whose sums have taken so long under a condition stops there, default 20",
    )
    add(
        "--least",
        type=checked(count),
        default=5,
        metavar="N",
        help="rounds that are taken whatever they last, default 5",
    )
    add(
        "--elements",
        type=checked(count),
        default=160_000,
        metavar="N",
        help="size of the float32 tensor, default 160000",
    )
    add(
        "--rate",
        type=checked(parse_rate),
        default="50M",
        metavar="RATE",
        help="of each host's link; uplinks have half of it, a quarter of what the workers of a leaf"
        " have together; default 50M",
    )
    add("--timeout", type=float, default=60.0, metavar="S", help="of one sum, default 60")
    add("--seed", type=int, default=1, help="of the losses, default 1")
    add(
        "--out",
        type=Path,
        default=ROOT / "benchmarks" / "results",
        metavar="FOLDER",
        help="for transport.json and transport.png",
    )
    options = parser.parse_args(arguments)
    try:
        options.contenders = chosen(options.contenders, options.tolerance, options.elements)
    except ValueError as exc:
        parser.error(str(exc))
    if not 0 < options.tolerance < 1:
        parser.error(f"--tolerance {options.tolerance:g}: a share above 0 and below 1")
    if not (options.budget > 0 and options.timeout > 0):
        parser.error("--budget and --timeout are times above 0")
    return options


def checked(read: Callable[[str], Any]) -> Callable[[str], Any]:
    """Let argparse show why a value is refused."""

    def read_or_refuse(text: str) -> Any:
        try:
            return read(text)
        except ValueError as exc:
            raise argparse.ArgumentTypeError(str(exc)) from exc

    return read_or_refuse


def count(text: str) -> int:
    """Return a whole number above 0; ValueError."""
    number = int(text)
    if number < 1:
        raise ValueError(f"{text} is less than 1")
    return number


class Evaluation:
    """The rounds of one run, condition by condition."""

    def __init__(self, rig: TransportRig, options: argparse.Namespace) -> None:
        self._rig = rig
        self._options = options
        self._number = 0
        self.found: Found = {}
        self._away: set[str] = set()
        """Contenders whose last sum failed."""
        self.failures: dict[str, dict[str, str]] = {}
        """Why contenders failed, by condition and name."""

    def measure(self, condition: LossCondition) -> None:
        """Let all contenders take turns under a condition."""
        self._rig.set_condition(condition, seed=self._options.seed)
        # Only workers among themselves connect again; a job that has failed is over.
        self._away -= {each.name for each in self._options.contenders if each.place == "hosts"}
        self.failures[condition.name] = {}
        rounds = self.found[condition.name] = {each.name: [] for each in self._options.contenders}
        for _ in range(WARM_UPS if condition is LOSSLESS else 1):
            for contender in self._options.contenders:
                self._run(contender, condition, [])
        for _ in range(self._options.rounds):
            for contender in self._options.contenders:
                mine = rounds[contender.name]
                is_over = sum(each.seconds for each in mine) > self._options.budget
                if not (is_over and len(mine) >= self._options.least):
                    self._run(contender, condition, mine)

    def _run(
        self, contender: TransportContender, condition: LossCondition, rounds: list[Round]
    ) -> None:
        if contender.name in self._away:
            return
        self._number += 1
        outcome = self._rig.run(contender.name, self._number)
        if isinstance(outcome, str):
            self._away.add(contender.name)
            self.failures[condition.name][contender.name] = outcome
            print(f"condition {condition.name}: {contender.name} failed: {outcome}", flush=True)
        else:
            rounds.append(outcome)


def measure_all(
    options: argparse.Namespace, size: Size, machine: dict[str, Any]
) -> dict[str, dict[str, dict[str, Any]]]:
    """Measure under all conditions; print a table and write the results after each."""
    titles = {each.name: each.title for each in options.contenders}
    rows: dict[str, dict[str, dict[str, Any]]] = {}
    with TransportRig(options.contenders, size) as rig:
        evaluation = Evaluation(rig, options)
        for condition in options.conditions:
            evaluation.measure(condition)
            rows = rows_of(evaluation.found, LOSSLESS.name)
            write(evaluation, rows, options, machine)
            here = rows[condition.name]
            if not here:
                continue
            title = report.title_of(condition.name, here, has_traffic=condition.has_traffic)
            print(f"\n{title}\n\n{report.HEADING}")
            for name, row in here.items():
                print(report.line_of(titles[name], row), flush=True)
    return rows


def write(
    evaluation: Evaluation,
    rows: dict[str, dict[str, dict[str, Any]]],
    options: argparse.Namespace,
    machine: dict[str, Any],
) -> None:
    """Write what has been measured so far, and draw it."""
    rounds = {
        condition: {name: [asdict(each) for each in found] for name, found in by_name.items()}
        for condition, by_name in evaluation.found.items()
    }
    content = {
        "machine": machine,
        "parameters": parameters_of(options),
        "failures": evaluation.failures,
        "rows": rows,
        "rounds": rounds,
    }
    write_json(options.out / "transport.json", content)
    times = {
        condition: {name: [each["seconds"] for each in found] for name, found in by_name.items()}
        for condition, by_name in rounds.items()
    }
    titles = {each.name: each.title for each in options.contenders}
    report.draw(times, titles, options.out / "transport.png")


def measurable(contenders: Sequence[TransportContender]) -> list[TransportContender]:
    """Return the contenders that this machine can measure; print why it cannot measure others."""
    reasons = {each.name: why_skipped(each) for each in contenders}
    for name, reason in reasons.items():
        if reason:
            print(f"{name} is skipped: {reason}")
    return [each for each in contenders if not reasons[each.name]]


def main(arguments: Sequence[str] | None = None) -> None:
    """Run the benchmark; SystemExit says why it stopped."""
    options = parse_options(arguments)
    check_machine(has_torch=False)
    machine = describe_machine(has_torch=False) | {"congestion_control": default_control()}
    size = Size(
        elements=options.elements,
        rate_bits_per_s=options.rate,
        tolerance=options.tolerance,
        timeout_s=options.timeout,
    )
    print(machine_line(machine))
    print(f"TCP has {default_control()}, unless a contender names another congestion control")
    options.contenders = measurable(options.contenders)
    print(
        f"{4 * size.elements / 1e6:g} MB of float32, 4 workers on two leaves, links of hosts"
        f" {size.rate_bits_per_s / 1e6:g} Mbit/s, uplinks {size.rate_bits_per_s / 2e6:g} Mbit/s;"
        f" up to {options.rounds} rounds, contenders in turn; every sum verified",
        flush=True,
    )
    try:
        rows = measure_all(options, size, machine)
    except (TestbedError, TransportRunError) as exc:
        raise SystemExit(f"benchmark stopped: {exc}") from exc
    for line in report.aims(rows):
        print(f"\n{line}")
    print(f"\nwrote {options.out / 'transport.json'} and transport.png")


if __name__ == "__main__":
    main()
