"""Processor time of commands that only have to speak, of those that look at a run, and of the imports of all others.

python benchmarks/startup.py [RUN]
"""

import os
import resource
import subprocess
import sys

TIMES = 5
READING = ("--version", "--help", "run --help", "bias --help", "list", "list methods", "settings xaitris", "card lime")
LOOKING = ("doctor",)
COMPLETING = "from forsooth.cli import app; app(prog_name='forsooth')"
COMPLETION = {"_FORSOOTH_COMPLETE": "complete_bash", "COMP_WORDS": "forsooth reproduce x", "COMP_CWORD": "2"}


def seconds(*words: str, **surroundings: str) -> float:
    """The least processor time of some runs, in s."""
    found = []
    for _ in range(TIMES):
        before = spent()
        around = {**os.environ, **surroundings}
        done = subprocess.run([sys.executable, *words], capture_output=True, text=True, check=False, env=around)
        if done.returncode not in (0, 1):  # 1: the doctor has found something
            raise SystemExit(f"{words}: {done.stderr}")
        found.append(spent() - before)
    return min(found)


def spent() -> float:
    used = resource.getrusage(resource.RUSAGE_CHILDREN)
    return used.ru_utime + used.ru_stime


if __name__ == "__main__":
    run = sys.argv[1:2]
    whole = seconds("-c", "import forsooth.api")
    print(f"import forsooth.api: {whole:.2f} s")
    for words in (*READING, *LOOKING, *(f"results {folder}" for folder in run)):
        print(f"forsooth {words}: {seconds('-m', 'forsooth', *words.split()):.2f} s")
    print(f"completion of a reproduction: {seconds('-c', COMPLETING, **COMPLETION):.2f} s")
