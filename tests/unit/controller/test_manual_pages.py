# SPDX-FileCopyrightText: 2026 The Switchfold Authors
# SPDX-License-Identifier: Apache-2.0
"""Manual pages: one for each command, with all its options, in roff that man accepts."""

from __future__ import annotations

import shutil
import subprocess
from pathlib import Path

import click
import pytest

from switchfold.controller.__main__ import COMMANDS, run
from switchfold.controller.cli.manual.pages import manual_page, page_name
from switchfold.controller.cli.manual.programs import PROGRAMS, contexts_below, program_context
from switchfold.controller.cli.manual.roff import RoffPage, escaped

CONTEXTS = [each for program in PROGRAMS for each in contexts_below(program_context(program))]


def shown(text: str) -> str:
    """Return what a page prints, without roff's own signs."""
    return text.replace("\\-", "-").replace("\\fB", "").replace("\\fR", "").replace("\\&", "")


@click.command(epilog="Exit codes: 0 done, 1 error.")
@click.option("--out-file", metavar="FILE", help="'Quoted' file\\folder.\n.so it goes")
def sample(out_file: str) -> None:
    """Write it.

    A paragraph
    of two lines.

    \b
    Examples:
      sample --out-file a.b
        -- more
    """


def test_there_is_a_page_for_each_command() -> None:
    names = [page_name(context) for context in CONTEXTS]
    assert len(set(names)) == len(names)
    assert {f"switchfold-{name}" for name in COMMANDS} <= set(names)
    assert {"switchfold", "softswitch", "softswitch-run", "switchfold-job-show"} <= set(names)


def test_page_has_the_sections_of_the_help() -> None:
    page = manual_page(click.Context(sample, info_name="sample"), version="1.2")
    titles = [line for line in page.splitlines() if line.startswith(".SH")]
    expected = ("NAME", "SYNOPSIS", "DESCRIPTION", "OPTIONS", "EXAMPLES", "EXIT STATUS")
    assert titles == [f'.SH "{title}"' for title in expected]
    assert page.startswith('.TH "SAMPLE" "1" "" "Switchfold 1.2"\n')
    assert "\nsample \\- Write it.\n" in page
    assert "\n.PP\nA paragraph\nof two lines.\n" in page
    assert "\n.nf\nsample \\-\\-out\\-file a.b\n  \\-\\- more\n.fi\n" in page
    assert page.endswith('.SH "EXIT STATUS"\n.PP\n0 done, 1 error.\n')


def test_text_is_no_request_and_no_escape() -> None:
    assert escaped(".so a\n'b\\n") == "\\&.so a\n\\&'b\\en"
    page = RoffPage("a-b", version="1")
    page.entry(".x", "")
    assert page.text.endswith(".TP\n\\fB\\&.x\\fR\n\\&\n")


@pytest.mark.parametrize("context", CONTEXTS, ids=page_name)
def test_page_has_all_options_and_commands_below(context: click.Context) -> None:
    text = shown(manual_page(context, version="1"))
    for option in context.command.params:
        if isinstance(option, click.Option) and not option.hidden:
            assert any(name in text for name in option.opts), option.name
    if isinstance(context.command, click.Group):
        for name in context.command.list_commands(context):
            assert f"See {page_name(context)}-{name}(1)." in text


def test_page_of_a_command_with_another_parser_has_its_options() -> None:
    (context,) = (each for each in CONTEXTS if page_name(each) == "switchfold-ps-run")
    text = shown(manual_page(context, version="1"))
    assert "usage: switchfold ps run" in text
    assert "--hot-job NAME" in text


@pytest.mark.skipif(shutil.which("groff") is None, reason="groff is not here")
def test_roff_has_no_warnings(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert run(["man", "--directory", str(tmp_path)]) == 0
    assert capsys.readouterr().out == f"{len(CONTEXTS)} pages in {tmp_path}\n"
    files = sorted(tmp_path.glob("*.1"))
    assert len(files) == len(CONTEXTS)
    command = ["groff", "-man", "-ww", "-z", "-T", "utf8", *map(str, files)]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    assert (done.returncode, done.stderr) == (0, "")


def test_pages_are_installed_where_man_looks(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("HOME", str(tmp_path))
    assert run(["man", "--install"]) == 0
    page = tmp_path / ".local" / "share" / "man" / "man1" / "switchfold-job-show.1"
    assert page.read_text("utf-8").startswith('.TH "SWITCHFOLD\\-JOB\\-SHOW"')


def test_a_page_is_printed_by_the_words_of_its_command(
    capsys: pytest.CaptureFixture[str],
) -> None:
    for words, name in (
        (["softswitch", "run"], "SOFTSWITCH\\-RUN"),
        (["job", "show"], "SWITCHFOLD\\-JOB\\-SHOW"),
        ([], "SWITCHFOLD"),
    ):
        assert run(["man", *words]) == 0
        assert capsys.readouterr().out.startswith(f'.TH "{name}" ')


def test_wrong_words_and_folders_are_told(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert run(["man", "job", "shoe"]) == 1
    assert capsys.readouterr().err == (
        "error: no command 'shoe' in switchfold job; see its --help\n"
    )
    file = tmp_path / "file"
    file.touch()
    assert run(["man", "--directory", str(file)]) == 1
    assert f"error: cannot write manual pages to {file}: " in capsys.readouterr().err
