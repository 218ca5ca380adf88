# SPDX-FileCopyrightText: 2026 The Switchfold Authors
# SPDX-License-Identifier: Apache-2.0
"""examples/clusters/switchfold.sbatch: its tasks join one job; srun and scontrol are stand-ins."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

from switchfold.bmv2_topos import Testbed, single_switch

ROOT = Path(__file__).resolve().parents[2]
SCRIPT = ROOT / "examples" / "clusters" / "switchfold.sbatch"
# Nodes are hosts of a testbed; the name of the interface is a host's own there.
SRUN = """
import json, os, subprocess, sys
*options, shell, c, task, name, program, script = sys.argv[1:]
assert options == ["--kill-on-bad-exit=1"], options
started = []
for number, node in enumerate(json.loads(os.environ["NODES"])):
    own = {"SLURM_PROCID": str(number), "SLURM_LOCALID": "0"}
    own["SWITCHFOLD_INTERFACE"] = node["interface"]
    words = ["nsenter", "--net=" + node["namespace"], shell, c, task, name, program, script]
    started.append(subprocess.Popen(words, env={**os.environ, **own}))
sys.exit(max(process.wait() for process in started))
"""
SCONTROL = """
import sys
assert sys.argv[1:] == ["show", "hostnames", "node[1-2]"], sys.argv
print("node1\\nnode2")
"""
WORKER = """
import os
import numpy as np
from switchfold.hostlib.config import join_from_environment
with join_from_environment() as session:
    total = session.allreduce(np.full(1000, session.view.worker_id + 1, np.float32)).result()
    names = ("SWITCHFOLD_JOB", "RANK", "LOCAL_RANK", "WORLD_SIZE", "MASTER_ADDR", "MASTER_PORT")
    print(f"{total[0]:g} {session.view.num_workers}", *(os.environ[name] for name in names))
"""


def stand_in(folder: Path, name: str, text: str) -> None:
    program = folder / name
    program.write_text(f"#!{sys.executable}\n{text}")
    program.chmod(0o755)


def run_script(folder: Path, environment: dict[str, str]) -> subprocess.CompletedProcess[str]:
    (folder / "worker.py").write_text(WORKER)
    kept = {name: value for name, value in os.environ.items() if "SWITCHFOLD" not in name}
    path = os.pathsep.join([str(folder), os.environ["PATH"]])
    return subprocess.run(
        ["bash", str(SCRIPT), sys.executable, str(folder / "worker.py")],
        env={**kept, "PYTHONPATH": str(ROOT / "src"), **environment, "PATH": path},
        capture_output=True,
        text=True,
        check=False,
        timeout=240,
    )


@pytest.mark.root
@pytest.mark.skipif(os.geteuid() != 0, reason="network namespaces need root")
def test_tasks_join_one_job(tmp_path: Path) -> None:
    stand_in(tmp_path, "srun", SRUN)
    stand_in(tmp_path, "scontrol", SCONTROL)
    with Testbed(single_switch(2), mode="veth") as testbed:
        nodes = [
            {
                "namespace": f"/run/netns/{testbed.namespace_of(host)}",
                "interface": host.interface,
            }
            for host in testbed.topology.hosts
        ]
        place = testbed.endpoint(0).environment("unused")
        names = ("SWITCHFOLD_CONTROLLER", "SWITCHFOLD_TOKEN", "SWITCHFOLD_CREDENTIALS")
        done = run_script(
            tmp_path,
            {
                **{name: place[name] for name in names},
                "SWITCHFOLD_INTERFACE": "of-each-node",
                "SLURM_JOB_ID": "123456",
                "SLURM_NTASKS": "2",
                "SLURM_JOB_NODELIST": "node[1-2]",
                "NODES": json.dumps(nodes),
            },
        )
    assert done.returncode == 0, done.stdout + done.stderr
    assert sorted(done.stdout.splitlines()) == [
        f"3 2 slurm-123456 {rank} 0 2 node1 23456" for rank in (0, 1)
    ]


def test_script_says_what_it_needs(tmp_path: Path) -> None:
    done = run_script(tmp_path, {"SWITCHFOLD_CONTROLLER": "10.0.0.100:50551"})
    assert done.returncode != 0
    assert "SWITCHFOLD_INTERFACE: the link to the switch, such as eth1" in done.stderr
