"""Signals to the launcher: the signals that workers get, the end of the launcher, and its exit code."""
import os
import pty
import random
import select
import signal
import time

import pytest

from harness import BINARY, WORKER, alive, status_of, until

ISOLATIONS = ["guardian", "none", "pidns"]
# A second TERM or INT counts when it comes 300 ms after the first.
APART = 0.35


def paused(lockstep, *args, count=2, before=(), after=("await",), **options):
    """Workers that record their signals; ready when this returns."""
    run = lockstep.start_worker("--nproc-per-node", count, *args, actions=[
        f"record={lockstep.facts}", *before, f"touch={lockstep.facts}", *after], **options)
    pids = lockstep.ready(count)
    return run, pids


@pytest.mark.parametrize("isolation", ISOLATIONS)
@pytest.mark.parametrize("name", ["TERM", "INT", "HUP", "QUIT"])
def test_listed_signals_reach_the_workers_and_end_the_job(lockstep, name, isolation):
    run, _ = paused(lockstep, "--isolation", isolation)
    run.signal(getattr(signal, f"SIG{name}"))
    ended = run.wait()
    assert ended.rc == 1, str(ended)
    assert lockstep.signals(0) == lockstep.signals(1) == [name]
    run.none_left()


def test_workers_die_of_the_signal_by_default(lockstep):
    run = lockstep.start_worker("--nproc-per-node", 2, actions=[f"touch={lockstep.facts}", "pause"])
    lockstep.ready(2)
    run.signal(signal.SIGTERM)
    ended = run.wait()
    assert ended.rc == 1
    assert "SIGTERM" in ended.err or "15" in ended.err


@pytest.mark.parametrize("number", [signal.SIGUSR1, signal.SIGUSR2])
@pytest.mark.parametrize("isolation", ISOLATIONS)
def test_user_signals_are_passed_on_and_end_nothing(lockstep, number, isolation):
    name = number.name[3:]
    go = lockstep.folder / "go"
    run, _ = paused(lockstep, "--isolation", isolation, after=["await", f"wait={go}", "exit=0"])
    run.signal(number)
    until(lambda: lockstep.signals(0) == lockstep.signals(1) == [name])
    assert run.process.poll() is None
    go.touch()
    assert run.wait().rc == 0


def test_a_user_signal_that_was_listed_ends_the_job(lockstep):
    run, _ = paused(lockstep, "--signals-to-handle", "SIGTERM,SIGUSR1")
    run.signal(signal.SIGUSR1)
    assert run.wait().rc == 1
    assert lockstep.signals(0) == lockstep.signals(1) == ["USR1"]


def test_the_other_user_signal_is_still_only_passed_on(lockstep):
    go = lockstep.folder / "go"
    run, _ = paused(lockstep, "--signals-to-handle", "SIGTERM,SIGUSR1", after=["await", f"wait={go}", "exit=0"])
    run.signal(signal.SIGUSR2)
    until(lambda: lockstep.signals(0) == ["USR2"])
    go.touch()
    assert run.wait().rc == 0


@pytest.mark.parametrize("listed", ["SIGTERM,SIGNONE", "SIGTERM,SIGKILL", "SIGTERM,SIGSTOP"])
def test_a_signal_that_cannot_be_handled_is_warned_about(lockstep, listed):
    ended = lockstep.run_worker("--signals-to-handle", listed, actions=["exit=0"])
    assert ended.rc == 0, str(ended)
    assert listed.split(",")[1] in ended.err


@pytest.mark.parametrize("isolation", ISOLATIONS)
def test_a_second_signal_kills_at_once(lockstep, isolation):
    run, _ = paused(lockstep, "--isolation", isolation, "--shutdown-timeout", 60, after=["pause"])
    run.signal(signal.SIGTERM)
    until(lambda: lockstep.signals(0) == lockstep.signals(1) == ["TERM"])
    time.sleep(APART)
    assert run.process.poll() is None
    again = time.monotonic()
    run.signal(signal.SIGTERM)
    assert run.wait().rc == 1
    assert time.monotonic() - again < 15
    run.none_left()


@pytest.mark.parametrize("first, second", [("TERM", "TERM"), ("INT", "INT"), ("INT", "TERM")])
@pytest.mark.parametrize("isolation", ISOLATIONS)
def test_two_that_come_together_are_meant_once(lockstep, isolation, first, second):
    """GNU timeout, or a wrapper that passes Ctrl-C on, sends them so. The workers still have their time to save."""
    run, _ = paused(lockstep, "--isolation", isolation, count=1,
                    after=["await", "sleep=500", f"mark={lockstep.folder}/saved"])
    run.signal(getattr(signal, f"SIG{first}"))
    until(lambda: "received SIG" in run.err())
    run.signal(getattr(signal, f"SIG{second}"))
    ended = run.wait(10)
    assert ended.rc == 1
    assert (lockstep.folder / "saved").exists(), str(ended)
    assert lockstep.signals(0) == [first]


@pytest.mark.parametrize("isolation", ISOLATIONS)
def test_a_third_one_kills_whenever_it_comes(lockstep, isolation):
    run, _ = paused(lockstep, "--isolation", isolation, "--shutdown-timeout", 60, after=["pause"])
    sent = time.monotonic()
    while run.process.poll() is None and time.monotonic() - sent < 0.28:
        run.signal(signal.SIGTERM)
        time.sleep(0.02)
    assert run.wait().rc == 1
    assert time.monotonic() - sent < 15
    run.none_left()


@pytest.mark.parametrize("isolation", ISOLATIONS)
def test_timeout_leaves_the_workers_their_time(lockstep, isolation):
    """GNU timeout signals its child and then the whole process group."""
    for number in range(5):
        folder = lockstep.folder / str(number)
        folder.mkdir()
        run = lockstep.start("--isolation", isolation, "--no-python", WORKER, f"record={folder}", f"touch={folder}",
                             "await", "sleep=400", f"mark={folder}/saved", program=("timeout", "0.5", BINARY, "run"))
        ended = run.wait()
        assert ended.rc == 124, str(ended)
        assert not (folder / "0").exists() or (folder / "saved").exists(), str(ended)
        run.none_left()


def test_interrupt_then_term_kills_at_once_too(lockstep):
    run, _ = paused(lockstep, "--shutdown-timeout", 60, after=["pause"])
    run.signal(signal.SIGINT)
    until(lambda: lockstep.signals(1) == ["INT"])
    time.sleep(APART)
    run.signal(signal.SIGTERM)
    ended = run.wait()
    assert ended.rc == 1
    assert ended.err.count("received SIGINT, shutting down workers; a second signal kills the workers at once\n") == 1


def test_user_signals_during_the_shutdown_do_not_cut_it_short(lockstep):
    run, _ = paused(lockstep, after=["await", "sleep=400", f"mark={lockstep.folder}/saved", "exit=0"], count=1)
    run.signal(signal.SIGTERM)
    until(lambda: lockstep.signals(0) == ["TERM"])
    run.signal(signal.SIGUSR1)
    assert run.wait().rc == 1
    assert (lockstep.folder / "saved").exists()


@pytest.mark.parametrize("timeout, least, most", [(0, 0, 10), (1, 0.9, 15)])
def test_shutdown_timeout(lockstep, timeout, least, most):
    run, _ = paused(lockstep, "--shutdown-timeout", timeout, after=["pause"])
    sent = time.monotonic()
    run.signal(signal.SIGTERM)
    assert run.wait(10).rc == 1
    assert least <= time.monotonic() - sent < most
    run.none_left()


def test_a_worker_that_ignores_the_signal_is_named(lockstep):
    run, pids = paused(lockstep, "--shutdown-timeout", 7, before=["ignore=TERM"], after=["pause"], count=1)
    run.signal(signal.SIGTERM)
    ended = run.wait(12)
    assert ended.err.count(f"waiting for rank 0 (pid {pids[0]}) to end; SIGKILL in 2 s") == 1, str(ended)


def test_shutdown_timeout_holds_for_a_restart(lockstep):
    started = time.monotonic()
    ended = lockstep.run_worker("--nproc-per-node", 2, "--shutdown-timeout", 1, "--max-restarts", 1, actions=[
        "%0", "@1", "ignore=TERM", f"touch={lockstep.facts}", "pause", "@0", f"wait={lockstep.facts / '1'}", "exit=1"])
    assert ended.rc == 0, str(ended)
    assert 0.9 < time.monotonic() - started < 20


def test_shutdown_timeout_from_the_environment(lockstep):
    run, _ = paused(lockstep, after=["pause"], env={"TORCH_ELASTIC_SHUTDOWN_TIMEOUT": "1"})
    run.signal(signal.SIGTERM)
    assert run.wait(6).rc == 1


def test_nohup_is_honoured(lockstep):
    run, pids = paused(lockstep, count=1, preexec_fn=lambda: signal.signal(signal.SIGHUP, signal.SIG_IGN))
    run.signal(signal.SIGHUP)
    run.signal(signal.SIGUSR1)  # arrives after it: when the worker has it, the hang-up was dealt with
    until(lambda: "USR1" in lockstep.signals(0))
    assert lockstep.signals(0) == ["USR1"]
    assert run.wait().rc == 0


@pytest.mark.parametrize("isolation", ISOLATIONS)
def test_a_stopped_worker_is_continued_so_that_it_can_end(lockstep, isolation):
    run = lockstep.start_worker("--isolation", isolation, "--shutdown-timeout", 20, actions=[
        f"record={lockstep.facts}", f"touch={lockstep.facts}", "stop", "await", f"mark={lockstep.folder}/saved"])
    lockstep.ready(1)
    (worker,) = [pid for pid, comm in run.living().items() if comm == "test_worker"]
    until(lambda: status_of(worker)["State"].startswith("T"), what="stopped")
    sent = time.monotonic()
    run.signal(signal.SIGTERM)
    assert run.wait(10).rc == 1
    assert time.monotonic() - sent < 15
    assert (lockstep.folder / "saved").exists()
    assert sorted(lockstep.signals(0, continued=True)) == ["CONT", "TERM"]


def test_the_whole_group_of_a_worker_gets_the_signal(lockstep):
    run = lockstep.start_worker(actions=["children=3", f"record={lockstep.facts}", f"touch={lockstep.facts}", "await"])
    lockstep.ready(1)
    run.signal(signal.SIGTERM)
    run.wait()
    run.none_left()


def test_grandchild_dies_with_a_killed_worker(lockstep):
    run = lockstep.start_worker("--nproc-per-node", 2, "--shutdown-timeout", 0, actions=[
        "ignore=TERM", "loaders=2", f"touch={lockstep.facts}", "@0", f"wait={lockstep.facts / '1'}", "exit=1", "@1",
        "pause"])
    assert run.wait().rc == 1
    run.none_left()


@pytest.mark.parametrize("isolation", ["auto", "none"])
def test_a_signal_before_or_while_starting_ends_cleanly(lockstep, isolation):
    """At any moment of the start: a quick end, the right code, no process left."""
    chance = random.Random(7)
    for _ in range(15):
        run = lockstep.start_worker("--isolation", isolation, "--nproc-per-node", 2, "--log-dir", lockstep.logs,
                                    actions=["pause"])
        end = time.monotonic() + chance.uniform(0, 0.02)
        while time.monotonic() < end:
            pass
        sent = time.monotonic()
        run.signal(signal.SIGTERM)
        ended = run.wait()
        assert time.monotonic() - sent < 10, str(ended)
        assert ended.rc in (1, 143, -15), str(ended)
        run.none_left()


def test_a_signal_that_is_pending_at_the_start(lockstep):
    def pending():
        signal.pthread_sigmask(signal.SIG_BLOCK, {signal.SIGTERM})
        os.kill(os.getpid(), signal.SIGTERM)
    run = lockstep.start_worker(actions=["pause"], preexec_fn=pending)
    ended = run.wait()
    assert ended.rc in (1, 143, -15), str(ended)
    run.none_left()


@pytest.mark.parametrize("isolation", ["auto", "guardian", "none"])
def test_control_c_in_a_terminal_means_it_once(lockstep, isolation):
    """However many of ours the terminal signals: workers get one INT, and their time to save."""
    leader, follower = pty.openpty()

    def own_terminal():
        import fcntl
        import termios
        os.setsid()
        fcntl.ioctl(follower, termios.TIOCSCTTY, 0)

    try:
        run, _ = paused(lockstep, "--isolation", isolation, count=1, stdin=follower, preexec_fn=own_terminal,
                        process_group=None, after=["await", "sleep=300", f"mark={lockstep.folder}/saved"])
        os.write(leader, b"\x03")
        assert run.wait(10).rc == 1
        assert lockstep.signals(0) == ["INT"]
        assert (lockstep.folder / "saved").exists()
    finally:
        os.close(leader)
        os.close(follower)


def test_a_signal_to_every_process_of_the_job_means_it_once(lockstep):
    """As a scheduler does: guardian and agent each get it."""
    run, _ = paused(lockstep, "--isolation", "guardian", count=1,
                    after=["await", "sleep=300", f"mark={lockstep.folder}/saved"])
    agent = run.agent()
    for pid in (run.pid, agent):
        os.kill(pid, signal.SIGTERM)
    assert run.wait(10).rc == 1
    assert (lockstep.folder / "saved").exists()


def test_a_signal_to_the_agent_alone_works_as_well(lockstep):
    run, _ = paused(lockstep, "--isolation", "guardian")
    os.kill(run.agent(), signal.SIGTERM)
    assert run.wait().rc == 1
    assert lockstep.signals(0) == ["TERM"]


def test_layout_of_processes(lockstep):
    run, pids = paused(lockstep, "--isolation", "guardian")
    agent = run.agent()
    assert run.living()[run.pid] == "lockstep-guard"
    assert status_of(agent)["PPid"] == str(run.pid)
    assert {status_of(pid)["PPid"] for pid in pids.values()} == {str(agent)}
    run.signal(signal.SIGTERM)
    run.wait()


def test_without_isolation_there_is_no_guardian(lockstep):
    run, pids = paused(lockstep, "--isolation", "none")
    assert not set(run.living().values()) & {"lockstep-guard", "lockstep-agent"}
    assert {status_of(pid)["PPid"] for pid in pids.values()} == {str(run.pid)}
    run.signal(signal.SIGTERM)
    run.wait()


def test_a_worker_can_be_killed_from_outside(lockstep):
    run, pids = paused(lockstep)
    os.kill(pids[0], signal.SIGKILL)
    assert run.wait().rc == 1
    assert not alive(pids[1])


@pytest.mark.parametrize("number", [signal.SIGALRM, signal.SIGVTALRM, signal.SIGRTMIN + 1])
def test_a_signal_that_nobody_listed_ends_the_job_as_its_default_would(lockstep, number):
    run, _ = paused(lockstep)
    run.signal(number)
    ended = run.wait()
    assert ended.rc == 128 + number, str(ended)
    assert lockstep.signals(0) == ["TERM"]  # the workers are asked to end, not left behind


def test_a_signal_while_peers_are_stopped_keeps_the_story(lockstep):
    """A crash, a peer that hangs, the scheduler's signal: the report still names the crash."""
    run = lockstep.start_worker("--nproc-per-node", 2, "--report", lockstep.folder / "report", actions=[
        f"record={lockstep.facts}", "@0", "err=it broke\\n", "exit=3", "@1", "ignore=TERM", f"touch={lockstep.facts}",
        "pause"])
    until(lambda: "failed (exitcode: 3)" in run.err())
    run.signal(signal.SIGINT)
    time.sleep(APART)
    run.signal(signal.SIGTERM)
    ended = run.wait(10)
    assert ended.rc == 1
    assert "Root Cause" in ended.err and "it broke" in ended.err and "exitcode  : 3 " in ended.err, str(ended)


def test_repeated_hangups_do_not_move_the_deadline(lockstep):
    run, _ = paused(lockstep, "--shutdown-timeout", 2, before=["ignore=HUP"], after=["pause"], count=1)
    begin = time.monotonic()
    while run.process.poll() is None and time.monotonic() - begin < 8:
        run.signal(signal.SIGHUP)
        time.sleep(0.3)
    assert time.monotonic() - begin < 7
    run.wait()


def test_two_terms_by_two_ways_are_two(lockstep):
    run, _ = paused(lockstep, before=["ignore=TERM"], after=["pause"], count=1)
    run.signal(signal.SIGTERM, run.agent())
    until(lambda: "received SIGTERM" in run.err())
    time.sleep(APART)
    run.signal(signal.SIGTERM)
    assert run.wait().rc == 1


def test_a_console_that_takes_nothing_does_not_outlast_a_second_term(lockstep):
    reader, writer = os.pipe()
    run = lockstep.start_worker("-t", 3, actions=["bytes=3000000", f"touch={lockstep.facts}", "pause"], stdout=writer)
    run.agent()
    until(lambda: not select.select([], [writer], [], 0)[1])  # full: the console takes nothing more
    run.signal(signal.SIGTERM)
    until(lambda: "ended by SIGTERM" in run.err())
    time.sleep(APART)
    run.signal(signal.SIGTERM)
    assert run.wait(5).rc == 1
    os.close(writer)
    os.close(reader)


def test_term_cuts_the_patience_with_leftovers_short(lockstep):
    run = lockstep.start("--no-python", "/bin/sh", "-c",
                         f"(trap '' TERM; sleep 60) & touch {lockstep.facts}/up; exit 0")
    until(lambda: (lockstep.facts / "up").exists())
    begin = time.monotonic()
    while run.process.poll() is None and time.monotonic() - begin < 5:
        run.signal(signal.SIGTERM)
        time.sleep(0.05)
    assert time.monotonic() - begin < 1.5  # not the two seconds that leftovers may have
    run.none_left()


def test_two_terms_before_the_end_do_not_wait_for_a_stalled_console(lockstep):
    reader, writer = os.pipe()
    run = lockstep.start_worker("-t", 3, actions=["ignore=TERM", "bytes=3000000", "pause"], stdout=writer)
    until(lambda: not select.select([], [writer], [], 0)[1])
    run.signal(signal.SIGTERM)
    until(lambda: "received SIGTERM" in run.err())
    time.sleep(APART)
    run.signal(signal.SIGTERM)
    assert run.wait(5).rc == 1
    os.close(writer)
    os.close(reader)
