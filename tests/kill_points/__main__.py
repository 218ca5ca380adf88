# SPDX-FileCopyrightText: 2026 The Switchfold Authors
# SPDX-License-Identifier: Apache-2.0
"""The long campaign: python -m kill_points [--kills N] [--seed N] [--first N] [--no-points]
[--full N].

Run in tests/, or by `make kill-points KILLS=1000`. The controller dies at every point of the scene
once, then N times at random times; then the disk is full until it has refused N writes.
"""

from __future__ import annotations

import argparse
import shutil
import sys
import tempfile
import time
from pathlib import Path

from kill_points.campaign import Campaign
from kill_points.world import World


def main() -> int:
    parser = argparse.ArgumentParser(prog="python -m kill_points", description=__doc__)
    parser.add_argument("--kills", type=int, default=1000, help="at random times")
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--first", type=int, default=1, help="number of the first points")
    parser.add_argument("--no-points", action="store_true", help="random times only")
    parser.add_argument("--full", type=int, default=100, help="writes that a full disk refuses")
    options = parser.parse_args()
    began_s = time.monotonic()
    folder = Path(tempfile.mkdtemp(prefix="kill-"))
    print(f"logs in {folder}, until all is well", flush=True)
    with World(folder) as world:
        campaign = Campaign(world, options.seed)
        campaign.count()
        for name, points in campaign.points.items():
            print(f"stage {name}: {len(points)} points")
        print(f"all stages: {campaign.num_points} points", flush=True)
        rounds = range(0) if options.no_points else campaign.rounds[options.first - 1 :]
        for number in campaign.at_points(rounds):
            print(f"points {number} of {campaign.rounds[-1]}: {report(world, began_s)}", flush=True)
        for kills in campaign.at_random_times() if options.kills else ():
            print(f"random times: {report(world, began_s)}", flush=True)
            if kills >= options.kills:
                break
        world.end_jobs()  # the scene of the last death may be in the middle; ports are taken
        for refused in campaign.on_full_disk() if options.full else ():
            print(f"full disk, {refused} writes refused: {report(world, began_s)}", flush=True)
            if refused >= options.full:
                break
        for cause, number in world.deaths.most_common():
            print(f"{number:5} deaths {cause}")
        for cause, number in world.members.failures.most_common():
            print(f"{number:5} workers started again: {cause}")
    shutil.rmtree(folder)
    return 0


def report(world: World, began_s: float) -> str:
    return (
        f"{world.deaths.total()} deaths, {world.checks} checks, {world.members.results} sums, "
        f"{world.members.failures.total()} workers started again, "
        f"{time.monotonic() - began_s:.0f} s"
    )


if __name__ == "__main__":
    sys.exit(main())
