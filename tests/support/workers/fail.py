"""X k: rank 0 exits with k, the other ranks wait to be stopped."""
import os
import signal
import sys

if os.environ["RANK"] == "0":
    sys.exit(int(sys.argv[1]))
signal.pause()
