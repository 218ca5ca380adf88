# SPDX-FileCopyrightText: 2026 The Switchfold Authors
# SPDX-License-Identifier: Apache-2.0
"""Names of constants in traces: only those that a field's type or name makes certain."""

from __future__ import annotations

from pathlib import Path

import pytest

from switchfold import p4src
from switchfold.softswitch.program.bmv2_json import read_program
from switchfold.softswitch.program.model import Program
from switchfold.softswitch.trace.constants import Constants
from switchfold.softswitch.trace.sources import Sources

EXAMPLE = Path(__file__).resolve().parents[3] / "examples" / "softswitch"


def loaded(path: Path) -> tuple[Program, Sources]:
    return read_program(path), Sources(path)


def constants_of(path: Path) -> Constants:
    program, sources = loaded(path)
    return Constants(program, sources.texts(str(program.json["program"])))


@pytest.fixture(params=p4src.VARIANTS)
def ours(
    request: pytest.FixtureRequest, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> Constants:
    """The aggregation program's, found from its JSON alone, wherever the caller is."""
    monkeypatch.chdir(tmp_path)
    return constants_of(p4src.artefacts(request.param).json)


def test_constants_of_the_fields_own_type(ours: Constants) -> None:
    assert ours.name(("switchfold", "operation"), 3) == "OPERATION_FLUSH"
    assert ours.name(("scalars", "metadata_t.outcome"), 17) == "OUTCOME_BAD_GENERATION"
    assert ours.name(("switchfold", "operation"), 99) is None


def test_constants_that_begin_with_the_fields_name(ours: Constants) -> None:
    assert ours.name(("ethernet", "ethertype"), 0x0800) == "ETHERTYPE_IPV4"
    assert ours.name(("ethernet", "ethertype"), 0x0806) is None


def test_flags_are_named_bit_by_bit_where_the_width_agrees(ours: Constants) -> None:
    assert ours.name(("switchfold", "flags"), 0x0011) == "FLAG_PARTIAL|FLAG_LAST"
    assert ours.name(("switchfold", "flags"), 0x8011) is None, "one bit has no name"
    assert ours.name(("switchfold", "flags"), 0) is None
    assert ours.name(("ipv4", "flags"), 1) is None, "those are flags of another width"


def test_fields_that_happen_to_have_the_same_number_get_no_name(ours: Constants) -> None:
    assert ours.name(("ipv4", "protocol"), 17) is None
    assert ours.name(("switchfold", "job_id"), 1) is None
    assert ours.name(("no such", "field"), 1) is None


def test_members_of_enums() -> None:
    constants = constants_of(EXAMPLE / "router.json")
    text = (EXAMPLE / "router.p4").read_text(encoding="utf-8")
    assert "enum bit<32> DropReason" in text
    program, _ = loaded(EXAMPLE / "router.json")
    assert constants.name(("ethernet", "ethertype"), 0x0806) == "ETHERTYPE_ARP"
    made = Constants(
        program,
        ["enum bit<8> Kind { A = 8w1, B = 0x2 } /* Kind c; */ struct metadata_t { Kind kind; }"],
    )
    assert made.name(("scalars", "metadata_t.kind"), 2) == "Kind.B"
    assert made.name(("scalars", "metadata_t.kind"), 3) is None
    assert made.name(("scalars", "c"), 1) is None, "that declaration is a comment"


def test_two_constants_of_one_value_are_not_certain() -> None:
    program, _ = loaded(EXAMPLE / "router.json")
    made = Constants(
        program,
        ["const t A = 1; const t B = 1; const t C = 2; // const t D = 2;\nstruct m { t x; }"],
    )
    assert made.name(("scalars", "m.x"), 1) is None
    assert made.name(("scalars", "m.x"), 2) == "C"


def test_local_variables_have_the_type_of_their_declaration() -> None:
    program, _ = loaded(EXAMPLE / "router.json")
    text = "const reply_t REPLY_GROUP = 2;\ncontrol C() {\n    apply {\n        reply_t reply;\n"
    made = Constants(program, [text])
    assert made.name(("scalars", "C_reply_0"), 2) is None, "whose variable is not certain"
    assert made.name(("scalars", "reply_0"), 2) == "REPLY_GROUP"


def test_without_sources_there_are_no_names(tmp_path: Path) -> None:
    copy = tmp_path / "router.json"
    copy.write_bytes((EXAMPLE / "router.json").read_bytes())
    program, sources = loaded(copy)
    assert sources.texts("router.p4") == []
    assert Constants(program, []).name(("ethernet", "ethertype"), 0x0800) is None
