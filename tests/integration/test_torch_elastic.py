# SPDX-FileCopyrightText: 2026 The Switchfold Authors
# SPDX-License-Identifier: Apache-2.0
"""torchrun restarts the ranks after a rank, or a machine with its agent, was killed.

The job goes on from the checkpoint, with one job token for all runs.
"""

from __future__ import annotations

import contextlib
import json
import os
import signal
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from switchfold.bmv2_topos.processes.free_ports import free_port
from switchfold.bmv2_topos.processes.rendezvous import PLACES_FILE
from torch_ranks import (
    RankFailure,
    TorchTestbed,
    require_torch,
    run_ranks,
    torch_testbed,
)

require_torch()

__all__ = ["torch_testbed"]
NUM_RANKS, NUM_STEPS, DYING_RANK, DYING_STEP = 2, 6, 1, 3
JOB = "elastic"
TOKEN = {"SWITCHFOLD_JOB_TOKEN": "of-all-runs"}
LIMIT_S = 270.0
SUPPORT = Path(__file__).parents[1] / "support"


@pytest.mark.slow
@pytest.mark.timeout(600)
def test_killed_rank_is_restarted_and_changes_no_byte(
    torch_testbed: TorchTestbed, tmp_path: Path
) -> None:
    folders = [tmp_path / "uninterrupted", tmp_path / "killed"]
    for folder in folders:
        folder.mkdir()
    whole = run_ranks(
        "elastic_trainer:train",
        NUM_RANKS,
        testbed=torch_testbed,
        arguments={"folder": str(folders[0]), "num_steps": NUM_STEPS},
        environment=TOKEN,
        preload=("torch._dynamo",),
        job=JOB,
        timeout_s=LIMIT_S,
    )
    said = torchrun(torch_testbed, folders[1])
    assert [each["life"] for each in whole] == [0] * NUM_RANKS
    assert [each["life"] for each in said] == [1] * NUM_RANKS
    assert [each["first_step"] for each in said] == [DYING_STEP] * NUM_RANKS
    assert {each["hash"] for each in said} == {each["hash"] for each in whole}
    assert len({each["hash"] for each in said}) == 1
    # All runs have one job name, and each a newer generation, for workers and operator alike.
    killed = {int((folders[1] / f"{rank}-life-0").read_text()) for rank in range(NUM_RANKS)}
    generations = [{each["generation"] for each in whole}, killed]
    generations.append({each["generation"] for each in said})
    assert [len(of_life) for of_life in generations] == [1, 1, 1]
    before, at_first, after = (of_life.pop() for of_life in generations)
    assert before < at_first < after
    listed: Any = torch_testbed.live.show("job", "list", "--all")
    assert {job["generation"] for job in listed if job["name"] == JOB} == {before, at_first, after}
    log = (torch_testbed.live.made.run_directory / "controller.log").read_text()
    assert f"job {JOB} waits" in log
    assert f"job {JOB} has no job token" not in log


@pytest.mark.slow
@pytest.mark.timeout(600)
def test_vanished_machine_comes_back_and_every_step_counts_once(
    torch_testbed: TorchTestbed, tmp_path: Path
) -> None:
    job = "nodes"
    said = run_ranks(
        "elastic_nodes:agent",
        4,
        testbed=torch_testbed,
        arguments={"folder": str(tmp_path), "endpoint": f"127.0.0.1:{free_port()}"},
        # The last agent is that of the third machine again.
        environment=lambda number: {
            **(torch_testbed.place(2, 4, job) if number == 3 else {}),
            **TOKEN,
        },
        preload=("torch._dynamo", "torch.distributed.launcher.api"),
        job=job,
        timeout_s=LIMIT_S,
        check=False,
    )
    vanished = said.pop(2)
    assert isinstance(vanished, RankFailure), vanished
    failures = [each for each in said if isinstance(each, RankFailure)]
    assert not failures, "\n".join(f"{each.type}: {each.text}\n{each.trace}" for each in failures)
    assert [each["is_exact"] for each in said] == [True] * 3
    lives = said[0]["lives"]
    assert all(each["lives"] == lives for each in said)
    # A busy machine's agents may be late and start the ranks once more.
    steps = [(num_ranks, first_step) for num_ranks, _, first_step in lives]
    assert steps[0] == (3, 0)
    assert (2, 2) in steps
    assert steps[-1] == (3, 4)
    generations = [generation for _, generation, _ in lives]
    assert generations == sorted(set(generations))


def torchrun(testbed: TorchTestbed, folder: Path) -> list[dict[str, Any]]:
    """Run the script by torchrun with places for the ranks; return what each rank said."""
    variables = {name: v for name, v in os.environ.items() if not name.startswith("SWITCHFOLD_")}
    variables.update(
        PYTHONPATH=str(SUPPORT),
        OMP_NUM_THREADS="1",
        GLOO_SOCKET_IFNAME="lo",
        SWITCHFOLD_JOB=JOB,
        SWITCHFOLD_PLACES=str(testbed.live.made.run_directory / PLACES_FILE),
        **TOKEN,
    )
    script = [str(SUPPORT / "elastic_trainer.py"), str(folder)]
    numbers = [str(number) for number in (NUM_STEPS, DYING_RANK, DYING_STEP)]
    process = subprocess.Popen(
        [
            *(sys.executable, "-m", "torch.distributed.run", "--standalone"),
            *("--nproc-per-node", str(NUM_RANKS), "--max-restarts", "2"),
            *("--monitor-interval", "0.1", *script, *numbers),
        ],
        env=variables,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
        start_new_session=True,
    )
    try:
        output, _ = process.communicate(timeout=LIMIT_S)
    finally:
        with contextlib.suppress(ProcessLookupError):
            os.killpg(process.pid, signal.SIGKILL)
        process.wait()
    assert process.returncode == 0, output
    return [json.loads((folder / f"{rank}.json").read_text()) for rank in range(NUM_RANKS)]
