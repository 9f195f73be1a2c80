"""PyTorch's own torchrun over several lists of arguments, one after the other: importing torch once is enough. argv[1]:
a JSON list of lists; argv[2]: a folder for the output of each, as 0.out, 0.code and so on."""
import json
import os
import sys

from torch.distributed import run

for number, words in enumerate(json.loads(sys.argv[1])):
    pid = os.fork()
    if pid == 0:
        out = os.open(f"{sys.argv[2]}/{number}.out", os.O_WRONLY | os.O_CREAT, 0o644)
        os.dup2(out, 1)
        run.main(words)
        os._exit(0)
    _, status = os.waitpid(pid, 0)
    with open(f"{sys.argv[2]}/{number}.code", "w") as code:
        code.write(str(os.waitstatus_to_exitcode(status)))
