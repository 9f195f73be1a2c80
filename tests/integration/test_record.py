"""lockstep.record writes the same as torch's record: the same script with either one, and the report of a job."""
import json
import os
import re
import subprocess
import sys

import pytest

from harness import PYTHON, REPOSITORY

PACKAGE = REPOSITORY / "python"
OURS = f"import sys; sys.path.insert(0, {str(PACKAGE)!r})\nfrom lockstep import record\n"
TORCHS = "from torch.distributed.elastic.multiprocessing.errors import record\n"
CHILD_FAILED = """
from torch.distributed.elastic.multiprocessing.errors import ChildFailedError, ProcessFailure
raise ChildFailedError("train.py", {0: ProcessFailure(0, 123, %s, %r)})
"""

ENDS = {
    "exception": "raise ValueError('x = \\u00e9\\nsecond line')",
    "no text": "raise KeyError()",
    "exit 3": "import sys; sys.exit(3)",
    "exit 0": "import sys; sys.exit(0)",
    "interrupted": "raise KeyboardInterrupt()",
    "returns": "print('done')",
}


def indented(code):
    return "".join(f"    {line}\n" for line in code.strip().splitlines())


def ended(tmp_path, name, imports, code, decorator="@record", environment=None):
    """(exit code, the error file's content or None, stderr) of a script whose main() is `code`."""
    folder = tmp_path / name
    folder.mkdir()
    script = tmp_path / "train.py"
    script.write_text(f"{imports}{decorator}\ndef main():\n{indented(code)}main()\n")
    file = folder / "error.json"
    done = subprocess.run([PYTHON, script], capture_output=True, text=True, timeout=120,
                          env={**os.environ, "TORCHELASTIC_ERROR_FILE": str(file), **(environment or {})})
    return done.returncode, file.read_text() if file.exists() else None, done.stderr


def without_wrapper(callstack):
    """The frame of the decorator is another file and line."""
    return re.sub(r'  File "[^"]*(_record|errors/__init__)\.py", line \d+, in wrapper\n( .*\n)+?(?=  File|\S)', "",
                  callstack)


def comparable(text):
    content = json.loads(text)
    extra = content["message"]["extraInfo"]
    assert re.fullmatch(r"\d{10}", extra["timestamp"])
    extra["timestamp"] = ""
    extra["py_callstack"] = re.sub(r"line \d+, in main", "in main", without_wrapper(extra["py_callstack"]))
    return json.dumps(content)  # in the order of the file


@pytest.mark.parametrize("end", ENDS)
def test_the_same_file_as_torch_writes(end, tmp_path):
    ours = ended(tmp_path, "ours", OURS, ENDS[end])
    theirs = ended(tmp_path, "theirs", TORCHS, ENDS[end])
    assert ours[0] == theirs[0], (ours, theirs)
    if theirs[1] is None:
        assert ours[1] is None
    else:
        assert "in main" in ours[1] and comparable(ours[1]) == comparable(theirs[1])


@pytest.mark.parametrize("code", [-9, 1, 0])
@pytest.mark.parametrize("content", [{"message": {"message": "m", "extraInfo": {"timestamp": "1"}}},
                                     {"message": "text", "timestamp": 2}])
def test_a_childs_error_file_is_passed_on_as_torch_does(tmp_path, content, code):
    child = tmp_path / "child.json"
    child.write_text(json.dumps(content))
    raising = CHILD_FAILED % (code, str(child))
    ours, theirs = (ended(tmp_path, name, imports, raising) for name, imports in (("ours", OURS), ("theirs", TORCHS)))
    assert ours[:2] == theirs[:2] and theirs[1] is not None


def test_both_ways_to_write_the_decorator(tmp_path):
    code, content, _ = ended(tmp_path, "called", OURS, "raise ValueError('x')", decorator="@record()")
    assert code == 1 and json.loads(content)["message"]["message"] == "ValueError: x"


def test_without_an_error_file_the_exception_is_as_it_was(tmp_path):
    for number, value in enumerate(("", "/nowhere/error.json")):
        code, content, err = ended(tmp_path, str(number), OURS, "raise ValueError('x')",
                                   environment={"TORCHELASTIC_ERROR_FILE": value})
        assert code == 1 and content is None and err.endswith("ValueError: x\n"), err


def test_the_report_of_a_job_shows_the_traceback(lockstep):
    script = lockstep.folder / "train.py"
    script.write_text(OURS + "@record\ndef main():\n    raise ValueError('no such data')\nmain()\n")
    done = lockstep.run("--standalone", "--nproc-per-node", "1", script)
    assert done.rc == 1 and "ValueError: no such data" in done.err and "in main" in done.err, done
    assert "traceback : Traceback" in done.err, done


def test_importing_it_imports_nothing_else():
    code = ("import sys; before = set(sys.modules); import lockstep; "
            "print(sorted(set(sys.modules) - before - {'lockstep', 'typing'} - set(sys.builtin_module_names)))")
    said = subprocess.run([PYTHON, "-c", "import typing; " + code], capture_output=True, text=True, check=True,
                          env={**os.environ, "PYTHONPATH": str(PACKAGE)})
    assert said.stdout == "[]\n"


def test_an_unknown_name_is_an_attribute_error():
    sys.path.insert(0, str(PACKAGE))
    try:
        import lockstep
        with pytest.raises(AttributeError, match="no_such_name"):
            lockstep.no_such_name
        assert "record" in dir(lockstep)
    finally:
        sys.path.remove(str(PACKAGE))
