# SPDX-FileCopyrightText: 2026 The Switchfold Authors
# SPDX-License-Identifier: Apache-2.0
"""examples/softswitch: the commands of its README, unchanged, print what the README says."""

from __future__ import annotations

import contextlib
import json
import os
import re
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]
EXAMPLE = ROOT / "examples" / "softswitch"
README = (EXAMPLE / "README.md").read_text("utf-8")
SECTION = README[README.index("## Without root") : README.index("## With namespaces")]
BLOCKS = re.findall(r"```(sh|text)\n(.*?)```", SECTION, re.DOTALL)
# The installed command may be another version of the package.
SOFTSWITCH = f'softswitch() {{ "{sys.executable}" -m switchfold.softswitch "$@"; }}\n'
PYTHON = f'python() {{ "{sys.executable}" "$@"; }}\n'
ENVIRONMENT = {**os.environ, "PYTHONPATH": str(ROOT / "src"), "PYTHONWARNINGS": ""}


def run_block(text: str) -> str:
    done = subprocess.run(
        ["bash", "-c", SOFTSWITCH + PYTHON + text],
        cwd=EXAMPLE,
        env=ENVIRONMENT,
        capture_output=True,
        text=True,
        timeout=120,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    return "".join(line.rstrip() + "\n" for line in done.stdout.splitlines())


@contextlib.contextmanager
def running(*options: str) -> Iterator[None]:
    kind, command = BLOCKS[0]
    assert kind == "sh"
    words = command.split()
    assert words[:2] == ["softswitch", "run"]
    reader, writer = os.pipe()
    process = subprocess.Popen(
        [
            sys.executable,
            "-m",
            f"switchfold.{words[0]}",
            *words[1:],
            *options,
            "--ready-fd",
            str(writer),
        ],
        cwd=EXAMPLE,
        env=ENVIRONMENT,
        pass_fds=(writer,),
        stdout=subprocess.DEVNULL,
        stderr=subprocess.PIPE,
        text=True,
    )
    os.close(writer)
    with os.fdopen(reader, "rb") as ready:
        told = ready.read()
    if told != b"ready\n":
        _, errors = process.communicate(timeout=60)
        if "in use" in errors or "another socket holds it" in errors:
            pytest.skip("a port of the README is in use on this machine")
        raise AssertionError(errors)
    try:
        yield
    finally:
        process.terminate()
        process.communicate(timeout=60)
    assert process.returncode == 0


def test_readme_prints_what_it_says() -> None:
    commands = BLOCKS[1:]
    assert [kind for kind, _ in commands] == ["sh", "text"] * 3
    with running():
        for (_, command), (_, expected) in zip(commands[::2], commands[1::2], strict=True):
            assert run_block(command) == expected, command


def test_running_switch_writes_its_trace(tmp_path: Path) -> None:
    target = tmp_path / "trace.jsonl"
    with running("--trace", str(target), "--trace-port", "1", "--trace-count", "1"):
        run_block("python send.py 10.0.2.2 7; python send.py 10.0.2.2 23")
    steps = [json.loads(line) for line in target.read_text("utf-8").splitlines()]
    assert {step["packet"] for step in steps} == {1}
    sent = [step for step in steps if step["kind"] == "sent"]
    assert [step["port"] for step in sent] == [2]
    route = next(step for step in steps if step.get("table") == "RouterIngress.routes")
    assert "(0x0a000200/24)" in route["text"]
    assert route["source"]["text"] == "table routes {"
