"""accelerate launch over several lists of arguments: importing it once is enough. argv[1]: a JSON list of lists;
argv[2]: a folder for the output of each, as 0.out, 0.err, 0.code and so on."""
import json
import os
import sys

import torch.distributed.run  # noqa: F401
from accelerate.commands import launch

for number, words in enumerate(json.loads(sys.argv[1])):
    pid = os.fork()
    if pid == 0:
        for fd, name in ((1, "out"), (2, "err")):
            os.dup2(os.open(f"{sys.argv[2]}/{number}.{name}", os.O_WRONLY | os.O_CREAT, 0o644), fd)
        sys.argv = [launch.__file__, *words]
        launch.main()
        os._exit(0)
    _, status = os.waitpid(pid, 0)
    with open(f"{sys.argv[2]}/{number}.code", "w") as code:
        code.write(str(os.waitstatus_to_exitcode(status)))
