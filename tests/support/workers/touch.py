"""T: a file named after the rank in the directory given; prints its arguments."""
import os
import sys

open(os.path.join(os.environ["OUT_DIR"], os.environ["RANK"]), "w").write(str(os.getpid()))
print(sys.argv[1:])
