"""A user who does not wait: Ctrl-C ends each command on demand within a second or so while a provider is silent, with
the code of the signal and without a word that is not true; what is waited for is said; and what was begun ends as it
should."""
import contextlib
import signal
import threading
import time

import pytest

from cloud_worlds import cloud, laptop, laptops, meter, server, until  # noqa: F401
from harness import one_line
from test_cloud_sweep import WISH, journal, rented_and_killed

AT_ONCE_S = 2.5  # this machine may have much to do; a question that is not ended takes 10 s


@contextlib.contextmanager
def silent(cloud, **place):  # noqa: F811
    """Nobody there says anything, and nothing is done."""
    over, answer_of = threading.Event(), cloud.answer_of

    def no_answer(face, request, record):
        face.read(request)
        if any(str(request.place().get(name)) != value for name, value in place.items()):
            return answer_of(face, request, record)
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


# What is waited for is said.

@pytest.mark.parametrize("words, place, said", [
    (("up", "other", *WISH, "--print"), {"action": "DescribeInstances"}, "waiting for aws: was something of ours left"),
    (("up", "gpus", *WISH), {"action": "DescribeInstances"}, "waiting for aws: was something of ours left"),
    (("cost",), {"face": "lambda"}, "waiting for lambda: was something of ours left"),
    (("up", "other", "--gpus", "L4:1", "-y"), {"face": "runpod"}, "waiting for what runpod can offer"),
    (("offers", "L4:1"), {}, "waiting for what aws, gcp, lambda, runpod can offer")], ids=str)
def test_for_whom_is_waited(cloud, laptop, words, place, said):  # noqa: F811
    if "gpus" in words or "cost" in words:
        rented_and_killed(laptop)
    with silent(cloud, **place):
        run = laptop.start(*words)
        until(lambda: said in run.err() or run.process.poll() is not None, 20, said)
        took, ended = ctrl_c(run)
    assert took < AT_ONCE_S and ended.rc == 130 and said in ended.err, (took, ended)
    assert ended.error_lines[-1].endswith("stopped by the user") or "cost" in words, ended
    assert "not known" not in ended.err and "taking it up" not in ended.err, ended


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
    ("offers", "L4:1"), ("offers", "L4:1", "--json"), ("cost",), ("cluster", "list"), ("cluster", "show", "gpus"),
    ("down", "gpus"), ("down", "--orphans"), ("up", "gpus", *WISH), ("up", "other", *WISH),
    ("up", "other", *WISH, "--print")], ids=" ".join)
def test_ctrl_c_while_all_providers_are_silent(cloud, laptop, words):  # noqa: F811
    rented_and_killed(laptop)
    with silent(cloud):
        before = asked(cloud)
        run = laptop.start(*words)
        until(lambda: asked(cloud) > before or run.process.poll() is not None, 20, "somebody is asked")
        took, ended = ctrl_c(run)
    assert took < AT_ONCE_S and ended.rc in (130, -2), (took, ended)
    assert len(meter(cloud)["live"]) == 1, "nothing was rented, and nothing ended"
