# SPDX-FileCopyrightText: 2026 The Switchfold Authors
# SPDX-License-Identifier: Apache-2.0
"""`switchfold testbed run` on a leaf-spine testbed of loopback ports: sums, subsets, failures."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest
from click.testing import CliRunner, Result

from switchfold.bmv2_topos import Testbed, leaf_spine
from switchfold.bmv2_topos.commands.testbed import testbed as command
from switchfold.hostlib.config import place_variables

ROOT = Path(__file__).resolve().parents[2]
EXAMPLE = str(ROOT / "examples" / "join_job.py")


@pytest.fixture(scope="module")
def fabric() -> Iterator[Testbed]:
    with Testbed(leaf_spine(2, 2, 1), mode="udp") as made:
        yield made


def run(fabric: Testbed, *words: str) -> Result:
    arguments = ["run", "--name", fabric.name, "--timeout", "240", *words]
    return CliRunner().invoke(command, arguments)


def test_run_sums_on_every_host(fabric: Testbed) -> None:
    done = run(fabric, "python", EXAMPLE)
    assert done.exit_code == 0, done.output
    assert "h1 | worker 0 of 2: every element is 3" in done.output
    assert "h2 | worker 1 of 2: every element is 3" in done.output


def test_run_takes_named_hosts_and_variables(fabric: Testbed) -> None:
    script = "import os; print(os.environ['SWITCHFOLD_WORKER_ID'], os.environ['SWITCHFOLD_PATH'])"
    done = run(
        fabric, "--hosts", "h2", "--worker-id", "3", "--env", "SWITCHFOLD_PATH=host",
        "python", "-c", script,
    )  # fmt: skip
    assert done.output == "h2 | 3 host\n"


def test_run_keeps_places_of_the_shell_from_workers(
    fabric: Testbed, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("SWITCHFOLD_PLACES", "/of/another/testbed")
    script = "import os; print(os.environ.get('SWITCHFOLD_PLACES'))"
    assert run(fabric, "--hosts", "h1", "python", "-c", script).output == "h1 | None\n"


def test_run_gives_torch_its_rendezvous(fabric: Testbed) -> None:
    names = ("RANK", "WORLD_SIZE", "LOCAL_RANK", "MASTER_ADDR", "GLOO_SOCKET_IFNAME", "MASTER_PORT")
    script = f"import os; print(*(os.environ[name] for name in {names}))"
    done = run(fabric, "--hosts", "h2,h1", "python", "-c", script)
    lines = dict(line.split(" | ") for line in done.output.splitlines())
    port = lines["h1"].split()[-1]
    assert lines == {
        "h2": f"0 2 0 127.0.0.1 lo {port}",
        "h1": f"1 2 0 127.0.0.1 lo {port}",
    }


def test_places_serve_processes_of_this_machine(fabric: Testbed) -> None:
    places = fabric.status().places
    assert places is not None
    for rank in range(2):
        process = {"SWITCHFOLD_PLACES": places, "LOCAL_RANK": str(rank), "SWITCHFOLD_JOB": "own"}
        own = fabric.endpoint(rank).environment("own")
        numbers = {"SWITCHFOLD_WORKER_ID", "SWITCHFOLD_NUM_WORKERS"}
        found = place_variables(process)
        assert {key: found.get(key) for key in own if key not in numbers} == {
            key: own[key] for key in own if key not in numbers
        }
        assert not numbers & set(found)


def test_run_names_the_failed_worker(fabric: Testbed) -> None:
    script = "import os, sys; sys.exit(os.environ['SWITCHFOLD_WORKER_ID'] == '1')"
    done = run(fabric, "python", "-c", script)
    assert done.exit_code == 1
    assert "worker 1 on h2 ended with status 1" in done.output
    assert "worker 0" not in done.output


def test_run_refuses_unknown_hosts(fabric: Testbed) -> None:
    done = run(fabric, "--hosts", "h9", "true")
    assert done.exit_code == 2
    assert "there is no host h9 (known: h1, h2)" in done.output


def test_run_stops_at_its_timeout(fabric: Testbed) -> None:
    arguments = ["run", "--name", fabric.name, "--timeout", "0.5", "sleep", "60"]
    done = CliRunner().invoke(command, arguments)
    assert done.exit_code == 1
    assert "time is up" in done.output
