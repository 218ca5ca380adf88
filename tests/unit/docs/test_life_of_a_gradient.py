# SPDX-FileCopyrightText: 2026 The Switchfold Authors
# SPDX-License-Identifier: Apache-2.0
"""docs/life_of_a_gradient.md names what the code has, in the order in which it is written."""

from __future__ import annotations

import ast
import re
from collections.abc import Iterable
from functools import cache

import pytest

from gradient_page import PAGE, PAIRS, ROOT, STEPS, WORDS, Name, Step, named


@cache
def defined(path: str) -> frozenset[str]:
    """Return what a Python file defines: classes, functions, and methods as Class.method."""
    names: set[str] = set()

    def collect(body: Iterable[ast.stmt], prefix: str) -> None:
        for node in body:
            if isinstance(node, (ast.ClassDef, ast.FunctionDef, ast.AsyncFunctionDef)):
                names.add(prefix + node.name)
            if isinstance(node, ast.ClassDef):
                collect(node.body, f"{prefix}{node.name}.")

    collect(ast.parse((ROOT / path).read_text(encoding="utf-8")).body, "")
    return frozenset(names)


@cache
def c_functions(path: str) -> frozenset[str]:
    """Return the functions that a C file defines."""
    source = (ROOT / path).read_text(encoding="utf-8")
    return frozenset(re.findall(r"^\w[\w *]*?\b(\w+)\([^;{]*\{", source, re.MULTILINE))


@cache
def p4_source(path: str) -> str:
    """Return a P4 file without comments."""
    return re.sub(r"//.*", "", (ROOT / path).read_text(encoding="utf-8"))


def block(source: str, head: str) -> str:
    """Return the text between the braces behind the first match of `head`."""
    match = re.search(head + r"[^{};]*\{", source)
    assert match is not None, head
    depth, start = 1, match.end()
    for place in range(start, len(source)):
        depth += {"{": 1, "}": -1}.get(source[place], 0)
        if not depth:
            return source[start:place]
    raise AssertionError(head)


def test_steps_are_numbered_and_say_where_they_run() -> None:
    assert [step.number for step in STEPS] == list(range(1, len(STEPS) + 1))
    assert len(re.findall(r"^\d+\. ", PAGE, re.MULTILINE)) == len(STEPS) > 10
    for step in STEPS:
        assert step.names, step
        is_at_worker = {not path.endswith(".p4") for path, _ in step.names}
        assert len(is_at_worker) == 1, step
        assert ("thread" in step.title.lower()) == is_at_worker.pop(), step


@pytest.mark.parametrize("pair", sorted(set(named(PAGE))), ids=lambda pair: pair[1])
def test_names_are_defined_where_the_page_says(pair: Name) -> None:
    path, name = pair
    if path.endswith(".py"):
        assert name in defined(path)
    elif path.endswith(".c"):
        assert name in c_functions(path)
    else:
        kinds = r"\b(?:control|parser|action|table|state)\s+"
        assert re.search(rf"{kinds}{name}\b", p4_source(path)), f"{path} has no {name}"


def test_paths_and_names_come_in_pairs_only() -> None:
    """A name behind a path in another form would not be checked."""
    code = re.findall(r"`([\w/]+\.(?:py|p4|c))`", PAGE)
    alone = {
        "tests/unit/docs/test_life_of_a_gradient.py",
        "tests/unit/docs/test_gradient_of_the_page.py",
        "p4src/bmv2/switchfold_wide.p4",
        "p4src/bmv2/pipeline.p4",
    }
    assert len(code) == len(PAIRS.findall(PAGE)) + len(alone)
    assert all((ROOT / path).is_file() for path in code)


def test_words_in_code_type_are_words_of_the_code() -> None:
    folders = ("hostlib", "p4src/bmv2", "p4src/include", "controller")
    files = [path for folder in folders for path in (ROOT / folder).rglob("*.p[y4]")]
    files += (ROOT / "hostlib").rglob("*.c")
    corpus = set(re.findall(r"\w+", " ".join(path.read_text(encoding="utf-8") for path in files)))
    tokens = set(re.findall(r"`([A-Za-z_]\w+)`", PAGE)) | set(re.findall(r"\b[A-Z_]{5,}\b", PAGE))
    assert not {token for token in tokens if token not in corpus}


def test_links_lead_to_files() -> None:
    links = re.findall(r"\]\(([^)#\s]+)", PAGE)
    assert len(links) > 8
    assert not [link for link in links if not (ROOT / "docs" / link).is_file()]


def test_steps_are_called_by_their_numbers() -> None:
    numbers = {step.title.split("**")[1].split()[0].strip(",."): step.number for step in STEPS}
    for text in (
        "through steps {Give} to {Receive}, in slot 0",
        "In step {Fill}, element 0",
        "Steps {Parse} to {Note} decide it",
        "Steps {Add} and {Make} do what",
        "step {Agree} agrees on the highest",
        "lane of its own (step {Fill}). Step {Back} puts the sums",
        "begin again at step {Start} in the new view",
        "packet trace shows steps {Parse} to {Make}.",
        "as all steps up to {Send}.",
    ):
        assert text.format(**numbers) in WORDS, text.format(**numbers)
    picture = PAGE.partition("```text\n")[2].partition("```")[0].partition("\n")[2]
    shown = re.findall(r"(\d+) (\w+)", picture)
    assert {int(number) for number, _ in shown} == {step.number for step in STEPS}
    for number, word in shown:
        assert word in STEPS[int(number) - 1].title.lower(), f"{number} {word}"


def test_table_of_threads_has_every_step() -> None:
    rows = [line for line in PAGE.splitlines() if re.match(r"\| (worker|switch) .*\bstep", line)]
    caller, io, switch = (
        {
            number
            for first, last in re.findall(r"(\d+)(?: to (\d+))?", row.rsplit("|", 2)[1])
            for number in range(int(first), int(last or first) + 1)
        }
        for row in rows
    )
    assert caller == {step.number for step in STEPS if "caller's thread" in step.title}
    assert io == {step.number for step in STEPS if "`switchfold-io`" in step.title}
    assert switch == {step.number for step in STEPS} - caller - io


def test_threads_have_these_names() -> None:
    sources = [path.read_text(encoding="utf-8") for path in (ROOT / "hostlib").rglob("*.py")]
    threads = set(re.findall(r"`(switchfold-[a-z]+)`", PAGE))
    assert len(threads) == 4
    for thread in threads:
        assert any(f'"{thread}"' in source for source in sources), thread


def test_stages_of_the_switch_are_those_of_the_program() -> None:
    main = p4_source("p4src/bmv2/switchfold_wide.p4")
    pipeline = p4_source("p4src/bmv2/pipeline.p4")
    stages: list[str] = []
    for part in re.findall(r"\b(Switchfold\w+)\(\)", main[main.index("V1Switch(") :]):
        stages.append(part)
        if f"control {part}(" in pipeline:
            body = block(pipeline, f"control {part}")
            instances = {name: kind for kind, name in re.findall(r"(\w+)\(\) (\w+);", body)}
            run = block(body, "apply")
            if "UDP_PORT" in run:
                run = block(run, r"else if \(.*UDP_PORT\) ")
            stages += [instances[name] for name in re.findall(r"(\w+)\.apply\(", run)]
    controls = [
        name
        for step in STEPS
        for path, name in step.names
        if path.endswith(".p4") and re.search(rf"\b(control|parser) {name}\b", p4_source(path))
    ]
    assert controls == stages


def test_states_of_the_parser_follow_each_other() -> None:
    path = "p4src/bmv2/parser.p4"
    source = p4_source(path)
    states = [name for step in STEPS for where, name in step.names if where == path]
    states = [name for name in states if re.search(rf"\bstate {name}\b", source)]
    for state, following in zip(states, [*states[1:], "accept"], strict=True):
        assert re.search(rf"\b{following};", block(source, rf"state {state}\b")), state


@pytest.mark.parametrize("step", [s for s in STEPS if s.names[0][0].endswith(".p4")], ids=str)
def test_actions_come_in_the_order_of_their_control(step: Step) -> None:
    reached: dict[str, int] = {}
    for path, name in step.names:
        source = p4_source(path)
        if re.search(rf"\b(control|parser|state) {name}\b", source):
            continue
        run = source[source.rindex("    apply {") :]
        called = name
        if not re.search(rf"\b{name}(?:\.apply)?\(", run):
            tables = re.findall(r"\btable (\w+)", source)
            (called,) = [t for t in tables if f" {name};" in block(source, rf"table {t}\b")]
        behind = reached.get(path, 0)
        place = re.compile(rf"\b{called}(?:\.apply)?\(").search(run, behind)
        assert place is not None, f"{path} does not use {name} behind the actions before it"
        reached[path] = place.start()
