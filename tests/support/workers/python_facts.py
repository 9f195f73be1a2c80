"""Prints how this Python was started, and how a Python that it starts sees itself."""
import os
import subprocess
import sys

FACTS = "import os, sys; print(sorted(sys.path), os.environ.get('PYTHONPATH'), sys.modules['sitecustomize'].__file__)"
exec(FACTS)
sys.stdout.flush()
subprocess.run([sys.executable, "-c", FACTS], check=True)
print("user's:", os.environ.get("USERS_SITECUSTOMIZE"))
