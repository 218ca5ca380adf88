# SPDX-FileCopyrightText: 2026 The Switchfold Authors
# SPDX-License-Identifier: Apache-2.0
"""What is not supported is refused at load, all of it at once, with place and remedy."""

import json
import subprocess
import sys
from pathlib import Path

import pytest

from pipeline_driver import PROGRAMS
from softswitch.compiler import compile_program
from softswitch.errors import ProgramError, UnsupportedError


def test_all_unsupported_features_are_listed_at_once(tmp_path: Path) -> None:
    with pytest.raises(UnsupportedError) as caught:
        compile_program(PROGRAMS / "refused.json", cache_dir=tmp_path)
    found = "\n".join(problem.what for problem in caught.value.problems)
    for word in (
        "meters TheIngress.rates",
        "primitive 'execute_meter'",
        "primitive 'modify_field_rng_uniform'",
        "table TheIngress.choose with an action profile",
    ):
        assert word in found
    assert all(problem.why and problem.remedy for problem in caught.value.problems)
    assert any(problem.where.startswith("refused.p4(") for problem in caught.value.problems)
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize(
    ("statement", "what", "remedy"),
    [
        ("clone(CloneType.I2E, 5)", "clone_ingress_pkt_to_egress", "multicast group"),
        ("clone_preserving_field_list(CloneType.I2E", "clone_ingress", "multicast group"),
        ("clone(CloneType.E2E, 6)", "clone_egress_pkt_to_egress", "multicast group"),
        ("digest<digest_t>", "generate_digest", "packet-in"),
        ("resubmit_", "resubmit", "one pass"),
        ("recirculate_", "recirculate", "one pass"),
        ("truncate(20)", "truncate", "without the rest"),
        ("table stations", "idle timeout of table TheIngress.stations", "support_timeout"),
    ],
)
def test_each_request_to_the_replication_engine_is_refused_with_its_line(
    tmp_path: Path, statement: str, what: str, remedy: str
) -> None:
    lines = (PROGRAMS / "refused_replication.p4").read_text().splitlines()
    line = next(number for number, text in enumerate(lines, 1) if statement in text)
    with pytest.raises(UnsupportedError) as caught:
        compile_program(PROGRAMS / "refused_replication.json", cache_dir=tmp_path)
    assert len(caught.value.problems) == 8
    here = [p for p in caught.value.problems if p.where == f"refused_replication.p4({line})"]
    assert len(here) == 1
    assert what in here[0].what
    assert remedy in here[0].remedy
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize("text", ["", "[]", "{}", '{"pipelines": [], "parsers": 3}', "\ud800x"])
def test_broken_json_is_a_program_error(tmp_path: Path, text: str) -> None:
    path = tmp_path / "broken.json"
    path.write_bytes(text.encode("utf-8", "surrogatepass"))
    with pytest.raises(ProgramError) as caught:
        compile_program(path, cache_dir=tmp_path)
    assert not isinstance(caught.value, UnsupportedError)
    assert "p4c-bm2-ss" in str(caught.value)


def test_missing_parts_are_program_errors(tmp_path: Path) -> None:
    for key in ("header_types", "headers", "pipelines", "parsers"):
        data = json.loads((PROGRAMS / "operators.json").read_text())
        del data[key]
        path = tmp_path / f"without_{key}.json"
        path.write_text(json.dumps(data))
        with pytest.raises(ProgramError):
            compile_program(path, cache_dir=tmp_path)


def test_unknown_keys_are_ignored(tmp_path: Path) -> None:
    data = json.loads((PROGRAMS / "operators.json").read_text())
    data["something_new"] = [{"id": 1}]
    data["pipelines"][0]["something_new"] = 1
    path = tmp_path / "operators.json"
    path.write_text(json.dumps(data))
    assert compile_program(path, cache_dir=tmp_path).library.exists()


def test_generator_prints_its_text(tmp_path: Path) -> None:
    command = [sys.executable, "-m", "softswitch.generator"]
    root = PROGRAMS.parents[2]
    for path, status in ((PROGRAMS / "tables.json", 0), (PROGRAMS / "refused.json", 1)):
        result = subprocess.run(
            [*command, str(path)], capture_output=True, text=True, check=False, cwd=root
        )
        assert result.returncode == status
        assert ("p4_control_ingress" in result.stdout) == (status == 0)
        assert ("cannot be loaded" in result.stderr) == (status == 1)
