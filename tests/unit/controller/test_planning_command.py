# SPDX-FileCopyrightText: 2026 The Switchfold Authors
# SPDX-License-Identifier: Apache-2.0
"""`switchfold tree plan`: text, JSON and picture of a plan from a configuration file."""

from __future__ import annotations

import asyncio
import dataclasses
import json
import re
from pathlib import Path
from typing import Any
from unittest.mock import patch

import pytest

from controller_fixtures import fake_switch, join_all, make_config, serving
from controller_fixtures import run as run_scenario
from switchfold.controller.__main__ import run
from switchfold.controller.api.operator_api import fabric_pb2 as pb
from switchfold.controller.config import LinkConfig
from switchfold.controller.errors import ConfigError
from switchfold.controller.fabric.trees.tree_picture import draw_trees
from switchfold.controller.fabric.trees.tree_text import load_rows, summary_lines
from switchfold.controller.views.view_change import Limits

CONFIG = """
variant = "wide"
[[switch]]
name = "s1"
address = "127.0.0.1:1"
service_address = "10.9.0.1"
[[switch.host]]
name = "h1"
port = 1
address = "10.0.1.1"
mac = "02:00:00:00:00:01"
rate_bits_per_s = 100000000
[[switch]]
name = "s2"
address = "127.0.0.1:2"
service_address = "10.9.0.2"
[[switch.host]]
name = "h2"
port = 1
address = "10.0.2.1"
mac = "02:00:00:00:00:02"
rate_bits_per_s = 100000000
[[link]]
a = "s1"
a_port = 2
b = "s2"
b_port = 2
rate_bits_per_s = 50000000
"""


@pytest.fixture
def config(tmp_path: Path) -> Path:
    path = tmp_path / "controller.toml"
    path.write_text(CONFIG, "utf-8")
    return path


def test_plan_is_printed(config: Path, capsys: pytest.CaptureFixture[str]):
    assert run(["tree", "plan", "--config", str(config), "--bytes", "352k", "--slots", "10"]) == 0
    printed = capsys.readouterr().out
    assert "1 tree, root s1; 2 workers" in printed
    assert "slowest link: s1 -> s2, 375 kB at 50 Mbit/s" in printed
    assert "├─ h1  port 1  worker 0" in printed
    assert "└─ s2  port 2 up to port 2  slots 0..9" in printed
    assert "next best: ring among the hosts" in printed


def test_plan_as_json_and_picture(config: Path, capsys: pytest.CaptureFixture[str], tmp_path: Path):
    for suffix, magic in ((".svg", b"<?xml"), (".png", b"\x89PNG")):
        picture = tmp_path / f"trees{suffix}"
        arguments = ["tree", "plan", "--config", str(config), "--json", "--picture", str(picture)]
        assert run([*arguments, "--workers", "h2,h1", "--int", "--bytes", "1408"]) == 0
        report = json.loads(capsys.readouterr().out)
        assert [node["switch"] for node in report["trees"][0]["nodes"]] == ["s1", "s2"]
        assert {load["predicted_bytes"] for load in report["loads"]} == {1494.0}
        assert picture.read_bytes().startswith(magic)


@pytest.mark.parametrize(
    ("arguments", "what"),
    [
        (["--workers", "h9"], "no host h9; hosts in the configuration: h1, h2"),
        (["--workers", "h1,h1"], "named twice"),
        (["--avoid", "s2"], "worker 1 at switch s2, which is down or to be avoided"),
        (["--avoid", "s1-s2"], "joins worker 0 with worker 1; down or to be avoided: s1:2-s2:2"),
        (["--avoid", "s9"], "no link 's9'"),
        (["--picture", "trees.bmp"], "does not end in .svg"),
    ],
)
def test_plan_refuses(
    config: Path, capsys: pytest.CaptureFixture[str], arguments: list[str], what: str
):
    assert run(["tree", "plan", "--config", str(config), *arguments]) == 1
    assert what in capsys.readouterr().err


def test_plan_refuses_sizes(config: Path, capsys: pytest.CaptureFixture[str]):
    assert run(["tree", "plan", "--config", str(config), "--bytes", "lots"]) == 2
    assert "not a size" in capsys.readouterr().err


def test_trees_and_links_of_a_controller(tmp_path: Path, capsys: pytest.CaptureFixture[str]):
    async def command(*arguments: str) -> tuple[int, str]:
        code = await asyncio.to_thread(run, list(arguments))
        captured = capsys.readouterr()
        return code, captured.out + captured.err

    async def scenario() -> None:
        async with fake_switch() as first, fake_switch() as second:
            config = make_config(tmp_path, first, second)
            switches = tuple(
                dataclasses.replace(switch, service_address=f"10.9.0.{n}")
                for n, switch in enumerate(config.switches)
            )
            link = LinkConfig(a="s1", a_port=9, b="s2", b_port=1)
            config = dataclasses.replace(config, switches=switches, links=(link,))
            async with serving(config) as server:
                ask: tuple[Any, ...] = ("--controller", server.address)
                assert sum(second.tables().values()) == 4
                code, text = await command("tree", "show", "train", *ask)
                assert (code, "job 'train' is not running" in text) == (1, True)
                code, text = await command("switch", "show", "s2", "--json", *ask)
                assert [(p["port"], p["neighbour"]) for p in json.loads(text)["ports"]] == [
                    (1, "s1")
                ]
                code, text = await command("switch", "show", "s1", *ask)
                (uplink,) = (line for line in text.splitlines() if line.startswith("│    9 │"))
                assert uplink.split()[3] == "s2"
                workers = await join_all(server.address, 2)
                for worker in workers:
                    await worker.join_reply()
                code, text = await command("tree", "show", "train", "--hosts", "--json", *ask)
                report = json.loads(text)
                assert (code, report["label"], report["path"]) == (0, "1 tree, root s1", "switch")
                assert report["trees"][0]["slot_count"] == 128
                assert report["is_measured"] is True
                assert [x["label"] for x in report["alternatives"]] == ["ring among the hosts"]
                for state in ("down", "down", "up"):
                    code, text = await command("link", "set", "s2-s1", state, *ask)
                    assert (code, text) == (0, f"link s1-s2 (s1:9-s2:1) is {state}\n")
                    code, text = await command("link", "list", "--json", *ask)
                    assert [each["state"] for each in json.loads(text)] == [state]
                    count = 0 if state == "down" else 4
                    while sum(second.tables().values()) != count:
                        await asyncio.sleep(0.01)
                code, text = await command("link", "set", "s2", "down", "--switch", *ask)
                assert (code, text) == (0, "switch s2 is down\n")
                code, text = await command("link", "set", "s9", "down", "--switch", *ask)
                assert (code, "no switch 's9'" in text) == (1, True)
                for worker in workers:
                    await worker.close()

    run_scenario(scenario())


def test_job_leaves_a_link_that_is_taken_down(tmp_path: Path):
    async def scenario() -> None:
        async with (
            fake_switch() as s1,
            fake_switch() as s2,
            fake_switch() as s3,
            fake_switch() as s4,
        ):
            config = make_config(tmp_path, s1, s2, s3, s4)
            first = config.switches[0]
            hosts = {"s1": first.hosts[:1], "s2": first.hosts[1:2]}
            switches = tuple(
                dataclasses.replace(
                    switch, service_address=f"10.9.0.{n}", hosts=hosts.get(switch.name, ())
                )
                for n, switch in enumerate(config.switches)
            )
            links = tuple(
                LinkConfig(a=leaf, a_port=8 + n, b=spine, b_port=port)
                for port, leaf in enumerate(("s1", "s2"), 1)
                for n, spine in enumerate(("s3", "s4"))
            )
            config = dataclasses.replace(config, switches=switches, links=links)
            async with serving(config) as server:
                workers = await join_all(server.address, 2, is_following=False)
                for worker in workers:
                    await worker.join_reply()
                (before,) = server.views.placements("s1")
                root = before.tree.nodes[0].switch
                assert root in {"s3", "s4"}
                manager = server.membership._manager  # pyright: ignore[reportPrivateUsage]
                ((changes, _),) = manager._changes.values()  # pyright: ignore[reportPrivateUsage]
                # However slow these workers are, none is late with its answer.
                with patch.object(changes, "_limits", Limits(graceful_answer_s=3600.0)):
                    server.fabric_state.set_link(f"s1-{root}", is_up=False)
                    for worker in workers:
                        proposal = (await worker.receive()).view_proposal
                        assert f"link s1-{root} is down" in proposal.reason
                        assert not proposal.is_abort
                        ready = {"generation": proposal.generation, "position": 3}
                        await worker.send(view_ready=ready)
                    for worker in workers:
                        commit = (await worker.receive()).view_commit
                        assert commit.boundary == 3
                        await worker.send(view_entered={"generation": commit.view.generation})
                while len(server.views.placements("s1")) != 1:
                    await asyncio.sleep(0.01)
                (after,) = server.views.placements("s1")
                assert {root, after.tree.nodes[0].switch} == {"s3", "s4"}
                for worker in workers:
                    await worker.close()

    run_scenario(scenario())


def test_report_of_a_job_between_the_hosts(tmp_path: Path):
    report = pb.TreeReport(
        job="train",
        label="between the hosts",
        reason="asked for",
        num_workers=3,
        tensor_bytes=4_000_000,
        seconds=1.5,
        alternatives=[pb.ReportedAlternative(label="1 tree, root s1", seconds=0.5)],
    )
    assert summary_lines(report) == [
        "job train: between the hosts; 3 workers",
        "  because: asked for",
        "  allreduce of 4 MB: 1.5 s by a ring",
        "  instead: 1 tree, root s1, 500 ms",
    ]
    assert not load_rows(report, has_hosts=False)
    with pytest.raises(ConfigError, match="no tree to draw"):
        draw_trees(report, tmp_path / "trees.png")


def test_picture_orders_spines_and_tells_load(tmp_path: Path):
    leaves, spines = ("s1", "s2"), ("s10", "s3")  # trees come in any order
    report = pb.TreeReport(num_workers=2, tensor_bytes=1_000_000, seconds=1.0)
    for spine in spines:
        nodes = [pb.ReportedNode(switch=spine)]
        for worker, leaf in enumerate(leaves):
            here = [pb.ReportedWorker(worker_id=worker, host=f"h{worker}")]
            nodes.append(pb.ReportedNode(switch=leaf, parent=spine, workers=here))
            report.loads.add(
                sender=leaf,
                receiver=spine,
                rate_bits_per_s=25e6,
                residual_bits_per_s=10e6 if (leaf, spine) == ("s1", "s3") else 24.98e6,
                predicted_bytes=5e5,
                seconds=0.5,
            )
        report.trees.append(pb.ReportedTree(nodes=nodes, share=0.5))
    path = tmp_path / "trees.svg"
    draw_trees(report, path)
    svg = path.read_text("utf-8")
    texts = re.findall(r"<!-- (.*?) -->", svg, re.DOTALL)
    loads = [text.split("\n")[-1].strip() for text in texts]
    assert [text for text in loads if text.startswith("free")] == ["free 10 Mbit/s"]
    assert sum(text.startswith("500 kB") for text in texts) == 4
    places = dict(re.findall(r"<!-- (s\d+) -->\s*<g [^>]*translate\(([\d.]+) ", svg))
    assert float(places["s3"]) < float(places["s10"])
