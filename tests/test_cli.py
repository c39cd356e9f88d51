"""The terminal: answers, errors of one line with exit code 2, and nothing a Python caller cannot do."""

import io
import json
import os
import re
import shlex
import subprocess
import sys

import numpy as np
import pandas as pd
import pytest
import tiny
import typer
from rich.console import Console

from forsooth import cli, cli_runs
from forsooth.analysis import export
from forsooth.attributions import METHODS
from forsooth.records import FailedTasks
from forsooth.runs import Run
from forsooth.suites import REPRODUCTIONS, SUITES, explain
from forsooth.terminal import fitting, out, plain


def forsooth(monkeypatch, *words: str) -> int:
    """The exit code of the command line with these words."""
    monkeypatch.setattr(sys, "argv", ["forsooth", *words])
    with pytest.raises(SystemExit) as stopped:
        cli.main()
    return stopped.value.code or 0


RUN = ["run", "xaitris", "--workers", "1", "--quiet", "--methods", "saliency,oracle", "--only", "scenario=LIN"]
RUN += ["--only", "background=white", "--models", "llr", "--set", "n=600", "--set", "alpha=0.6"]
RUN += ["--set", "samples=6", "--set", "sweep="]


def test_list_names_every_method(monkeypatch, capsys):
    assert forsooth(monkeypatch, "list", "methods") == 0
    printed = [line.split()[0] for line in capsys.readouterr().out.splitlines()]
    assert printed == [method.name for method in METHODS]
    assert forsooth(monkeypatch, "list", "methods") == 0
    assert re.search(r"^grad_cam +module, layer ", capsys.readouterr().out, re.M)


def test_run_report_and_results(monkeypatch, capsys, tmp_path):
    folder = tmp_path / "run"
    assert forsooth(monkeypatch, *RUN, "--out", str(folder)) == 0
    assert f"Open the page: {folder / 'report.html'}" in capsys.readouterr().out
    about = json.loads((folder / "run.json").read_text())
    assert about["choice"]["only"] == {"scenario": ["LIN"], "background": ["white"], "model": ["llr"]}
    assert "--set alpha=0.6" in about["command"] and "--only model=llr" in about["command"]

    (folder / "report.html").unlink()
    assert forsooth(monkeypatch, "report", str(folder)) == 0
    assert (folder / "report.html").is_file()
    capsys.readouterr()

    assert forsooth(monkeypatch, "results", str(folder), "--format", "csv") == 0
    (tmp_path / "rows.csv").write_text(capsys.readouterr().out)
    rows = pd.read_csv(tmp_path / "rows.csv")
    assert set(rows["method"].dropna()) >= {"saliency", "oracle"}
    assert (
        forsooth(monkeypatch, "results", str(folder), "--format", "parquet", "--out", str(tmp_path / "r.parquet")) == 0
    )
    assert len(pd.read_parquet(tmp_path / "r.parquet")) == len(rows)


@pytest.mark.parametrize(
    "words, message",
    [
        (["run", "xaitri"], "`suite` must be a known name, got 'xaitri'; did you mean xaitris?"),
        (["run", "xaitris", "--preset", "quik"], "`preset` must be a known name, got 'quik'; did you mean quick?"),
        (["run", "xaitris", "--methods", "lmie"], "`methods` must be a known name, got 'lmie'; did you mean lime"),
        (["run", "xaitris", "--models", "cnm"], "`model` must be a known name, got 'cnm'; did you mean cnn?"),
        (
            ["run", "xaitris", "--models", "cnn", "--only", "model=mpl"],
            "`--models` must come without `--only model=`, got 'cnn' and 'mpl'",
        ),
        (
            ["run", "articles", "--set", "models=foo", "--models", "attention"],
            "`model` must be among the models that are set, got 'attention' beside models=foo",
        ),
        (["run", "articles", "--methods", ":x"], "`methods` must be package.module:function, got ':x'"),
        (
            ["reproduce", "figure-5"],
            "`name` must be a known name, got 'figure-5'; did you mean bias/figure-5 or articles/figure-5?",
        ),
        (["run", "xaitris", "--only", "LIN"], "`--only` must be key=value, got 'LIN'"),
        (["run", "xaitris", "--set", "alpha=2"], "`alpha` must be a share of signal from 0 to 1, got 2.0"),
        (["run", "xaitris", "--set", "trainings=-1"], "`trainings` must be at least 1, got -1"),
        (["run", "planted", "--set", "samples=0"], "`samples` must be at least 1, got 0"),
        (["compare", "nowhere", "nowhere"], "`run_dir` must hold run.json and scores.parquet, got nowhere"),
        (["doctor", "nowhere"], "`runs` must be folders of runs, got nowhere without store"),
        (["list", "method"], "`what` must be a known name, got 'method'; did you mean methods"),
        (["reproduce", "xaitris/table-b3"], "`name` must be a known name, got 'xaitris/table-b3'; did you mean"),
        (
            ["reproduce", "bias/table-8"],
            "`data` must name a folder with Pascal VOC 2012 to make Table 8 again, got None",
        ),
        (["results", "nowhere"], "`run` must be the folder of a finished run, got nowhere without run.json"),
        (["report", "nowhere"], "`run_dir` must hold run.json and scores.parquet, got nowhere"),
    ],
)
def test_an_error_is_one_line_and_exit_code_two(monkeypatch, capsys, tmp_path, words, message):
    monkeypatch.chdir(tmp_path)
    assert forsooth(monkeypatch, *words) == 2
    error = capsys.readouterr().err
    assert error.startswith(f"forsooth: {message}")
    assert error.count("\n") == 1
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize(
    "words",
    [
        ["check", "leaves_with_zero:f"],
        ["run", "xaitris", "--methods", "leaves_with_zero:f"],
        ["dryrun", "--data", "photographs", "--train", "leaves_with_zero:f"],
        ["bias", "--model", "leaves_with_zero:f", "--inputs", "x.npy"],
        ["independence", "--model", "leaves_with_zero:f", "--inputs", "x.npy"],
    ],
    ids=lambda words: words[0],
)
def test_code_of_the_users_that_leaves_with_zero_ends_no_command_with_zero(monkeypatch, capsys, tmp_path, words):
    monkeypatch.chdir(tmp_path)
    monkeypatch.syspath_prepend(tmp_path)
    monkeypatch.delitem(sys.modules, "leaves_with_zero", raising=False)
    (tmp_path / "leaves_with_zero.py").write_text("import sys\n\nsys.exit(0)\n")
    np.save(tmp_path / "x.npy", np.zeros((3, 4), dtype=np.float32))
    assert forsooth(monkeypatch, *words) == 2
    error = capsys.readouterr().err
    assert error.count("\n") == 1 and "SystemExit: 0 (leaves_with_zero.py, line 3: sys.exit(0))" in error


def test_an_output_folder_that_cannot_be_written(monkeypatch, capsys, tmp_path):
    (tmp_path / "file").write_text("mine")
    assert forsooth(monkeypatch, *RUN, "--out", str(tmp_path / "file" / "run")) == 2
    assert "`out` must be a folder that can be written, got" in capsys.readouterr().err


def test_reproduce_prints_ours_beside_theirs(monkeypatch, capsys, tmp_path):
    words = [
        "reproduce",
        "xaitris/table-b2",
        "--only",
        "scenario=LIN",
        "--only",
        "background=WHITE",
        "--only",
        "model=LLR",
    ]
    words += ["--set", "trainings=1", "--set", "n=1000", "--quiet", "--workers", "1", "--out", str(tmp_path)]
    assert forsooth(monkeypatch, *words) == 0
    printed = capsys.readouterr().out
    assert "88.9" in printed and "of 1 accuracies come out within 3 points" in printed
    assert f"The table: {tmp_path / 'xaitris-table-b2' / 'table.csv'}" in printed
    table = pd.read_csv(tmp_path / "xaitris-table-b2" / "table.csv")
    assert list(table["accuracy"]) == [88.9]
    assert table["paper"].between(50, 100).all() and table["released"].between(50, 100).all()


def test_columns_without_room_are_left_to_the_file():
    wide = pd.DataFrame([[0.5] * 40], columns=[f"column {k}" for k in range(40)])
    shown = fitting(wide)
    assert list(shown) == list(wide)[: shown.shape[1]] and 1 < shown.shape[1] < 40
    assert fitting(wide[["column 1"]]).equals(wide[["column 1"]])
    assert list(fitting(wide, spare=["column 3", "column 0"])) == [name for name in wide if name[7:] not in ("0", "3")]
    printed = io.StringIO()
    Console(file=printed, width=out.width).print(plain(shown, "wide"))
    assert all(name in printed.getvalue() for name in shown) and "…" not in printed.getvalue()


def test_an_interrupt_says_that_work_is_kept(monkeypatch, capsys):
    def interrupted() -> None:
        raise KeyboardInterrupt

    monkeypatch.setattr(cli, "app", interrupted)
    assert forsooth(monkeypatch) == 130
    assert "the same command goes on from there" in capsys.readouterr().err


def test_tasks_that_failed_are_one_line_and_exit_code_three(monkeypatch, capsys):
    def failed() -> None:
        raise FailedTasks("3 of 8 tasks failed")

    monkeypatch.setattr(cli, "app", failed)
    assert forsooth(monkeypatch) == 3
    assert capsys.readouterr().err == "forsooth: 3 of 8 tasks failed\n"


def out_of_memory_for(name: str, monkeypatch) -> None:
    attribute = explain.attribute

    def ask(method, question):
        if method == name:
            raise MemoryError("no room")
        return attribute(method, question)

    monkeypatch.setattr(explain, "attribute", ask)


def scored(folder) -> set[str]:
    rows = pd.read_parquet(folder / "scores.parquet")
    return set(rows.loc[rows["part"] == "scores", "method"])


def test_a_run_with_failed_tasks_goes_on_and_the_next_one_tries_them_again(monkeypatch, capsys, tmp_path):
    words = [*RUN, "--set", "trainings=1", "--out", str(tmp_path)]
    with monkeypatch.context() as patch:
        out_of_memory_for("saliency", patch)
        assert forsooth(monkeypatch, *words) == 3
    error = capsys.readouterr().err
    assert error.count("\n") == 1 and "2 of 7 tasks failed" in error and "MemoryError: no room" in error
    assert "Incomplete: 2 of 7 tasks failed" in (tmp_path / "report.html").read_text()
    assert scored(tmp_path) == {"oracle"}

    assert forsooth(monkeypatch, *words) == 0
    assert scored(tmp_path) == {"oracle", "saliency"}
    assert "Incomplete" not in (tmp_path / "report.html").read_text()


def test_tiny_settings_are_settings_of_the_suite():
    assert set(tiny.SETTINGS) <= {"n", "alpha", "samples", "sweep", "trainings"}


def printed_to(kind: str) -> subprocess.CompletedProcess[str]:
    """What a command does whose output is of that kind."""
    command = [sys.executable, "-m", "forsooth", "list", "suites"]
    if kind == "closed":
        code = "import os, sys; os.close(1); os.execv(sys.executable, [sys.executable, *sys.argv[1:]])"
        command = [sys.executable, "-c", code, *command[1:]]
    if kind == "full":
        command = ["bash", "-c", f"{' '.join(command)} > /dev/full"]
    if kind == "head":
        command = ["bash", "-c", f"({' '.join(command[:3])} settings; echo $? >&2) | head -c 10"]
    return subprocess.run(command, capture_output=True, text=True, check=False)


@pytest.mark.parametrize("encoding", ["ascii", "latin-1"])
def test_a_terminal_that_is_not_utf8_ends_in_no_traceback(encoding):
    code = "from forsooth.terminal import out; out.print('0.5–0.6 ○ α')"
    environment = {**os.environ, "PYTHONIOENCODING": encoding}
    done = subprocess.run([sys.executable, "-c", code], env=environment, capture_output=True, check=False)
    assert done.returncode == 0 and done.stdout.startswith(b"0.5") and done.stderr == b""


@pytest.mark.parametrize("kind", ["closed", "full", "head"])
def test_an_output_that_is_closed_or_full_ends_in_no_traceback(kind):
    assert "Traceback" not in printed_to(kind).stderr


@pytest.mark.parametrize("command", typer.main.get_command(cli.app).commands.values(), ids=lambda command: command.name)
def test_every_help_ends_with_an_example_that_can_be_understood(command, capsys):
    first, name, *words = shlex.split(command.epilog)
    assert (first, name) == ("forsooth", command.name)
    command.make_context(name, words)  # an option that is not there ends this
    with pytest.raises(SystemExit):
        cli.app([name, "--help"])
    assert words[-1] in capsys.readouterr().out if words else True


READ_ALONE = (
    ["--help"],
    ["--version"],
    ["card", "lime"],
    ["list", "reproductions"],
    ["run", "--help"],
    ["settings", "bam", "--format=markdown"],
)
MISTAKES = (["run"], ["bias", "--nonsense"], ["list", "method"], ["card", "limme"], ["settings", "bim"])


@pytest.mark.parametrize("words", READ_ALONE + MISTAKES, ids=" ".join)
def test_who_only_reads_waits_for_no_import(words):
    """Torch and pandas take seconds; `benchmarks/startup.py` prints how many."""
    code = "import sys; from forsooth.cli import main\ntry: main()\n"
    code += "finally: sys.stderr.write(f\"loaded: {sorted({'torch', 'pandas', 'numpy'} & set(sys.modules))}\")"
    done = subprocess.run([sys.executable, "-c", code, *words], capture_output=True, text=True, check=False)
    assert done.stderr.endswith("loaded: []")
    assert done.returncode == (2 if words in MISTAKES else 0)


def test_formats_and_suites_are_what_there_is():
    """The command line names them without an import; here it is held against the catalogues."""
    assert set(cli_runs.FORMATS) == {*cli_runs.ROWS, *export.WRITERS}
    assert cli_runs.suite_names() == [suite.name for suite in SUITES]
    assert cli_runs.reproduction_names() == [record.name for record in REPRODUCTIONS]


def test_completion_can_be_installed_and_knows_names(monkeypatch, capsys):
    monkeypatch.setenv("_FORSOOTH_COMPLETE", "complete_bash")
    monkeypatch.setenv("COMP_WORDS", "forsooth run xai")
    monkeypatch.setenv("COMP_CWORD", "2")
    with pytest.raises(SystemExit):
        cli.app(prog_name="forsooth")
    assert capsys.readouterr().out.split() == ["xaitris"]


def test_json_for_scripts(monkeypatch, capsys, tmp_path):
    folder = str(tmp_path / "run")
    assert forsooth(monkeypatch, *RUN, "--out", folder, "--json") == 0
    told = json.loads(capsys.readouterr().out)
    assert {line["method"] for line in told["boards"]["ima"]} == {"saliency", "oracle"}
    assert told["folder"] == folder and told["failed"] == ""

    assert forsooth(monkeypatch, "compare", folder, folder, "--json") == 0
    told = json.loads(capsys.readouterr().out)
    assert told["paired"] is True and {line["difference"] for line in told["table"]} == {0.0}

    assert forsooth(monkeypatch, "doctor", folder, "--json") in (0, 1)  # a busy machine may have little memory
    table = json.loads(capsys.readouterr().out)["table"]
    assert table[-1]["what"] == f"store of {folder}" and table[-1]["value"].endswith(", 0 damaged")

    assert forsooth(monkeypatch, "list", "methods", "--json") == 0
    told = json.loads(capsys.readouterr().out)
    assert list(told) == [method.name for method in METHODS]
    lrp = "Layer-wise relevance propagation with one rule in all layers"
    assert told["lrp"]["summary"].startswith(lrp)
    assert (told["lrp"]["needs"], told["lrp"]["promise"]) == ("module", "conserve")

    for format, first in {"latex": "% emd", "markdown": "## emd"}.items():
        assert forsooth(monkeypatch, "results", folder, "--format", format, "--only", "model=llr") == 0
        printed = capsys.readouterr().out
        assert printed.startswith(first) and "saliency" in printed and "oracle" in printed
    assert forsooth(monkeypatch, "results", folder, "--only", "model=llr") == 0
    assert "oracle" in capsys.readouterr().out


def test_compare_and_card_are_printed_for_people(monkeypatch, capsys, tmp_path):
    assert forsooth(monkeypatch, *RUN, "--out", str(tmp_path / "run")) == 0
    assert forsooth(monkeypatch, "compare", str(tmp_path / "run"), str(tmp_path / "run")) == 0
    assert "differences are paired" in capsys.readouterr().out
    assert forsooth(monkeypatch, "card", "ima") == 0
    assert capsys.readouterr().out.startswith("### ima\n")
    assert forsooth(monkeypatch, "card", "imma") == 2


def test_the_demo_goes_where_it_is_told(monkeypatch, capsys, tmp_path):
    folders = []

    def run(suite, *, out, preset, page, **others):
        folders.append((suite, out, preset, page))
        return Run(out)

    def write_page(runs, out):
        assert runs == [place for _, place, _, _ in folders]
        return out

    monkeypatch.setattr(cli.forsooth, "run", run, raising=False)
    monkeypatch.setattr(cli, "show_board", lambda made: None)
    monkeypatch.setattr(cli, "_exit_if_failed", lambda runs: None)
    monkeypatch.setattr("forsooth.runs.write_page", write_page)
    assert forsooth(monkeypatch, "demo", "--out", str(tmp_path / "here"), "--quiet") == 0
    assert folders == [(suite.name, tmp_path / "here" / f"{suite.name}-demo", "demo", False) for suite in SUITES]
    assert str(tmp_path / "here" / "demo.html") in capsys.readouterr().out.replace("\n", "")
