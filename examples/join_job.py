# SPDX-FileCopyrightText: 2026 The Switchfold Authors
# SPDX-License-Identifier: Apache-2.0
"""A worker process: it joins the job that the environment names, sums a vector and leaves.

`hostlib/config.py` lists the variables; a testbed and docker-compose.yml set them for each worker.
"""

import numpy as np

from switchfold.hostlib.config import join_from_environment


def main() -> None:
    with join_from_environment() as session:
        worker, workers = session.view.worker_id, session.view.num_workers
        session.barrier("start")
        total = session.allreduce(np.full(100_000, worker + 1, np.float32)).result()
        assert (total == workers * (workers + 1) / 2).all()
        session.barrier("end")
        print(f"worker {worker} of {workers}: every element is {total[0]:g}")


if __name__ == "__main__":
    main()
