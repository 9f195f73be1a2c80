"""DeepSpeed's own launcher over several lists of arguments: importing it once is enough. argv[1]: a JSON list of pairs,
a list of arguments and an environment; argv[2]: a folder for the output of each, as 0.out, 0.code and so on."""
import json
import os
import sys

from deepspeed.launcher import launch, runner

AT_ONCE = 6


class InPlace:
    """Stands for subprocess.Popen in the runner: the node's launcher runs here and not in a new interpreter."""

    def __init__(self, command, env):
        runner.subprocess.Popen = POPEN
        module = command.index("deepspeed.launcher.launch")
        os.environ.clear()
        os.environ.update(env)
        sys.argv = [launch.__file__, *command[module + 1:]]
        launch.main()
        self.returncode = 0

    def wait(self):
        pass


POPEN = runner.subprocess.Popen


def one(number, words, env):
    for fd, name in ((1, "out"), (2, "err")):
        os.dup2(os.open(f"{sys.argv[2]}/{number}.{name}", os.O_WRONLY | os.O_CREAT, 0o644), fd)
    os.environ.update(env)
    runner.subprocess.Popen = InPlace
    try:
        runner.main(words)
    except SystemExit as end:
        return end.code or 0
    return 0


def reap(count):
    while len(running) > count:
        pid, status = os.wait()
        with open(f"{sys.argv[2]}/{running.pop(pid)}.code", "w") as code:
            code.write(str(os.waitstatus_to_exitcode(status)))


running = {}
for number, (words, env) in enumerate(json.loads(sys.argv[1])):
    reap(AT_ONCE - 1)
    pid = os.fork()
    if pid == 0:
        os._exit(one(number, words, env))
    running[pid] = number
reap(0)
