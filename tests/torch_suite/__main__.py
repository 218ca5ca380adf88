# SPDX-FileCopyrightText: 2026 The Switchfold Authors
# SPDX-License-Identifier: Apache-2.0
"""PyTorch's own distributed tests over this backend: python -m torch_suite [--ranks N] [TEST ...].

Run in tests/, or by `make test-torch-suite RANKS=3`. Each test runs by Gloo, and, where it passes
there, on a testbed without privileges. It fails if a test of floor.txt does not pass, and tells of
tests that pass and are not in it. A run that was interrupted goes on where it stopped.
"""

from __future__ import annotations

import argparse
import contextlib
import dataclasses
import importlib.metadata
import json
import sys
from collections.abc import Iterable, Sequence
from pathlib import Path

from torch_ranks import TorchTestbed
from torch_suite.floor import floor_of, floor_version, write_floor
from torch_suite.server import LIMIT_S, Result, SuiteServer

PROGRESS = Path(__file__).resolve().parents[2] / "build" / "torch-suite"
BACKEND = "switchfold"


def main() -> int:
    parser = argparse.ArgumentParser(prog="python -m torch_suite", description=__doc__)
    parser.add_argument("--ranks", type=int, default=3)
    parser.add_argument("--limit", type=float, default=LIMIT_S, help="seconds for one test")
    parser.add_argument("--again", action="store_true", help="forget an interrupted run")
    parser.add_argument("--renew", action="store_true", help="let what passes be the floor")
    parser.add_argument("tests", nargs="*", help="names; all unless given")
    options = parser.parse_args()
    version = importlib.metadata.version("torch")
    floor = floor_of(options.ranks)
    print(f"PyTorch {version}, {options.ranks} ranks; floor: {len(floor)} tests", flush=True)
    if version.split("+")[0] != floor_version():
        print(f"the floor is of PyTorch {floor_version()}: others have other tests", flush=True)
    progress = PROGRESS / f"{options.ranks}.jsonl"
    if options.again or options.tests:
        progress.unlink(missing_ok=True)
    results = run_all(options.ranks, options.tests, floor, progress, options.limit)
    progress.unlink()
    passed = {result.test for result in results if result.outcome == "pass"}
    if options.renew:
        write_floor(options.ranks, passed, version.split("+")[0])
        return 0
    return judge(passed, floor & set(options.tests) if options.tests else floor)


def run_all(
    num_ranks: int, chosen: Sequence[str], floor: set[str], progress: Path, limit_s: float
) -> list[Result]:
    """Run the tests that have no result yet; return all results on this backend."""
    results = _read(progress)
    # Some tests send a hundred megabytes: in wide packets.
    testbed = TorchTestbed(num_ranks, variant="wide")
    with contextlib.ExitStack() as stack:
        stack.enter_context(testbed.live)
        places = [testbed.place(rank, num_ranks, "") for rank in range(num_ranks)]
        gloo = stack.enter_context(SuiteServer("gloo", places))
        ours = stack.enter_context(SuiteServer(BACKEND, places))
        progress.parent.mkdir(parents=True, exist_ok=True)
        with progress.open("a", encoding="utf-8") as file:
            for test in chosen or gloo.names:
                if any(result.test == test for result in results):
                    continue
                result = gloo.run(test, limit_s)
                if result.outcome == "pass" or test in floor:
                    result = _run(ours, test, limit_s, is_known=test in floor)
                else:
                    result = dataclasses.replace(result, outcome="skip", why=f"Gloo: {result.why}")
                results.append(result)
                print(json.dumps(dataclasses.asdict(result)), file=file, flush=True)
    return results


def _run(server: SuiteServer, test: str, limit_s: float, *, is_known: bool) -> Result:
    result = server.run(test, limit_s)
    if result.outcome != "pass" and is_known:
        # Many of these tests count on seconds; a busy machine may take them away once.
        print(f"{test} failed, and runs again: {result.why}\n{result.log}", flush=True)
        result = server.run(test, limit_s)
    print(f"{test}: {result.outcome} {result.why} ({result.seconds} s)", flush=True)
    if result.outcome == "fail":
        print(result.log, flush=True)
    return result


def _read(progress: Path) -> list[Result]:
    if not progress.exists():
        return []
    lines = progress.read_text(encoding="utf-8").splitlines()
    print(f"{len(lines)} tests have run before ({progress}); --again forgets them")
    return [Result(**json.loads(line)) for line in lines]


def judge(passed: Iterable[str], floor: Iterable[str]) -> int:
    """Tell where the tests that passed differ from the floor; return the exit code."""
    new, fallen = sorted(set(passed) - set(floor)), sorted(set(floor) - set(passed))
    print(f"{len(set(passed))} tests pass")
    if new:
        print(f"new, for floor.txt (--renew writes it): {', '.join(new)}")
    if fallen:
        print(f"below the floor: {', '.join(fallen)}")
    return 1 if fallen else 0


if __name__ == "__main__":
    sys.exit(main())
