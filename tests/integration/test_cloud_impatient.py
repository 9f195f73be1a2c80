"""A user who does not wait: while a provider is silent, Ctrl-C ends each on-demand command within about a second,
with the code of the signal and no false statement. The command says what it waits for, and what it had begun ends
properly."""
import contextlib
import itertools
import json
import signal
import socket
import sqlite3
import threading
import time

import pytest

from cloud_worlds import cloud, laptop, laptops, meter, server, until  # noqa: F401
from harness import one_line
from test_cloud_sweep import WISH, journal, rented_and_killed

AT_ONCE_S = 2.5  # this machine may have much to do; a question that is not ended takes 10 s


@contextlib.contextmanager
def silent(cloud, skip=0, **place):  # noqa: F811
    """Makes the provider silent and inactive. skip: the number of requests that are still answered."""
    over, answer_of, came = threading.Event(), cloud.answer_of, itertools.count(1)
    cloud.silenced = 0

    def no_answer(face, request, record):
        face.read(request)
        if any(str(request.place().get(name)) != value for name, value in place.items()) or next(came) <= skip:
            return answer_of(face, request, record)
        cloud.silenced += 1
        over.wait(60)
        return None, None
    cloud.answer_of = no_answer
    try:
        yield
    finally:
        over.set()
        cloud.answer_of = answer_of


def asked(cloud):  # noqa: F811
    return len(cloud.records)


def ctrl_c(run):
    before = time.monotonic()
    run.signal(signal.SIGINT)
    ended = run.wait(30)
    return time.monotonic() - before, ended


# The command says what it waits for.

@pytest.mark.parametrize("words, place, said", [
    (("up", "other", *WISH, "--print"), {"action": "DescribeInstances"}, "waiting for aws: was something of ours left"),
    (("up", "gpus", *WISH), {"action": "DescribeInstances"}, "waiting for aws: was something of ours left"),
    (("cost",), {"face": "lambda"}, "waiting for lambda: was something of ours left"),
    (("up", "other", "--gpus", "L4:1", "-y"), {"face": "runpod"}, "waiting for runpod: what can be rented there"),
    (("offers", "L4:1"), {}, "waiting for aws, gcp, lambda, runpod: what can")], ids=str)
def test_for_whom_is_waited(cloud, laptop, words, place, said):  # noqa: F811
    if "gpus" in words or "cost" in words:
        rented_and_killed(laptop)
    with silent(cloud, **place):
        run = laptop.start(*words)
        until(lambda: said in run.err() or run.process.poll() is not None, 20, said)
        took, ended = ctrl_c(run)
    assert took < AT_ONCE_S and ended.rc == 130 and said in ended.err, (took, ended)
    assert ended.error_lines[-1].endswith("stopped by the user") or "cost" in words, ended
    assert "not known" not in ended.err and "using this rental" not in ended.err, ended


def test_a_sweep_that_is_not_done_is_told(cloud, laptop):  # noqa: F811
    with laptop.held("before", action="DescribeInstances") as hold:
        run = laptop.start("up", "other", *WISH, "--print")
        hold.arrived()
        with journal(laptop) as known, known:
            known.execute("INSERT INTO records (kind, id, open, at_ms, json) VALUES ('rental', 'broken', 1, 1, '{')")
    ended = run.wait(30)
    assert ended.rc == 0 and "lockstep up: nothing was swept: " in ended.err, ended


def test_bad_input_asks_nobody(cloud, laptop):  # noqa: F811
    ended = laptop.run("up", "other", "--gpus", "L4:1", "--provider", "azure", "-y")
    one_line(ended, 2, "azure")
    assert cloud.records == []


# Ctrl-C.

@pytest.mark.parametrize("words", [
    ("offers", "L4:1"), ("offers", "L4:1", "--json"), ("cost",), ("cost", "--json"), ("cluster", "list"),
    ("cluster", "show", "gpus"), ("cloud", "check"), ("cloud", "check", "aws", "--json"), ("down", "gpus"),
    ("down", "--all"), ("down", "--all", "--json"), ("down", "--orphans"), ("up", "gpus", *WISH),
    ("up", "other", *WISH), ("up", "other", *WISH, "--print"),
    ("run", "--on-demand", "L4:1", "--provider", "aws", "-y", "job.py")], ids=" ".join)
def test_ctrl_c_while_all_providers_are_silent(cloud, laptop, words):  # noqa: F811
    rented_and_killed(laptop)
    (laptop.work / "job.py").touch()
    with silent(cloud):
        before = asked(cloud)
        run = laptop.start(*words)
        until(lambda: asked(cloud) > before or run.process.poll() is not None, 20, "somebody is asked")
        took, ended = ctrl_c(run)
    assert took < AT_ONCE_S and ended.rc in (130, -2), (took, ended)
    assert len(meter(cloud)["live"]) == 1, "nothing was rented, and nothing ended"
    assert "not known" not in ended.err and "bad" not in ended.out, ended
    if "--json" in words:
        assert ended.out == "" or json.loads(ended.out) and words[0] == "down", ended


def in_use(laptop, cluster="gpus"):  # noqa: F811
    """All machines of that cluster were met: as if somebody had worked there for days. Their sshd takes connections
    and says nothing."""
    sshd = socket.create_server(("127.0.0.1", 0))
    with journal(laptop) as known, known:
        for ident, text in known.execute("SELECT id, json FROM records WHERE kind = 'rental'").fetchall():
            rental = json.loads(text)
            for attempt in rental["attempts"]:
                for held in attempt["machines"]:
                    held["host_key"] = "ssh-ed25519 AAAA"
            known.execute("UPDATE records SET json = ? WHERE id = ?", (json.dumps(rental), ident))
    state = sqlite3.connect(laptop.home / ".local/state/lockstep/state.db", timeout=10)
    with contextlib.closing(state) as known, known:
        known.execute("INSERT INTO nodes VALUES (?, 0, '127.0.0.1', NULL, ?, '', '', NULL)",
                      (cluster, sshd.getsockname()[1]))
    return sshd


def test_ctrl_c_in_up_of_what_is_in_use_ends_nothing(cloud, laptop):  # noqa: F811
    """The command looks once more after the sweep: machines with a job stay."""
    rented_and_killed(laptop)
    sshd = in_use(laptop)
    with silent(cloud, skip=12, action="DescribeInstances"):
        run = laptop.start("up", "gpus", *WISH)
        until(lambda: cloud.silenced, 30, "it looks at the machines of the rental")
        took, ended = ctrl_c(run)
    sshd.close()
    assert took < AT_ONCE_S and ended.rc == 130, (took, ended)
    assert len(meter(cloud)["live"]) == 1, ended


def test_ctrl_c_in_keep(cloud, laptop):  # noqa: F811
    """While a machine is silent; no sweep follows."""
    rented_and_killed(laptop)
    with in_use(laptop) as sshd, silent(cloud):
        run = laptop.start("keep", "gpus", "2h")
        sshd.settimeout(20)
        with sshd.accept()[0]:
            took, ended = ctrl_c(run)
    assert took < AT_ONCE_S and ended.rc == 130, (took, ended)
    one_line(ended, 130, "SIGINT while asking machines")
    run.none_left(10)


# One document.

@pytest.mark.parametrize("words", [("gpus",), ("--all",), ("--orphans",), ("--all", "--orphans"), ("gpus", "never")],
                         ids=" ".join)
def test_down_prints_one_document(cloud, laptop, words):  # noqa: F811
    rented_and_killed(laptop)
    ended = laptop.down(*words, "--json")
    said = json.loads(ended.out)
    assert ended.rc == (1 if "never" in words else 0) and set(said) == {"rentals", "swept"}, ended
    assert [row["name"] for row in said["rentals"]] == ([] if words == ("--orphans",) else ["gpus"])
    assert set(said["swept"]) == {"ended", "foreign", "closed", "not_ended", "unheard"}
    assert "'never'" in ended.err or "never" not in words, ended


def test_up_prints_one_document_of_what_is_rented_already(cloud, laptop):  # noqa: F811
    rented_and_killed(laptop)
    ended = laptop.run("up", "gpus", *WISH, "--print", "--json", timeout=60)
    assert ended.rc == 0 and json.loads(ended.out)["name"] == "gpus", ended
