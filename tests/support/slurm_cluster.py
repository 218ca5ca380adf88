# SPDX-FileCopyrightText: 2026 The Switchfold Authors
# SPDX-License-Identifier: Apache-2.0
"""A cluster of Debian's Slurm: its controller on one machine of a plain_lan, a node on each other.

Each daemon has a hostname, names of the others and processes of its own, and a configuration apart
from this machine's. Nothing of this machine's Slurm or munge is started. Needs root.
"""

from __future__ import annotations

import re
import shlex
import shutil
import subprocess
from typing import Final

from plain_lan import PlainLan
from time_bound import wait_until

DAEMONS: Final = ("slurmctld", "slurmd", "sbatch")
JOB_S: Final = 240.0
"""That only a job which hangs reaches."""
_ALONE: Final = "exec unshare --uts --mount --pid --fork --kill-child --mount-proc sh -c"
# Without munge and cgroups, which belong to the machine that all of these share.
_CONFIGURATION: Final = """
ClusterName=tests
AuthType=auth/none
CredType=cred/none
SlurmUser=root
SlurmdUser=root
ProctrackType=proctrack/linuxproc
TaskPlugin=task/none
JobAcctGatherType=jobacct_gather/none
SelectType=select/linear
SchedulerType=sched/builtin
SchedulerParameters=sched_interval=1
MpiDefault=none
ReturnToService=2
"""


def missing_programs() -> list[str]:
    """Return which of Slurm's programs this machine has not."""
    return [name for name in DAEMONS if shutil.which(name) is None]


class SlurmCluster:
    """Starts the daemons; they end with the lan."""

    def __init__(self, lan: PlainLan, head: str, nodes: tuple[str, ...]) -> None:
        """`head`, `nodes`: addresses of machines of the lan."""
        self._lan = lan
        self._head = head
        self._folder = lan.folder / "slurm"
        self._folder.mkdir()
        names = {head: "head", **{node: f"n{number}" for number, node in enumerate(nodes, 1)}}
        self._hosts = self._folder / "hosts"
        lines = ["127.0.0.1 localhost", *(f"{address} {name}" for address, name in names.items())]
        self._hosts.write_text("".join(f"{line}\n" for line in lines), "utf-8")
        self._configuration = self._folder / "slurm.conf"
        listed = "".join(f"NodeName={names[node]} NodeAddr={node} CPUs=1\n" for node in nodes)
        self._configuration.write_text(
            f"{_CONFIGURATION}SlurmctldHost=head({head})\n"
            f"StateSaveLocation={self._folder}/state\nSlurmctldPidFile={self._folder}/head.pid\n"
            f"SlurmdSpoolDir={self._folder}/%n\nSlurmdPidFile={self._folder}/%n.pid\n"
            f"{listed}PartitionName=all Nodes=n[1-{len(nodes)}] Default=YES\n",
            "utf-8",
        )
        # Version 1's plugin does nothing until a plugin for tasks or processes asks it to.
        (self._folder / "cgroup.conf").write_text("CgroupPlugin=cgroup/v1\n", "utf-8")
        self._daemons = [self._start(head, names[head], "slurmctld -D")]
        self._daemons += [self._start(node, names[node], "slurmd -D") for node in nodes]
        wait_until(lambda: self._idle() == str(len(nodes)), self.said)

    def _start(self, address: str, name: str, daemon: str) -> subprocess.Popen[str]:
        command = (
            f"hostname {name} && mount --bind {self._hosts} /etc/hosts &&"
            f" exec {daemon} -f {self._configuration} >{self._folder}/{name}.log 2>&1"
        )
        return self._lan.start(address, f"{_ALONE} {shlex.quote(command)}")

    def _idle(self) -> str:
        """Return how many nodes wait for a job; empty while the controller does not answer."""
        assert all(each.poll() is None for each in self._daemons), self.said()
        return self.run("sinfo --noheader --states=idle --format=%D || true").strip()

    def run(self, command: str) -> str:
        """Run a command of a user of Slurm, at the head; return what it printed."""
        return self._lan.run(self._head, f"export SLURM_CONF={self._configuration}; {command}")

    def end_of(self, job: str) -> str:
        """Wait for the end of a job; return its state, such as COMPLETED."""
        shown = ""

        def has_ended() -> bool:
            nonlocal shown
            shown = self.run(f"scontrol show job {job}")
            # Then its nodes have been given back.
            return re.search(r"JobState=(PENDING|RUNNING|COMPLETING)", shown) is None

        wait_until(has_ended, lambda: shown + self.said(), JOB_S, interval_s=0.2)
        state = re.search(r"JobState=(\w+)", shown)
        assert state is not None, shown
        return state[1]

    def said(self) -> str:
        """Return the logs of the daemons."""
        logs = sorted(self._folder.glob("*.log"))
        return "\n".join(f"--- {log.name}\n{log.read_text('utf-8')}" for log in logs)
