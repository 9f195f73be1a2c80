#!/usr/bin/env python3
"""Makes the corpus of the fuzzer `stacks`: what stacks_tool looks at in a real interpreter.

    tests/fuzz/make_stacks_corpus.py PYTHON...     writes corpus/stacks/VERSION for each, such as 3.11
"""
import pathlib
import subprocess
import sys
import time

HERE = pathlib.Path(__file__).resolve().parent
TOOL = HERE.parents[1] / "build/release/tests/stacks_tool"
WORKER = HERE.parent / "support/workers/stacks_recorded.py"

for python in sys.argv[1:]:
    version = subprocess.run([python, "-c", "import sys; print('%d.%d' % sys.version_info[:2])"],
                             check=True, capture_output=True, text=True).stdout.strip()
    with subprocess.Popen([python, WORKER], stdout=subprocess.PIPE, text=True) as worker:
        worker.stdout.readline()
        time.sleep(.5)  # until it sleeps
        subprocess.run([TOOL, "record", HERE / "corpus/stacks" / version, str(worker.pid)], check=True)
        worker.kill()
