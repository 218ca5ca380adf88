# SPDX-FileCopyrightText: 2026 The Switchfold Authors
# SPDX-License-Identifier: Apache-2.0
"""Committed artefacts belong to the sources and name no machine."""

from __future__ import annotations

import re
import shutil
from pathlib import Path

import pytest

from switchfold import p4src
from switchfold.p4src import compile as p4_compile
from switchfold.p4src import freshness
from switchfold.p4src.artefacts import P4SRC, Variant


@pytest.fixture(params=p4src.VARIANTS)
def variant(request: pytest.FixtureRequest) -> Variant:
    return request.param


def test_manifest_matches_sources_and_artefacts(variant: Variant) -> None:
    p4src.check_manifest(variant)


@pytest.mark.parametrize("changed", ["bmv2/slot_epoch.p4", "include/constants.p4"])
def test_manifest_notices_a_changed_source(variant: Variant, tmp_path: Path, changed: str) -> None:
    copy = tmp_path / "p4src"
    shutil.copytree(P4SRC, copy, ignore=shutil.ignore_patterns("__pycache__"))
    p4src.check_manifest(variant, copy / "build", copy)
    source = copy / changed
    source.write_text(source.read_text(encoding="utf-8") + "\n", encoding="utf-8")
    with pytest.raises(p4src.StaleArtefactError, match=re.escape(changed)):
        p4src.check_manifest(variant, copy / "build", copy)


def test_manifest_notices_an_edited_artefact(variant: Variant, tmp_path: Path) -> None:
    shutil.copytree(p4src.artefact_dir(variant).parent, tmp_path / "build")
    edited = p4src.artefacts(variant, tmp_path / "build").json
    edited.write_bytes(edited.read_bytes() + b" ")
    with pytest.raises(p4src.StaleArtefactError, match=edited.name):
        p4src.check_manifest(variant, tmp_path / "build")


def test_manifest_missing_says_what_to_run(variant: Variant, tmp_path: Path) -> None:
    with pytest.raises(p4src.StaleArtefactError, match="make p4"):
        p4src.check_manifest(variant, tmp_path)


def test_manifest_lists_every_p4_file_of_ours() -> None:
    listed = {path for variant in p4src.VARIANTS for path in p4src.sources(variant)}
    assert listed == set(P4SRC.glob("bmv2/*.p4")) | set(P4SRC.glob("include/*.p4"))


def test_artefacts_hold_no_absolute_path(variant: Variant) -> None:
    made = p4src.artefacts(variant)
    for path in (made.json, made.p4info, made.manifest):
        found = re.findall(r'"(/[^"]*|[A-Za-z]:\\[^"]*)"', path.read_text(encoding="utf-8"))
        assert not found, f"{path.name} names {found[:3]}"


def test_artefacts_json_source_files_exist(variant: Variant) -> None:
    text = p4src.artefacts(variant).json.read_text(encoding="utf-8")
    names = set(re.findall(r'"filename":"([^"]+)"', text))
    assert names
    assert all((P4SRC.parent / name).is_file() for name in names)


def test_artefacts_p4info_names_program_and_version(variant: Variant) -> None:
    text = p4src.artefacts(variant).p4info.read_text(encoding="utf-8")
    values = {"narrow": 32, "wide": 352}[variant]
    assert 'name: "switchfold"' in text
    assert f'version: "2.{values}"' in text


def test_compile_without_p4c_says_what_to_do(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setenv("PATH", "")
    with pytest.raises(p4src.CompilerNotFoundError, match="docker compose run --rm p4c"):
        p4_compile.find_compiler()
    assert p4_compile.main([]) == 1
    assert "docker compose run --rm p4c" in capsys.readouterr().err
    assert p4_compile.main(["--check"]) == 0


def test_public_names_of_the_package() -> None:
    assert len(set(p4src.__all__)) == len(p4src.__all__)
    assert all(hasattr(p4src, name) for name in p4src.__all__)


def test_stale_variant_says_which_source_and_what_to_do(
    monkeypatch: pytest.MonkeyPatch, variant: Variant
) -> None:
    assert p4src.stale_variant(variant) == ""
    real = freshness.sha256
    monkeypatch.setattr(
        freshness, "sha256", lambda path: "0" if path.name == "outcome.p4" else real(path)
    )
    problem = p4src.stale_variant(variant)
    assert "p4src/bmv2/outcome.p4" in problem
    assert "make p4" in problem
    assert "docker compose run --rm p4c" in problem


def test_installation_without_sources_compares_the_artefacts_alone(
    variant: Variant, tmp_path: Path
) -> None:
    bare = tmp_path / "p4src"
    shutil.copytree(P4SRC / "build", bare / "build")
    p4src.check_manifest(variant, bare / "build", bare)
    edited = p4src.artefacts(variant, bare / "build").p4info
    edited.write_bytes(edited.read_bytes() + b"\n")
    with pytest.raises(p4src.StaleArtefactError, match=edited.name):
        p4src.check_manifest(variant, bare / "build", bare)


def test_a_file_that_is_no_manifest_says_what_to_run(variant: Variant, tmp_path: Path) -> None:
    shutil.copytree(P4SRC / "build", tmp_path / "build")
    manifest = p4src.artefacts(variant, tmp_path / "build").manifest
    for text in ("{", "[]", '{"program": "x"}'):
        manifest.write_text(text, encoding="utf-8")
        with pytest.raises(p4src.StaleArtefactError, match="make p4"):
            p4src.check_manifest(variant, tmp_path / "build")
