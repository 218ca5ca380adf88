# SPDX-FileCopyrightText: 2026 The Switchfold Authors
# SPDX-License-Identifier: Apache-2.0
"""One class name, one meaning: no two parts of the product define a public class of one name."""

from __future__ import annotations

import ast
import re
from collections import defaultdict
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[3]
PARTS = (
    "benchmarks",
    "bmv2_topos",
    "controller",
    "examples",
    "hostlib",
    "p4src",
    "softswitch",
)
GENERATED = ("_pb2.py", "_pb2_grpc.py")
CAMEL_CASE = re.compile(r"[A-Z]\w*[a-z]\w*")


@dataclass(frozen=True)
class SharedName:
    """A class name that several modules may define."""

    name: str
    modules: frozenset[str]
    """Paths from the root, all of which define it."""
    reason: str


@dataclass(frozen=True)
class Names:
    """What a module defines."""

    classes: list[str]
    """Public classes, nested ones too."""
    aliases: list[str]
    """Type aliases."""


SHARED = (
    SharedName(
        "CompilerNotFoundError",
        frozenset({"p4src/errors.py", "softswitch/errors.py"}),
        "one condition, of which each package has its own compiler: p4c or a C compiler",
    ),
    SharedName(
        "ControllerUnreachableError",
        frozenset({"controller/errors.py", "hostlib/errors.py"}),
        "one condition for two clients of the controller: an operator's command and a worker",
    ),
    SharedName(
        "PortTakenError",
        frozenset({"bmv2_topos/errors.py", "hostlib/errors.py"}),
        "one condition for two owners of UDP ports: a testbed and a worker",
    ),
    SharedName(
        "Switch",
        frozenset({"bmv2_topos/topology/topology.py", "softswitch/switch/switch.py"}),
        "both packages export it: a topology names the switch that softswitch runs",
    ),
    SharedName(
        "SwitchUnreachableError",
        frozenset({"controller/errors.py", "hostlib/errors.py"}),
        "one condition, seen by the controller through P4Runtime and by a worker through probes",
    ),
    SharedName(
        "VersionMismatchError",
        frozenset({"controller/errors.py", "hostlib/errors.py"}),
        "the controller refuses a worker with it, and the worker raises it",
    ),
    SharedName(
        "WorkerTakenError",
        frozenset({"controller/errors.py", "hostlib/errors.py"}),
        "the controller refuses a worker with it, and the worker raises it",
    ),
)


def class_names(tree: ast.Module) -> list[str]:
    """Return the names of a module's public classes, nested ones too."""
    nodes = ast.walk(tree)
    names = [node.name for node in nodes if isinstance(node, ast.ClassDef)]
    return [name for name in names if not name.startswith("_")]


def alias_names(tree: ast.Module) -> list[str]:
    """Return the names of a module's type aliases.

    A call is none: it makes a TypeVar. Neither is an attribute: it is a class of another library.
    """
    names: list[str] = []
    for node in tree.body:
        if isinstance(node, ast.Assign) and not isinstance(node.value, ast.Call | ast.Attribute):
            targets = [target.id for target in node.targets if isinstance(target, ast.Name)]
            names += [name for name in targets if CAMEL_CASE.fullmatch(name)]
    return names


def read_names(source: str) -> Names:
    """Return the names that a module's source defines."""
    tree = ast.parse(source)
    return Names(class_names(tree), alias_names(tree))


def repeated_names(modules: Mapping[str, Names]) -> dict[str, list[str]]:
    """Return class names that are defined more than once, with all modules that define them."""
    classes: defaultdict[str, list[str]] = defaultdict(list)
    aliases: defaultdict[str, list[str]] = defaultdict(list)
    for path, names in modules.items():
        for name in names.classes:
            classes[name].append(path)
        for name in names.aliases:
            aliases[name].append(path)
    found = {name: sorted(paths + aliases[name]) for name, paths in classes.items()}
    return {name: paths for name, paths in found.items() if len(paths) > 1}


def problems(repeated: Mapping[str, list[str]], shared: Iterable[SharedName]) -> list[str]:
    """Return one message for each name that is repeated and not listed, or listed and not so."""
    listed = {each.name: sorted(each.modules) for each in shared}
    return [
        f"{name}: defined in {repeated.get(name, [])}, listed for {listed.get(name, [])}"
        for name in sorted(repeated.keys() | listed.keys())
        if repeated.get(name) != listed.get(name)
    ]


@pytest.fixture(scope="module")
def modules() -> dict[str, Names]:
    """What all modules define by path, without generated ones."""
    return {
        str(path.relative_to(ROOT)): read_names(path.read_text("utf-8"))
        for part in PARTS
        for path in sorted((ROOT / part).rglob("*.py"))
        if not path.name.endswith(GENERATED)
    }


def test_every_part_has_classes(modules: dict[str, Names]) -> None:
    for part in PARTS:
        assert any(
            names.classes for path, names in modules.items() if path.startswith(f"{part}/")
        ), part


def test_class_names_have_one_meaning(modules: dict[str, Names]) -> None:
    found = problems(repeated_names(modules), SHARED)
    assert not found, "\n".join(found)


def test_shared_names_are_sorted_and_have_a_reason() -> None:
    names = [each.name for each in SHARED]
    assert names == sorted(set(names))
    assert all(each.reason for each in SHARED)


@pytest.mark.parametrize(
    ("first", "second", "found"),
    [
        ("class Job: ...", "class Job: ...", {"Job": ["a.py", "b.py"]}),
        ("class Job: ...\nclass Job: ...", "", {"Job": ["a.py", "a.py"]}),
        ("class Job: ...", "class Worker:\n    class Job: ...", {"Job": ["a.py", "b.py"]}),
        ("class Job: ...", "Job = dict[str, int]", {"Job": ["a.py", "b.py"]}),
        ("class Job: ...", "class _Job: ...", {}),
        ("class Job: ...", "Job = TypeVar('Job')\nJob = other.Job\njob = Job", {}),
        ("class Job: ...", "from a import Job", {}),
        ("Job = dict[str, int]", "Job = dict[str, int]", {}),
    ],
)
def test_repeated_names_are_found(first: str, second: str, found: dict[str, list[str]]) -> None:
    modules = {"a.py": read_names(first), "b.py": read_names(second)}
    assert repeated_names(modules) == found


@pytest.mark.parametrize(
    ("repeated", "message"),
    [
        (["a.py", "b.py"], []),
        (["a.py", "b.py", "c.py"], ["['a.py', 'b.py', 'c.py'], listed for ['a.py', 'b.py']"]),
        ([], ["[], listed for ['a.py', 'b.py']"]),
    ],
)
def test_list_names_all_modules_and_no_others(repeated: list[str], message: list[str]) -> None:
    shared = SharedName("Job", frozenset({"a.py", "b.py"}), "one job")
    expected = [f"Job: defined in {text}" for text in message]
    assert problems({"Job": repeated} if repeated else {}, [shared]) == expected
    assert problems({"Job": ["a.py", "b.py"]}, []) == [
        "Job: defined in ['a.py', 'b.py'], listed for []"
    ]
