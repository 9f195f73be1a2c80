"""Jobs of several Lockstep agents over c10d and static: ranks, restarts, one report, new nodes, the exit barrier, and
faults during the rendezvous. Every node is an agent with its own loopback address."""
import json
import re
import signal

import pytest

from harness import BUILD, SCRIPTS, free_port, one_line, read, report_of, until
from nodes import (  # noqa: F401
    QUICK, SHOW, Job, alone, blames_no_worker, dynamic, ends, held, job, listening, ranks, says, shown, starts, states,
    static, tells)
from tcp_store import Client


def causes(*files):
    """The root cause as the nodes' --report files have it."""
    reports = [json.loads(read(file)) for file in files]
    assert {report["outcome"] for report in reports} == {"failed"}
    return [report["root_cause"] for report in reports], reports


# --- ranks (rows 50, 54, 55) ---


@pytest.mark.parametrize("counts", [(1, 3), (3, 1)])
def test_unequal_nodes(job, counts):
    first, second = (job.node(number, nproc=count) for number, count in enumerate(counts))
    ends(first, second)
    assert sorted(ranks(first)) == list(range(counts[0]))
    assert sorted(ranks(second)) == list(range(counts[0], 4))
    for run, group_rank in ((first, "0"), (second, "1")):
        assert tells(run, "WORLD_SIZE") == {"4"} and tells(run, "GROUP_WORLD_SIZE") == {"2"}
        assert tells(run, "GROUP_RANK") == {group_rank}
        assert tells(run, "TORCHELASTIC_USE_AGENT_STORE") == {"True"}
        assert tells(run, "MASTER_ADDR") == {"127.0.0.1" if job.backend == "static" else "127.0.0.2"}
    assert tells(first, "MASTER_PORT") == tells(second, "MASTER_PORT")
    if job.backend == "static":
        assert tells(first, "MASTER_PORT") == {str(job.port)}


def test_what_holds_for_all_nodes_is_said_once(job):
    """Not by each node, and not again after a restart. The option behind the script may be the script's own."""
    script = job.lockstep.folder / "t.py"
    script.write_text("import os, sys\n"
                      "sys.exit(os.environ['RANK'] == '0' and os.environ['TORCHELASTIC_RESTART_COUNT'] == '0')\n")
    runs = [job.script(number, script, "--hostfile", "x", args=("--max-restarts", 1), nproc=2,
                       env={"OMP_NUM_THREADS": None}) for number in range(2)]
    said = [run.wait(60) for run in runs]
    assert [each.rc for each in said] == [0, 0], said
    for line in ("OMP_NUM_THREADS is not set", f"--hostfile goes to {script}"):
        assert sum(each.err.count(line) for each in said) == 1, said


def test_roles(job):
    roles = ("trainer", "reader", "trainer")
    runs = [job.node(number, "--role", role, nnodes="3", nproc=number + 1) for number, role in enumerate(roles)]
    ends(*runs)
    found = [[(worker["ROLE_NAME"], int(worker["ROLE_RANK"]), int(worker["ROLE_WORLD_SIZE"])) for worker in
              sorted(shown(run), key=lambda worker: int(worker["RANK"]))] for run in runs]
    assert found == [[("trainer", 0, 4)], [("reader", 0, 2), ("reader", 1, 2)],
                     [("trainer", rank, 4) for rank in (1, 2, 3)]]


@pytest.mark.parametrize("order, first", [("host", 1), ("node-rank", 2), ("address", 0)])
def test_rank_order(dynamic, order, first):
    given = {0: 2, 1: 1, 2: 0}
    def node(number):
        return dynamic.node(number, "--rank-order", order, "--node-rank", given[number], nnodes="3")
    host = node(1)
    listening(dynamic.port)
    runs = {1: host, 0: node(0), 2: node(2)}
    ends(*runs.values())
    assert [number for number, run in runs.items() if ranks(run) == [0]] == [first]
    if order == "node-rank":
        assert [ranks(runs[number]) for number in range(3)] == [[2], [1], [0]]


# Row 64: who binds first, hosts; the address still decides about the ranks.
def test_whoever_comes_first_hosts(dynamic):
    first = dynamic.node(1)
    listening(dynamic.port)
    second = dynamic.node(0)
    ends(first, second)
    assert ranks(first) == [1] and ranks(second) == [0]
    assert tells(first, "MASTER_ADDR") == {"127.0.0.2"}


# PyTorch 1.13 of Debian 12: a collective over two nodes, before and after a restart.
def test_all_reduce_of_1_13_workers(job):
    runs = [job.script(number, SCRIPTS / "all_reduce.py", "--fail-first", nproc=number + 1,
                       args=("-t", 1, "--max-restarts", 1))
            for number in (0, 1)]
    ended = ends(*runs, timeout=60)
    found = sorted(re.findall(r"torch (1\.13)\S* attempt (\d) rank (\d) sum (\S+)", ended[0].out + ended[1].out))
    assert found == [("1.13", attempt, rank, "6.0") for attempt in "01" for rank in "012"]


# --- failures and restarts (rows 58, 59) ---


def take_turns(job, max_restarts):
    """Two nodes: the second one's worker fails in attempt 0, the first one's in attempt 1, each when both
    have started."""
    there = [[job.lockstep.folder / f"attempt{attempt}.node{number}" for number in (0, 1)] for attempt in (0, 1)]
    def actions(number):
        own = [f"mark={there[attempt][number]}" for attempt in (0, 1)]
        other = [f"wait={there[attempt][1 - number]}" for attempt in (0, 1)]
        return (SHOW, "%0", own[0], other[0], "pause" if number == 0 else "exit=5",
                "%1", own[1], other[1], "pause" if number == 1 else "exit=3")
    return [job.node(number, "--max-restarts", max_restarts, actions=actions(number)) for number in (0, 1)]


# A failure anywhere restarts all and is counted once for all.
def test_one_restart_counter(job):
    first, second = take_turns(job, 2)
    ended = ends(first, second)
    for run in (first, second):
        assert [worker["TORCHELASTIC_RESTART_COUNT"] for worker in shown(run)] == ["0", "1", "2"]
        assert [worker["GROUP_RANK"] for worker in shown(run)] == [str(int(run is second))] * 3
        assert len(tells(run, "MASTER_PORT")) == 1
    assert "rank 1 on" in ended[0].err and "(exitcode: 5)" in ended[0].err
    assert "rank 0 on" in ended[1].err and "(exitcode: 3)" in ended[1].err
    assert max(end.seconds for end in ended) < 12


# torchrun would allow one restart for each node.
def test_restarts_of_all_nodes_share_one_limit(job):
    first, second = take_turns(job, 1)
    ends(first, second, rc=1)
    for run in (first, second):
        assert [worker["TORCHELASTIC_RESTART_COUNT"] for worker in shown(run)] == ["0", "1"]


# All nodes wait at the same time: the job waits once.
def test_a_restart_is_held_back_on_all_nodes_together(job):
    runs = [job.node(number, "--max-restarts", 3, actions=(SHOW, "@0", "exit=3", "@*", "pause")) for number in (0, 1)]
    for ended in ends(*runs, rc=1):
        assert re.findall(r"waiting (\S+) s before the restart", ended.err) == ["0.5", "1"], str(ended)
        assert 1.5 <= ended.seconds < 10


# The lowest --max-restarts counts, and every node knows it.
def test_restarts_left_are_the_same_on_every_node(job):
    runs = [job.node(number, "--max-restarts", most, actions=(SHOW, "@0", "exit=3", "@*", "pause"))
            for number, most in ((0, 3), (1, 1))]
    for ended in ends(*runs, rc=1):
        assert "restarting all workers of this node (restart 1 of 1)" in ended.err, str(ended)
        assert ended.err.count("restarting") == 1, str(ended)
        assert re.search(r"\(restart \d of \d\): rank 0 on \S+ failed \(exitcode: 3\)$", ended.err, re.M), str(ended)
        assert "the job failed after " in ended.err and ", with 1 restart; logs: " in ended.err, str(ended)


def test_the_last_failure_is_told_to_all_at_once(job):
    files = [job.lockstep.folder / f"report.{number}" for number in range(3)]
    quiet = job.lockstep.facts
    runs = [job.node(number, "--report", files[number], nnodes="3",
                     actions=(f"touch={quiet}", "@1", f"wait={quiet}/0", f"wait={quiet}/2", "err=out of luck\\n",
                              "exit=3", "@*", "pause")) for number in range(3)]
    ended = ends(*runs, rc=1)
    assert max(end.seconds for end in ended) < 3
    reports = [report_of(end.err) for end in ended]
    assert all(reports) and reports[0] == reports[1] == reports[2], "\n".join(map(str, ended))
    text = "\n".join(reports[0])
    at = text.index("Root Cause")
    assert "exitcode  : 3" in text[at:] and "rank      : 1 (" in text[at:] and "out of luck" in text[at:]
    assert "2 workers were stopped: ranks 0, 2 on " in text[:at]
    roots, written = causes(*files)
    assert roots[0] == roots[1] == roots[2]
    assert (roots[0]["rank"], roots[0]["exit_code"], roots[0]["stderr_tail"]) == (1, 3, ["out of luck"])
    assert [[failure["rank"] for failure in report["failures"]] for report in written] == [[1]] * 3
    assert [[failure["rank"] for failure in report["stopped"]] for report in written] == [[0, 2]] * 3


# The node whose workers have ended well waits in the barrier, not for 300 s.
def test_a_failure_reaches_a_node_that_is_done(job):
    first = job.node(0)
    second = job.node(1, actions=(SHOW, f"wait={job.lockstep.folder}/go", "exit=4"))
    until(lambda: shown(first) and not children_of(first), what="the first node's worker has ended")
    starts(second, 1)
    (job.lockstep.folder / "go").touch()
    ended = ends(first, second, rc=1)
    for end in ended:
        assert "exitcode  : 4" in "\n".join(report_of(end.err)), str(end)
    assert ended[0].seconds < 2.5, "reports don't queue behind the barrier"


def children_of(run):
    return [pid for pid, comm in run.living().items() if comm == "test_worker"]


@pytest.mark.parametrize("whose", [0, 1])
def test_exit_code_of_the_root_cause_on_every_node(job, whose):
    runs = [job.node(number, "--exit-code", "worker", actions=(f"touch={job.lockstep.facts}", f"@{whose}",
            f"wait={job.lockstep.facts}/{1 - whose}", "exit=42", "@*", "pause")) for number in (0, 1)]
    ends(*runs, rc=42)


# U+009B is CSI for a terminal, as ESC [ is.
def test_what_another_node_says_steers_no_terminal(static):
    run = static.node(0, actions=(SHOW, "pause"))
    listening(static.port)
    peer = Client(("127.0.0.1", static.port))
    peer.set(f"/{static.id}/torchelastic/role_info/1",
             json.dumps({"role": "default", "rank": 1, "local_world_size": 1, "lockstep_restarts": 0}))
    peer.add("init/", 1)
    starts(run, 1)
    hostile = "\u009b2J\x1b[2J caf\u00e9"
    failure = {"rank": 1, "host": hostile, "exit_code": 3, "notes": [hostile], "stderr_tail": [hostile]}
    worse = {**failure, "rank": 2, "error_file": hostile, "message": hostile}
    board = f"/{static.id}/lockstep.0/lockstep/"
    peer.set(board + "report/1", json.dumps({"host": hostile, "report": json.dumps([failure, worse])}))
    peer.set(board + "failure", json.dumps({"node": 1, "line": hostile, "final": True, "restarts": 0}))
    says(run, "ending the workers")
    peer.socket.close()
    (ended,) = ends(run, rc=1)
    assert "\x9b" not in ended.err and "\x1b" not in ended.err, ascii(ended.err)
    assert ended.err.count("\\xc2\\x9b2J\\x1b[2J caf\u00e9") == 7, ascii(ended.err)


# --- signals ---


# A job that needs both nodes is over when one of them is told to stop.
@pytest.mark.parametrize("told", [0, 1])
def test_a_signal_to_one_agent_of_a_fixed_job_ends_it(job, told):
    runs = held(job, 2, settings=QUICK, own=alone)
    runs[told].signal(signal.SIGTERM)
    words = "was stopped" if job.backend == "lockstep" else "has left: it was told to stop"
    blames_no_worker(job, {1 - told: runs[1 - told]}, words)
    (ended,) = ends(runs[told], rc=1)
    assert ended.seconds < 10, str(ended)
    report = json.loads(read(job.lockstep.folder / f"report.{told}"))
    assert (report["outcome"], report["root_cause"]) == ("interrupted", None), report
    assert report["reason"].endswith("was ended by SIGTERM"), report


# ... although its workers take their time.
@pytest.mark.parametrize("told", [0, 1])
def test_a_node_that_is_told_to_stop_tells_at_once(job, told):
    runs = held(job, 2, "--shutdown-timeout", 60, first=(f"@{told}", "ignore=TERM", "@*"))
    runs[told].signal(signal.SIGTERM)
    (other,) = ends(runs[1 - told], rc=1, timeout=5)
    words = {"c10d": f"127.0.0.{told + 2} has left: it was told to stop", "lockstep": "was stopped",
             "static": f"node {told} (vm) has left: it was told to stop"}[job.backend]
    assert words in re.sub(r"\(.*?\)", "(vm)", other.err), str(other)
    assert children_of(runs[told])
    runs[told].signal_again(signal.SIGTERM)
    ends(runs[told], rc=1)


def test_a_signal_to_one_agent_of_an_elastic_job_leaves_the_others(dynamic):
    runs = held(dynamic, 3, nnodes="2:3", settings=QUICK + ",last_call_timeout=1",
                actions=("%0", f"wait={dynamic.lockstep.folder}/go"))
    runs[2].signal(signal.SIGTERM)
    ends(runs[2], rc=1)
    starts(runs[0], 2), starts(runs[1], 2)
    (dynamic.lockstep.folder / "go").touch()
    ends(*runs[:2])
    assert [worker["WORLD_SIZE"] for worker in shown(runs[0])] == ["3", "2"]
    assert {worker["TORCHELASTIC_RESTART_COUNT"] for worker in shown(runs[0])} == {"0"}


def test_a_signal_to_a_spare(dynamic):
    go = dynamic.lockstep.folder / "go"
    runs = held(dynamic, 2, actions=(f"wait={go}",))
    spare = dynamic.node(2)
    until(lambda: states(dynamic)["redundancy_list"], what="the spare is on its list")
    spare.signal(signal.SIGTERM)
    ends(spare, rc=143, timeout=5)
    assert states(dynamic)["redundancy_list"] == []
    go.touch()
    ends(*runs)


# Row 37.
def test_a_signal_while_waiting_for_others(job):
    run = job.node(0)
    listening(job.port)
    run.signal(signal.SIGTERM)
    ended = run.wait()
    assert ended.rc == 143, str(ended)
    run.none_left()


# --- nodes that come and go (rows 56, 57, 60) ---


def test_one_node_starts_after_the_last_call_and_a_second_joins(dynamic):
    go = dynamic.lockstep.folder / "go"
    options = dict(nnodes="1:2", settings="last_call_timeout=1", actions=(SHOW, f"wait={go}"))
    first = dynamic.node(1, **options)
    (alone,) = starts(first, 1)
    assert alone["WORLD_SIZE"] == "1"
    second = dynamic.node(0, **options)
    again = starts(first, 2)[1]
    (joined,) = starts(second, 1)
    go.touch()
    ended = ends(first, second)
    assert again["WORLD_SIZE"] == joined["WORLD_SIZE"] == "2"
    # The old node stays rank 0, although its address is greater.
    assert (again["RANK"], joined["RANK"]) == ("0", "1")
    assert again["TORCHELASTIC_RESTART_COUNT"] == joined["TORCHELASTIC_RESTART_COUNT"] == "0"
    assert "round 1: node 0 of 2" in ended[0].err and "waits to join" in ended[0].err


def test_a_spare_ends_well(dynamic):
    go = dynamic.lockstep.folder / "go"
    runs = held(dynamic, 2, actions=(f"wait={go}",))
    spare = dynamic.node(2)
    until(lambda: states(dynamic)["redundancy_list"], what="the spare is on its list")
    go.touch()
    ended = ends(*runs, spare)
    assert shown(spare) == [] and "spare" in ended[2].err


# --- the exit barrier (row 74) ---


def test_heartbeats_go_on_in_the_exit_barrier(dynamic):
    go = dynamic.lockstep.folder / "go"
    first = dynamic.node(0, settings=QUICK)
    second = dynamic.node(1, settings=QUICK, actions=(SHOW, f"wait={go}"))
    starts(first, 1), starts(second, 1)
    until(lambda: not children_of(first), what="the first node is done")
    def beat():
        beats = {node[0]: time for node, time in states(dynamic)["last_heartbeats"]}
        return beats.get("127.0.0.2", 0)
    before = beat()
    until(lambda: beat() > before + 2_500_000, 15, "heartbeats for longer than a silent node may live")
    go.touch()
    ends(first, second)
    assert len(shown(second)) == 1


def test_the_exit_barrier_can_be_bounded(job):
    go = job.lockstep.folder / "go"
    host = job.node(0, actions=(SHOW, f"wait={go}"), settings=QUICK)
    listening(job.port)
    guest = job.node(1, "--exit-barrier-timeout", 1, settings=QUICK)
    ended = guest.wait(10)
    assert ended.rc == 0 and "came to the exit barrier in time" in ended.err and 1 <= ended.seconds < 10, str(ended)
    go.touch()
    ends(host)


def test_a_host_out_of_patience_says_that_it_stays(lockstep):
    job, go = Job(lockstep), lockstep.folder / "go"
    host = job.node(0, "--exit-barrier-timeout", 1)
    listening(job.port)
    guest = job.node(1, actions=(SHOW, f"wait={go}"))
    says(host, "this node hosts the store and stays until the other nodes have left: ", deadline=15)
    go.touch()
    ends(host, guest)


# --- looking for one another (rows 51, 61, 62) ---


def test_nobody_comes(job):
    key = "timeout" if job.backend == "static" else "join_timeout"
    ended = job.node(0, settings=f"{key}=1").wait(10)
    one_line(ended, 1, "timed out", "1/2 clients joined" if job.backend == "static" else "1 of at least 2 nodes")
    assert 1 <= ended.seconds < 10 and shown(job.lockstep.runs[0]) == []


# The others hear why, and are not waited for.
def test_a_node_of_a_static_job_is_missing(static):
    other = static.node(1, nnodes="3", settings="timeout=60")
    ended = static.node(0, nnodes="3", settings="timeout=2").wait(10)
    one_line(ended, 1, "timed out after 2 seconds", "2/3 clients joined")
    assert ended.seconds < 10
    (ended,) = ends(other, rc=1, timeout=5)
    assert "has given up: timed out after 2 seconds" in ended.err and "2/3 clients joined" in ended.err, str(ended)


# It came, and was gone before it had said how many workers it has.
def test_a_node_of_a_static_job_that_came_and_went(static):
    other = static.node(1, nnodes="3", settings="timeout=60")
    host = static.node(0, nnodes="3", settings="timeout=2")
    listening(static.port)
    gone = Client(("127.0.0.1", static.port))
    gone.add("init/", 1)
    ended = host.wait(10)
    one_line(ended, 1, "agree on ranks in round 0")
    assert ended.seconds < 10
    (ended,) = ends(other, rc=1, timeout=5)
    assert "has given up: agree on ranks" in ended.err, str(ended)
    gone.socket.close()


def test_a_wrong_endpoint(dynamic):
    port = free_port()
    ended = dynamic.node(1, "--rdzv-endpoint", f"127.0.0.9:{port}", host=False, settings="read_timeout=1").wait(10)
    one_line(ended, 1, f"127.0.0.9:{port}", "refused")
    assert ended.seconds < 10


def test_a_wrong_master(static):
    ended = static.node(1, settings="timeout=1").wait(10)
    one_line(ended, 1, f"127.0.0.1:{static.port}", "refused")


def test_an_endpoint_that_does_not_resolve(dynamic):
    ended = dynamic.node(1, "--rdzv-endpoint", "no-such-host.invalid:29400", settings="read_timeout=1").wait(10)
    one_line(ended, 1, "no-such-host.invalid")


def test_two_nodes_of_one_rank(static):
    static.node(0, actions=(SHOW, "pause"))
    listening(static.port)
    ended = static.lockstep.start_worker(*static.command(0), actions=(SHOW,)).wait(10)
    one_line(ended, 1, str(static.port), "held by pid")
    static.lockstep.runs[0].signal(signal.SIGTERM)
    static.lockstep.runs[0].wait()


# Row 61: over a store that outlives the job.
def test_a_run_id_is_spent(dynamic):
    store = dynamic.lockstep.start("--port", dynamic.port, program=(BUILD / "lockstep", "store"))
    listening(dynamic.port)
    ends(*[dynamic.node(number, host=False) for number in (0, 1)])
    ended = dynamic.node(0, host=False).wait(10)
    one_line(ended, 1, "is closed", "choose a new --rdzv-id")
    dynamic.id = "none"  # as nobody has given one
    ends(*[dynamic.node(number, host=False) for number in (0, 1)])
    one_line(dynamic.node(0, host=False).wait(10), 1, "the rendezvous 'none' is closed",
             "give every job its own --rdzv-id")
    store.signal(signal.SIGTERM)
    store.wait()
