"""Prints what a Python was started with, as it sees it, and what a Python that it starts sees."""
import os
import subprocess
import sys

FACTS = "import os, sys; print(sorted(sys.path), os.environ.get('PYTHONPATH'), sys.modules['sitecustomize'].__file__)"
exec(FACTS)
sys.stdout.flush()
subprocess.run([sys.executable, "-c", FACTS], check=True)
print("user's:", os.environ.get("USERS_SITECUSTOMIZE"))
