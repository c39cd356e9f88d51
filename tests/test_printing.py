"""Nothing that strangers wrote is obeyed by the terminal: names of methods, messages, paths, names of tasks."""

import ast
import io
import json
import shutil
import sys
import warnings
from pathlib import Path

import pandas as pd
import pytest
import tiny

import forsooth
from forsooth import api, cli
from forsooth.printing import Printer, put, show_warning, tell, visible
from forsooth.progress import Bar, Lines, Silent
from forsooth.terminal import opened, plain

SOURCE = Path(forsooth.__file__).parent
EVIL = "\x1b[31mEVIL\x1b]0;owned\x07 \x9b2J\u202etxt.exe [red]brackets[/b] :smile:"
OBEYED = "\x1b\x07\x9b\x7f\r\u202e"
SPELLED = r"\u001b[31mEVIL\u001b]0;owned\u0007 \u009b2J\u202etxt.exe [red]brackets[/b] :smile:"


@pytest.fixture(scope="module")
def hostile(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A run from somebody else: whatever he can name has signs in it that a terminal obeys."""
    folder = tmp_path_factory.mktemp("runs") / "run\x1b[31m[b]:smile:"
    settings = {**tiny.SETTINGS, "trainings": 1}
    words = {"methods": ["saliency", "random"], "only": tiny.ONLY, "settings": settings}
    api.run("xaitris", out=folder, page=False, progress=Silent(), **words)
    rows = pd.read_parquet(folder / "scores.parquet")
    rows["method"] = rows["method"].replace("saliency", EVIL)
    rows["model"] = rows["model"].replace("mlp", EVIL)
    rows["message"] = EVIL
    rows.to_parquet(folder / "scores.parquet")
    run = json.loads((folder / "run.json").read_text())
    del run["sums"]
    run["methods"][EVIL] = run["methods"].pop("saliency")
    run["metrics"][EVIL] = run["metrics"].pop("precision")
    run |= {"title": EVIL, "question": EVIL, "failed": EVIL, "facts": [EVIL]}
    (folder / "run.json").write_text(json.dumps(run))
    shutil.rmtree(folder / "store")
    return folder


def said(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str], *words: str) -> str:
    """What a command prints on both streams."""
    monkeypatch.setattr(sys, "argv", ["forsooth", *words])
    with pytest.raises(SystemExit):
        cli.main()
    printed = capsys.readouterr()
    return printed.out + printed.err


@pytest.mark.filterwarnings("ignore:Glyph")  # no font has them, and figures need not
@pytest.mark.parametrize(
    "command",
    [
        "results RUN",
        "results RUN --format json",
        "results RUN --format markdown",
        "results RUN --format latex",
        "results RUN --only model=EVIL",
        "compare RUN RUN",
        "compare RUN RUN --metric EVIL",
        "compare RUN RUN --json",
        "report RUN",
        "doctor RUN",
        "list EVIL",
        "card EVIL",
        "results EVIL",
        "run xaitris --methods EVIL",
        "run xaitris --only EVIL=1",
    ],
)
def test_no_command_prints_what_a_terminal_obeys(hostile, monkeypatch, capsys, command) -> None:
    words = [word.replace("RUN", str(hostile)).replace("EVIL", EVIL) for word in command.split()]
    printed = said(monkeypatch, capsys, *words)
    assert printed and not set(OBEYED) & set(printed)
    assert "u001b" in printed or r"\x1b" in printed  # as it is quoted in an error


def test_warnings_of_other_libraries_are_filtered_too(capsys) -> None:
    with warnings.catch_warnings():
        warnings.simplefilter("always")
        warnings.showwarning = show_warning
        warnings.warn(f"Glyph {EVIL} is missing", stacklevel=1)
    printed = capsys.readouterr().err
    assert f"UserWarning: Glyph {SPELLED} is missing" in printed and not set(OBEYED) & set(printed)


def test_json_stays_json(hostile, monkeypatch, capsys) -> None:
    lines = said(monkeypatch, capsys, "results", str(hostile), "--format", "json").splitlines()
    assert EVIL in {json.loads(line)["method"] for line in lines}


def test_tables_and_lines_are_shown_as_they_are_written() -> None:
    stream = io.StringIO()
    Printer(file=stream, width=200).print(plain(pd.DataFrame({EVIL: [EVIL]}), EVIL), EVIL)
    assert stream.getvalue().count(SPELLED) == 4
    assert not set(OBEYED) & set(stream.getvalue())


def test_styles_of_our_own_are_kept() -> None:
    stream = io.StringIO()
    Printer(file=stream, force_terminal=True, width=80).print("mild", style="bold")
    assert "\x1b[1mmild\x1b[0m" in stream.getvalue()


def test_a_path_in_brackets_is_printed_whole(tmp_path, capsys) -> None:
    opened(tmp_path / "[red]of[/b]" / ":smile:.html")
    assert "[red]of[/b]/:smile:.html" in capsys.readouterr().out


def test_progress_names_tasks_and_obeys_none(capsys) -> None:
    stream = io.StringIO()
    bar = Bar(Printer(file=stream, force_terminal=True, width=200))
    bar.start(total=1, done=0)
    bar.doing([EVIL])
    bar.say(EVIL)
    bar.step(EVIL)
    assert r"\u001b[31mEVIL" in stream.getvalue() and "\x1b[31mEVIL" not in stream.getvalue()
    for progress in (Silent(), Lines(every=0)):
        progress.start(total=1, done=0)
        progress.doing([EVIL])
        progress.say(EVIL)
        progress.step(EVIL)
    tell(EVIL)
    put(EVIL)
    printed = capsys.readouterr()
    assert not set(OBEYED) & set(printed.err + printed.out)
    assert SPELLED in printed.err and printed.out == SPELLED


def test_ordinary_words_are_not_touched() -> None:
    for words in ("0.5–0.6 ○ α", "two\nlines\tand more", "日本語 עברית", "‘quoted’ € 8×8"):
        assert visible(words) == words


def test_nobody_else_writes_to_the_terminal() -> None:
    """One filter in one place: no other file makes a console, prints, or writes to a stream of the process."""
    for file in SOURCE.rglob("*.py"):
        if file.name == "printing.py":
            continue
        for node in ast.walk(ast.parse(file.read_text())):
            if isinstance(node, ast.Call):
                called = ast.unparse(node.func)
                assert called not in ("print", "Console", "typer.echo", "typer.secho"), file
                assert not called.endswith(("stdout.write", "stderr.write")), file
