"""The training of the demos on hosts: the digits example, copied into a project of its own."""
import os
import pathlib
import shutil

EXAMPLES = pathlib.Path(__file__).parent.parent / "examples"


def place_training(project):
    """Copies the example. Returns the options that a job needs for its ranks to find this machine's PyTorch usable.

    ./dev names in LOCKSTEP_TORCH_AID the folder with a sitecustomize.py, where Debian's PyTorch needs one. The hosts of
    a demo see the project, and not always the checkout, so the file goes into the project.
    """
    shutil.copytree(EXAMPLES / "digits", project)
    aid = os.environ.get("LOCKSTEP_TORCH_AID")
    if not aid:
        return []
    shutil.copy(pathlib.Path(aid) / "sitecustomize.py", project)
    return ["--env", "PYTHONPATH=."]
