"""Processor time of a command that only has to speak, beside the imports that all others wait for.

python benchmarks/startup.py
"""

import resource
import subprocess
import sys

TIMES = 5


def seconds(*words: str) -> float:
    """The least processor time of some runs, in s."""
    found = []
    for _ in range(TIMES):
        before = spent()
        subprocess.run([sys.executable, *words], capture_output=True, check=True)
        found.append(spent() - before)
    return min(found)


def spent() -> float:
    used = resource.getrusage(resource.RUSAGE_CHILDREN)
    return used.ru_utime + used.ru_stime


if __name__ == "__main__":
    whole = seconds("-c", "import forsooth.api")
    print(f"import forsooth.api: {whole:.2f} s")
    for words in (["--version"], ["--help"], ["run", "--help"], ["bias", "--help"]):
        own = seconds("-m", "forsooth", *words)
        print(f"forsooth {' '.join(words)}: {own:.2f} s, {own / whole:.2f} of it")
