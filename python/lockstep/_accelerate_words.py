"""Asks the installed accelerate what `accelerate launch WORDS` would start, without starting anything.

accelerate's own parser and checks run; the functions that start processes are replaced. Prints one line of JSON.
Lockstep's binary contains this text and runs it with the project's Python.
"""
import sys

if sys.path[:1] == [""]:  # `python -c` searches the current folder first; accelerate's own command does not
    del sys.path[0]

import io  # noqa: E402
import json  # noqa: E402
import os  # noqa: E402
from typing import Any, Dict, List, Mapping, NoReturn, Optional  # noqa: E402


class Caught(Exception):
    """Raised instead of starting a process."""


def torchrun_words(run: Any, args: Any) -> List[str]:
    """Returns torchrun's options other than the defaults, as command-line words."""
    words: List[str] = []
    parser = run.get_args_parser()
    # With several nodes, pass these even at their defaults: otherwise Lockstep would choose its own.
    nodes = {"node_rank", "rdzv_backend"} if str(args.nnodes) not in ("1", "1:1") else set()
    for action in parser._actions:
        value = getattr(args, action.dest, None)
        if not action.option_strings or action.dest == "help" or value is None:
            continue
        if value == action.default and action.dest not in nodes:
            continue
        name = action.option_strings[0] if action.option_strings[0].startswith("--") else action.option_strings[-1]
        if action.nargs == 0:
            words += [name] if value else []
        else:
            words.append(f"{name}={value}")
    return words


def delta(before: Mapping[str, str], after: Mapping[str, str]) -> List[str]:
    return [f"{name}={value}" for name, value in sorted(after.items()) if before.get(name) != value]


def unknown(*given: Any, **more: Any) -> NoReturn:
    raise NotImplementedError("neither torch.distributed.run nor a process would be started")


def opened(path: Any, mode: str = "r", *given: Any, **more: Any) -> Any:
    return io.StringIO() if mode.startswith("a") else open(path, mode, *given, **more)


def ask(words: List[str]) -> Dict[str, Any]:
    import subprocess

    import accelerate  # type: ignore[import]
    from accelerate.commands import launch  # type: ignore[import]
    from torch.distributed import run

    found: Dict[str, Any] = {"version": accelerate.__version__}
    before = dict(os.environ)  # after importing torch, whose own variables must not show up as accelerate's

    def caught_run(args: Any) -> NoReturn:
        found.update(torchrun=torchrun_words(run, args), env=delta(before, os.environ), script=args.training_script,
                     args=list(args.training_script_args))
        raise Caught

    class CaughtProcess:
        def __init__(self, command: List[Any], env: Optional[Mapping[str, str]] = None, **more: Any) -> None:
            found.update(command=[str(word) for word in command],
                         env=delta(before, os.environ if env is None else env))
            raise Caught

    class Processes:
        """Stands in for the module subprocess in launch.py."""

        Popen = CaughtProcess

        def __getattr__(self, name: str) -> Any:
            return getattr(subprocess, name)

    run.run = caught_run
    launch.subprocess = Processes()
    launch.open = opened  # every start would append to the file .deepspeed_env
    for name in ("tpu_launcher", "tpu_pod_launcher", "sagemaker_launcher"):
        setattr(launch, name, unknown)
    import accelerate.utils.launch as utils  # type: ignore[import]

    for module in (launch, utils):
        if hasattr(module, "is_port_in_use"):
            module.is_port_in_use = lambda port: False
    sys.argv = ["accelerate-launch", *words]
    try:
        launch.main()
    except Caught:
        pass
    return found


def main() -> None:
    out = os.fdopen(os.dup(1), "w")
    os.dup2(2, 1)  # all other output goes to stderr
    try:
        found = ask(sys.argv[1:])
    except SystemExit as error:  # bad arguments, reported by accelerate itself
        found = {"exit": error.code if isinstance(error.code, int) else 1}
    except Exception as error:  # an unknown version of accelerate, or a setting that it refuses
        found = {"error": f"{type(error).__name__}: {error}"}
    out.write(json.dumps(found) + "\n")
    out.close()
    # Do not wait for threads of torch.
    sys.stdout.flush()
    sys.stderr.flush()
    os._exit(0)


main()
