# SPDX-FileCopyrightText: 2026 The Switchfold Authors
# SPDX-License-Identifier: Apache-2.0
"""`softswitch show` and `softswitch check` print every stage, and what is refused."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from click.testing import CliRunner

from switchfold.softswitch.commands.command import main
from switchfold.softswitch.compilation.stages import STAGES

ROOT = Path(__file__).resolve().parents[3]
ROUTER = str(ROOT / "examples" / "softswitch" / "router.json")
REFUSED = str(ROOT / "tests" / "pipeline" / "programs" / "refused.json")


def output(*words: str, status: int = 0) -> str:
    result = CliRunner().invoke(main, list(words))
    assert result.exit_code == status, result.output
    return result.stdout


@pytest.mark.parametrize("stage", STAGES)
def test_stage_is_printed_as_text_and_as_json(stage: str) -> None:
    data: dict[str, Any] = json.loads(output("show", ROUTER, "--stage", stage, "--json"))
    text = output("show", ROUTER, "--stage", stage)
    assert data
    assert all(name in text for name in data)


def test_stage_tables_picks_by_name() -> None:
    text = output("show", ROUTER, "--stage", "tables", "--table", "routes", "--json")
    table = json.loads(text)["RouterIngress.routes"]
    assert table["key"] == {"dst_addr": "lpm, 32 bits"}
    assert table["direct_counter"] is True
    assert table["source"].startswith("router.p4(")


def test_actions_are_their_c_functions() -> None:
    text = output("show", ROUTER, "--stage", "actions", "--table", "forward")
    assert "static void p4_action_" in text
    assert "egress_spec" in text


def test_parser_graph_has_every_transition() -> None:
    text = output("show", ROUTER, "--stage", "parser", "--dot")
    assert text.startswith("digraph")
    assert '"start" -> "parse_ipv4" [label="0x0800"];' in text
    assert '"parse_ports" -> "accept"' in text
    output("show", ROUTER, "--stage", "tables", "--dot", status=2)


def test_check_lists_what_is_refused_with_its_line() -> None:
    assert output("check", ROUTER) == f"{ROUTER}: runs\n"
    lines = output("check", ROUTER, REFUSED, status=1).splitlines()
    assert lines[1].startswith(f"{REFUSED}: refused, ")
    assert any("refused.p4(" in line for line in lines[2:])
    found = json.loads(output("check", REFUSED, "--json", status=1))
    assert found["runs"] is False
    assert {"where", "what", "why", "remedy"} == set(found["problems"][0])


def test_check_tells_harmless_differences_to_the_p4info(tmp_path: Path) -> None:
    p4info = tmp_path / "router.p4info.txtpb"
    text = Path(ROUTER).with_suffix(".p4info.txtpb").read_text()
    removed = 'tables { preamble { id: 44739242 name: "RouterIngress.unreached" } size: 8 }'
    p4info.write_text(f"{text}\n{removed}\n")
    lines = output("check", ROUTER, "--p4info", str(p4info)).splitlines()
    assert lines[0] == f"{ROUTER}: runs"
    assert lines[1].startswith("  warning: table RouterIngress.unreached is in the P4Info, not")
    found = json.loads(output("check", ROUTER, "--p4info", str(p4info), "--json"))
    assert (found["runs"], len(found["warnings"])) == (True, 1)
    output("check", ROUTER, ROUTER, "--p4info", str(p4info), status=2)
