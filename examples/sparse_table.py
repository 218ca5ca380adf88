# SPDX-FileCopyrightText: 2026 The Switchfold Authors
# SPDX-License-Identifier: Apache-2.0
"""Workers count words in a table on a parameter server; a switch can keep the hottest counts.

As root, without arguments, the file makes a testbed: one switch, four hosts with a worker each, and
a server on the first of them. With `HOST:PORT` of each server, it is one worker of the job that the
environment names; with `--hot` it also goes on until the switch has answered it.
"""

import secrets
import sys
from dataclasses import replace

import numpy as np

from switchfold.bmv2_topos import Testbed, single_switch
from switchfold.hostlib.config import credentials_from_environment as credentials
from switchfold.hostlib.config import join_from_environment, secret_from_environment
from switchfold.hostlib.parameter_server import ClientOptions, HotRowUse
from switchfold.hostlib.parameter_server.rows import GradientSum
from switchfold.hostlib.parameter_server.tables import UNKNOWN_UPDATES, TableClient, TableDefinition

WORDS, STEPS, BATCH, PORT, JOB = 1000, 300, 64, 7000, "words"
COUNTS = TableDefinition(name="counts", width=1, optimiser=GradientSum(), hot_keys=128)


def work(servers: list[tuple[str, int]], *, until_hot: bool) -> None:
    """Run one worker: push how often words occur; then read what all have pushed."""
    share = 1 / np.arange(1, WORDS + 1)  # few words are frequent, as in any language
    with join_from_environment() as session:
        rng = np.random.default_rng(session.view.worker_id)
        options = ClientOptions(
            worker_id=session.view.worker_id,
            token=secret_from_environment(),
            credentials=credentials(),
            use_hot_rows=HotRowUse.ALWAYS if until_hot else HotRowUse.AUTO,
        )
        pushed = by_switch = steps = 0
        with TableClient(servers, options) as client:
            counts = client.define(COUNTS)
            while steps < STEPS or (until_hot and not by_switch):
                words, times = np.unique(
                    rng.choice(WORDS, BATCH, p=share / share.sum()), return_counts=True
                )
                by_switch += int((counts.pull(words).result().updates == UNKNOWN_UPDATES).sum())
                counts.push(words, times[:, None].astype(np.float32)).result()
                pushed, steps = pushed + BATCH, steps + 1
        of_all = session.allreduce(np.array([pushed], np.int32)).result()[0]
        # A value from the switch may be a little older than the last push: ask the server.
        options = replace(options, use_hot_rows=HotRowUse.NEVER)
        with TableClient(servers, options) as client:
            counted = client.define(COUNTS).pull(np.arange(WORDS)).result().values.sum()
        assert counted == of_all, (counted, of_all)
        print(f"worker {options.worker_id}: {of_all} words; the switch answered for {by_switch}")


def main() -> None:
    token = {"SWITCHFOLD_JOB_TOKEN": secrets.token_hex(16)}
    with Testbed(single_switch(4), mode="veth") as testbed:
        first = testbed.endpoint(0)
        server = f"{first.host.address}:{PORT}"
        command = [
            *(sys.executable, "-m", "switchfold.hostlib.parameter_server"),
            *("--address", first.host.address, "--port", str(PORT), "--num-workers", "4"),
            *("--credentials", str(testbed.server_credentials.folder)),
            *("--controller", first.controller_address, "--hot-job", JOB, "--hot-refresh", "1"),
        ]
        variables = {**first.environment(JOB), **token}
        testbed.start("server", command, node=first.host, environment=variables)
        worker = [sys.executable, __file__, "--hot", server]
        for done in testbed.run_workers(worker, job=JOB, timeout_s=300, environment=token):
            print(done.output, end="")


if __name__ == "__main__":
    places = [argument.rpartition(":") for argument in sys.argv[1:] if ":" in argument]
    if places:
        work([(host, int(port)) for host, _, port in places], until_hot="--hot" in sys.argv)
    else:
        main()
