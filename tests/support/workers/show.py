"""E: the environment and the arguments as one line of JSON."""
import json
import os
import sys

print(json.dumps({"env": dict(os.environ), "argv": sys.argv, "flags": {"unbuffered": sys.stdout.write_through}}), flush=True)
