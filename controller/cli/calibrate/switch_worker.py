# SPDX-FileCopyrightText: 2026 The Switchfold Authors
# SPDX-License-Identifier: Apache-2.0
"""One worker of `switchfold calibrate` that sums through a switch; prints JSON.

Worker 0 also reads the processor time of the switch's process, `--switch-pid`.
"""

from __future__ import annotations

import json
import os

from ....hostlib.config import join_from_environment
from ....hostlib.options import SessionOptions
from .processor_time import process_s
from .sums import Floats, large_and_small, worker_parser


def main() -> None:
    """Sum, verify, and print the times."""
    parser = worker_parser()
    parser.add_argument("--switch-pid", type=int, required=True)
    options = parser.parse_args()
    place = int(os.environ["SWITCHFOLD_WORKER_ID"]), int(os.environ["SWITCHFOLD_NUM_WORKERS"])
    with join_from_environment(SessionOptions(timeout_s=options.timeout, path="switch")) as session:

        def add(values: Floats) -> Floats:
            return session.allreduce(values, precision="block").result()

        found = large_and_small(
            add, place, options, lambda: 0.0 if place[0] else process_s(options.switch_pid)
        )
    print(json.dumps(found))


if __name__ == "__main__":
    main()
