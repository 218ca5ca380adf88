# SPDX-FileCopyrightText: 2026 The Switchfold Authors
# SPDX-License-Identifier: Apache-2.0
"""Writes the tables of licences.md: the packages of the locks, with what their metadata says.

Tools for this compare whole strings with a list, or search for a part: "MIT AND GPL-3.0-only" would
need an entry of its own, or pass as MIT.
"""

from __future__ import annotations

import re
import sys
import tomllib
from collections.abc import Iterable
from importlib.metadata import PackageMetadata, PackageNotFoundError, metadata, requires
from pathlib import Path
from typing import Any

from packaging.requirements import Requirement
from packaging.utils import canonicalize_name

ROOT = Path(__file__).resolve().parents[1]
LOCKS = (ROOT / "requirements-dev.txt", ROOT / "requirements-ray.txt")
PAGE = ROOT / "docs" / "licences.md"
RUN_TIME_EXTRAS = ("controller", "latency", "torch")
ALLOWED = {
    *("0BSD", "Apache-2.0", "Apache-2.0 WITH LLVM-exception", "BSD-2-Clause", "BSD-3-Clause"),
    *("BSL-1.0", "CC0-1.0", "HPND", "ISC", "MIT", "MIT-0", "MIT-CMU", "PSF-2.0", "Python-2.0"),
    *("Unlicense", "Zlib"),
    # Names of before SPDX, which packages still use.
    *("3-Clause BSD License", "Apache Software License", "BSD License", "MIT License"),
    "Python Software Foundation License",
}
"""What a package that Switchfold needs at run time may be under: permissive licences."""
_WORD = re.compile(r"[()]|(?!WITH\b)[^()\s]+(?: WITH [^()\s]+)?")
_TABLE = re.compile(r"^\| package \|.*\n(?:\|.*\n)*", re.MULTILINE)


def project() -> dict[str, Any]:
    """Return pyproject.toml."""
    return tomllib.loads((ROOT / "pyproject.toml").read_text("utf-8"))


def locked() -> dict[str, list[str]]:
    """Return the versions of each package in the locks, and of torch, which is in none."""
    found: dict[str, list[str]] = {}
    text = "\n".join(lock.read_text("utf-8") for lock in LOCKS)
    for line in re.findall(r"^[a-z0-9][^\\#\n]*", text, re.MULTILINE):
        requirement = Requirement(line)
        pin = next(iter(requirement.specifier)).version
        pins = found.setdefault(canonicalize_name(requirement.name), [])
        if pin not in pins:  # by the other lock
            pins.append(pin)
    for built in project()["tool"]["uv"]["dependency-metadata"]:
        found[built["name"]] = [built["version"]]
    return found


def run_time_names() -> set[str]:
    """Return what the package and its extras for users need here, by what is installed."""
    data = project()
    extras: dict[str, list[str]] = data["project"]["optional-dependencies"]
    pending = [*data["project"]["dependencies"], *(r for x in RUN_TIME_EXTRAS for r in extras[x])]
    seen: set[tuple[str, str]] = set()
    while pending:
        needed = Requirement(pending.pop())
        name = canonicalize_name(needed.name)
        for extra in (needed.extras or {""}) | {""}:
            if name == data["project"]["name"] or (name, extra) in seen:
                continue
            seen.add((name, extra))
            pending += [text for text in _requires(name) if _applies(Requirement(text), extra)]
    return {name for name, _ in seen}


def _applies(requirement: Requirement, extra: str) -> bool:
    return requirement.marker is None or requirement.marker.evaluate({"extra": extra})


def _requires(name: str) -> list[str]:
    """Return what a package requires; of torch, what the build without CUDA does."""
    builds = project()["tool"]["uv"]["dependency-metadata"]
    of_the_lock = next((each["requires-dist"] for each in builds if each["name"] == name), None)
    try:
        return requires(name) or [] if of_the_lock is None else of_the_lock
    except PackageNotFoundError:
        return []


def licence(name: str) -> str:
    """Return what an installed package says of its licence; "unknown" if it says nothing.

    Raises PackageNotFoundError if it is not installed.
    """
    data: PackageMetadata = metadata(name)
    prefix = "License :: "
    classifiers = data.get_all("Classifier") or []
    named = [c.split(" :: ")[-1] for c in classifiers if c.startswith(prefix) and c.count("::") > 1]
    free = data.get_all("License") or []
    short = [text for text in free if len(text) < 80 and "\n" not in text]  # or the whole licence
    return next(iter([*(data.get_all("License-Expression") or []), *named, *short]), "unknown")


def is_allowed(text: str) -> bool:
    """Return whether a licence, or an SPDX expression of some, is permissive."""
    if text in ALLOWED:
        return True
    words = _WORD.findall(text)
    allowed = _either(words)
    return allowed and not words


def _either(words: list[str]) -> bool:
    allowed = _both(words)
    while words and words[0] == "OR":
        words.pop(0)
        other = _both(words)
        allowed = allowed or other
    return allowed


def _both(words: list[str]) -> bool:
    allowed = _one(words)
    while words and words[0] == "AND":
        words.pop(0)
        other = _one(words)
        allowed = allowed and other
    return allowed


def _one(words: list[str]) -> bool:
    word = words.pop(0) if words else ")"
    if word != "(":
        return word in ALLOWED
    allowed = _either(words)
    return bool(words) and words.pop(0) == ")" and allowed


def read_page() -> dict[str, tuple[str, str]]:
    """Return versions and licence of each package on the page."""
    rows = re.findall(r"^\| ([a-z0-9-]+) \| ([^|]+) \| ([^|]+) \|$", PAGE.read_text("utf-8"), re.M)
    return {name: (versions, text) for name, versions, text in rows if name != "package"}


def _table(names: Iterable[str], versions: dict[str, list[str]]) -> str:
    rows = [f"| {name} | {', '.join(versions[name])} | {licence(name)} |" for name in sorted(names)]
    return "\n".join(["| package | version | licence |", "|---|---|---|", *rows, ""])


def main() -> None:
    """Renew both tables; exits with an error if a package is not installed."""
    versions, run_time = locked(), run_time_names()
    try:
        tables = [_table(names, versions) for names in (run_time, versions.keys() - run_time)]
    except PackageNotFoundError as error:
        sys.exit(f"error: {error.name} is not installed: run make deps-ray")
    PAGE.write_text(_TABLE.sub(lambda _: tables.pop(0), PAGE.read_text("utf-8")), "utf-8")


if __name__ == "__main__":
    main()
