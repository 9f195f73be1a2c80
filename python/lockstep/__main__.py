"""`python -m lockstep`: runs the binary, which uses this Python for workers (PYTHON_EXEC)."""
import os
import sys

from lockstep._binary import BinaryNotFound, find_binary


def main() -> None:
    try:
        binary = find_binary()
    except BinaryNotFound as error:
        sys.exit(f"python -m lockstep: error: {error}")
    os.environ.setdefault("PYTHON_EXEC", sys.executable)
    os.execv(binary, [binary, *sys.argv[1:]])


if __name__ == "__main__":
    main()
