# SPDX-FileCopyrightText: 2026 The Switchfold Authors
# SPDX-License-Identifier: Apache-2.0
"""Training through the switch against Gloo and a parameter server, on equal links in one run.

For each number of workers, two testbeds run together, one around a switch and one around a bridge
of the kernel. One set of worker processes trains the same models on the same batches with each
contender in turn, at each rate: unmodified DistributedDataParallel over the switch, the switch
without overlap, DistributedDataParallel over Gloo through the same switch and over the bridge, and
over TCP parameter servers on the workers' hosts. Weights are verified before a time counts. The
report shows the cost model's prediction beside each time.

    python benchmarks/training/training.py --workers 1,2,4,8 --rates 1G,100M,40M
"""

from __future__ import annotations

import argparse
import json
import os
import subprocess
import sys
import time
from pathlib import Path
from typing import Any

ROOT = Path(__file__).resolve().parents[2]
sys.path.insert(0, str(ROOT))

from benchmarks.support.machine import (  # noqa: E402
    check_machine,
    describe_machine,
    machine_line,
    parse_rate,
    probed_rate,
)
from benchmarks.support.results import parameters_of, write_json  # noqa: E402
from benchmarks.support.worker_runs import outputs  # noqa: E402
from benchmarks.training.training_models import WORKLOADS  # noqa: E402
from benchmarks.training.training_plot import draw_training  # noqa: E402
from benchmarks.training.training_report import markdown, rows_of  # noqa: E402
from switchfold.bmv2_topos import Testbed, single_switch  # noqa: E402
from switchfold.bmv2_topos.errors import TestbedError  # noqa: E402

WORKER = Path(__file__).with_name("training_worker.py")
ENVIRONMENT = {
    "OMP_NUM_THREADS": "1",
    "TORCH_DEVICE_BACKEND_AUTOLOAD": "0",
    "SWITCHFOLD_PRECISION": "block",  # only gradients are summed here
}
PROCESS_TIMEOUT_S = 600.0
COLLECTIVE_TIMEOUT_S = 120.0


def parse_options() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("--workers", default="1,2,4,8", help="numbers of workers")
    parser.add_argument("--rates", default="1G,100M,40M", help="rates of all links")
    parser.add_argument("--models", default=",".join(WORKLOADS), help="default %(default)s")
    parser.add_argument("--repeats", type=int, default=6, help="iterations after the warm-up")
    parser.add_argument("--turns", type=int, default=1, help="runs of each contender, in turn")
    parser.add_argument("--quick", action="store_true", help="2 workers, 100M, 3 iterations")
    parser.add_argument("--out", type=Path, default=ROOT / "benchmarks" / "results")
    options = parser.parse_args()
    if options.quick:
        options.workers, options.rates, options.repeats = "1,2", "100M", 3
    unknown = set(options.models.split(",")) - WORKLOADS.keys()
    if unknown:
        parser.error(f"no model {', '.join(unknown)}; choose from {', '.join(WORKLOADS)}")
    return options


def run_workers(
    options: argparse.Namespace, num_workers: int, rates: list[int]
) -> list[dict[str, Any]]:
    """Build both testbeds, train with all contenders, and return the output of each worker."""
    words = [
        *(sys.executable, str(WORKER), "--models", options.models),
        *("--repeats", str(options.repeats), "--turns", str(options.turns)),
        *("--timeout", str(COLLECTIVE_TIMEOUT_S)),
    ]
    if num_workers == 1:
        done = subprocess.run(
            words,
            capture_output=True,
            text=True,
            check=False,
            timeout=PROCESS_TIMEOUT_S,
            env={**os.environ, **ENVIRONMENT, "PYTHONPATH": str(ROOT / "src")},
        )
        if done.returncode:
            raise TestbedError(f"the single worker failed:\n{done.stderr[-3000:]}")
        return [json.loads(done.stdout.splitlines()[-1])]
    topology = single_switch(num_workers, rate_bits_per_s=max(rates))
    with (
        Testbed(topology, variant="wide") as testbed,
        Testbed(topology, has_bridge=True) as bridged,
    ):
        words += [
            *("--rates", ",".join(map(str, rates))),
            *("--rendezvous", str(testbed.run_directory / "rendezvous")),
            *("--testbeds", f"{testbed.name},{bridged.name}"),
        ]
        return outputs(
            testbed.run_workers(
                words, job="training", timeout_s=PROCESS_TIMEOUT_S, environment=ENVIRONMENT
            )
        )


def main() -> None:
    options = parse_options()
    check_machine()
    machine = describe_machine()
    rates = [parse_rate(rate) for rate in options.rates.split(",")]
    began_s = time.monotonic()
    rows: list[dict[str, Any]] = []
    try:
        carried = {rate: min(probed_rate(rate)) for rate in rates}
        print(machine_line(machine), flush=True)
        for number in options.workers.split(","):
            workers = run_workers(options, int(number), rates)
            rows += rows_of(workers, carried)
            print(f"{number} workers done after {time.monotonic() - began_s:.0f} s", flush=True)
    except TestbedError as exc:
        raise SystemExit(f"benchmark stopped: {exc}") from exc
    text = markdown(rows, carried)
    print(text)
    content = {
        "machine": machine,
        "parameters": parameters_of(options),
        "carried_bits_per_s": carried,
        "rows": rows,
    }
    write_json(options.out / "training.json", content)
    (options.out / "training.md").write_text(f"{machine_line(machine)}\n\n{text}\n")
    draw_training(rows, machine, options.out / "training.png")
    print(f"wrote training.json, training.md and training.png to {options.out}")


if __name__ == "__main__":
    main()
