"""lockstep.Rows without hosts: its reading of the answers of `lockstep why`."""
import pytest

import lockstep
from lockstep import _map, _program
from lockstep._cluster import Cluster
from lockstep._function import RemoteFunction

LOST = lockstep.LockstepError("gpus-1 is not reached", 255)


def told(state, row, **more):
    return {"state": state, "nodes": ["gpus-0"], "rows": [{"row": 0, "state": row, **more}]}


@pytest.fixture
def rows(monkeypatch):
    """Returns a map of one row, for which `why` gives these answers."""
    def made(*answers):
        left = list(answers)

        def ask(words):
            answer = left.pop(0)
            if isinstance(answer, Exception):
                raise answer
            return answer
        monkeypatch.setattr(_program, "ask", ask)
        monkeypatch.setattr(_map.time, "sleep", lambda seconds: None)
        receiver = RemoteFunction(print, Cluster("gpus"), [], "f", "safe", [], {}, None, False, 0)
        return _map.Rows("j", 1, "maps/x", receiver)
    return made


def test_a_lost_connection_is_waited_for_and_told_once(rows, capsys):
    assert rows(LOST, LOST, told("running", "unknown"), told("succeeded", "done")).wait()
    said = capsys.readouterr().err
    assert said.count("\n") == 1 and "gpus-1 is not reached" in said, said


def test_other_errors_end_the_wait(rows):
    with pytest.raises(lockstep.LockstepError, match="no job"):
        rows(lockstep.LockstepError("no job", 2)).wait()


def test_a_row_without_a_value_is_asked_for_again(rows):
    made = rows(told("succeeded", "unknown"), told("failed", "lost"), told("failed", "failed", host="gpus-7"))
    with pytest.raises(lockstep.CallError, match="a host does not answer"):
        made.exception(0)
    assert "row 0 is lost" in str(made.exception(0))
    # The answer lies on a host that the job does not know.
    with pytest.raises(lockstep.CallError, match="gpus-7"):
        made.exception(0)
