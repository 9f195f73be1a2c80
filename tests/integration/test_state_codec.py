"""The rendezvous state and its rules against real PyTorch: we read the state of its agents, they read ours, a state of
1.13 is refused, and in torchrun's mode the state machine acts like torchrun's."""
import base64
import json
import subprocess
import textwrap

import pytest

from harness import BUILD, PYTHON, peer, skip

# Real states, as base64 lines with what is in them.
PRELUDE = textwrap.dedent("""
    import base64, datetime, json, pickle, random, sys
    import torch.distributed.elastic.rendezvous.dynamic_rendezvous as dr
    from torch.distributed.elastic.rendezvous.dynamic_rendezvous import _NodeDesc, _RendezvousState
    UTC, EPOCH = datetime.timezone.utc, datetime.datetime(1970, 1, 1, tzinfo=datetime.timezone.utc)

    def micros(time):
        return None if time is None else (time - EPOCH) // datetime.timedelta(microseconds=1)

    def when(value):
        return None if value is None else EPOCH + datetime.timedelta(microseconds=value)

    def node(desc):
        return [desc.addr, desc.pid, desc.local_id]

    def shown(state):
        made = dict(round=state.round, complete=state.complete, closed=state.closed, deadline=micros(state.deadline),
                    participants=sorted([node(n), rank] for n, rank in state.participants.items()),
                    wait_list=sorted(map(node, state.wait_list)),
                    redundancy_list=sorted(map(node, state.redundancy_list)),
                    last_heartbeats=sorted([node(n), micros(t)] for n, t in state.last_heartbeats.items()),
                    unknown=[name for name in vars(state) if name not in vars(_RendezvousState())
                             and name != "lockstep_completion"])
        if hasattr(state, "lockstep_completion"):
            made["completion"] = list(state.lockstep_completion)
        return made

    def load(text):
        return pickle.loads(base64.b64decode(text.strip(), validate=True))

    def text(state, protocol=None):
        return base64.b64encode(pickle.dumps(state, protocol)).decode()

    def made(seed, size):
        draw = random.Random(seed)
        state = _RendezvousState()
        state.round = draw.choice([0, 1, 255, 256, 70000])
        state.complete, state.closed = draw.random() < .5, draw.random() < .2
        since = datetime.timedelta(microseconds=draw.randrange(10 ** 15))
        now = datetime.datetime(2026, 1, 2, 3, 4, 5, tzinfo=UTC) + since
        if draw.random() < .5:
            state.deadline = now
        for i in range(size):
            addr = draw.choice(["host-%d" % i, "10.0.%d.%d" % (i // 250, i % 250), "h\\u00f6st%d" % i,
                                "x" * 300 + str(i)])
            desc = _NodeDesc(addr, draw.choice([7, 300, 70000, 2 ** 22]), draw.randrange(3))
            where = draw.random()
            if where < .6:
                state.participants[desc] = i
            elif where < .8:
                state.wait_list.add(desc)
            else:
                state.redundancy_list.add(desc)
            again = desc if draw.random() < .5 else _NodeDesc(desc.addr, desc.pid, desc.local_id)
            state.last_heartbeats[again] = now - datetime.timedelta(microseconds=draw.randrange(10 ** 8))
        return state
""")


@pytest.fixture(scope="module", params=["2.6", "2.14"])
def torch(request):
    return [peer(request.param)]


@pytest.fixture(scope="module")
def torch113():
    if subprocess.run([PYTHON, "-c", "import torch"], capture_output=True).returncode != 0:
        skip("no python3-torch")
    return [PYTHON]


def python(argv, code, lines=()):
    """Runs the code with the lines as its standard input. Returns the lines of the output."""
    done = subprocess.run([*argv, "-c", PRELUDE + textwrap.dedent(code)], input="".join(f"{line}\n" for line in lines),
                          capture_output=True, text=True, timeout=240)
    assert done.returncode == 0, done.stderr[-3000:]
    return done.stdout.splitlines()


def tool(mode, lines):
    done = subprocess.run([BUILD / "tests/state_tool", mode], input="".join(f"{line}\n" for line in lines),
                          capture_output=True, text=True, timeout=240)
    assert done.returncode == 0, done.stderr
    answers = done.stdout.splitlines()
    assert len(answers) == len(lines)
    return answers


MAKE = """
    sizes = [0, 1, 2, 3, 5, 30, 300, 1500]
    for seed, (size, protocol) in enumerate([(s, p) for s in sizes for p in [4, 5]]):
        state = made(seed, size)
        print(json.dumps([text(state, protocol), shown(state)]))
"""


def test_states_of_torch_are_read(torch):
    cases = [json.loads(line) for line in python(torch, MAKE)]
    assert len(cases) == 16
    for answer, (_, shown) in zip(tool("decode", [case[0] for case in cases]), cases):
        assert not answer.startswith("error"), answer
        assert sorted_lists(json.loads(answer)) == sorted_lists(shown)


def sorted_lists(state):
    return {name: sorted(value) if isinstance(value, list) and name != "completion" else value
            for name, value in state.items()}


def test_what_we_write_torch_reads_and_writes_on(torch):
    """Through us, through torch (which loads, adds attributes and writes), through us again, to torch."""
    cases = [json.loads(line) for line in python(torch, MAKE)]
    ours = tool("recode", [case[0] for case in cases])
    read = python(torch, """
        for line in sys.stdin:
            state = load(line)
            before = shown(state)
            assert set(vars(_RendezvousState())) <= set(vars(state)), vars(state)
            assert list(vars(state))[:8] == list(vars(_RendezvousState())), list(vars(state))
            assert state.wait_list is not state.redundancy_list
            state.epoch = 17
            state.notes = {"a": (1, None, b"\\0\\xff"), "since": datetime.datetime(2026, 1, 1, tzinfo=UTC)}
            newcomer = _NodeDesc("newcomer", 1, 0)
            state.participants[newcomer], state.last_heartbeats[newcomer] = 0, datetime.datetime.now(UTC)
            print(json.dumps([before, text(state), shown(state)]))
    """, ours)
    answers = [json.loads(line) for line in read]
    for (before, _, _), (_, shown) in zip(answers, cases):
        assert before == shown
    again = python(torch, """
        for line in sys.stdin:
            state = load(line)
            assert state.epoch == 17 and state.notes["a"] == (1, None, b"\\0\\xff")
            assert state.notes["since"].tzinfo is UTC
            print(json.dumps(shown(state)))
    """, tool("recode", [answer[1] for answer in answers]))
    assert [json.loads(line) for line in again] == [answer[2] for answer in answers]


def test_what_we_make_torch_reads(torch):
    node = ["h\u00f6st", 4000000000, 2]
    states = [dict(round=7, complete=True, closed=False, deadline=1767323045678901, participants=[[node, 0]],
                   wait_list=[], redundancy_list=[["a", 1, 0]],
                   last_heartbeats=[[["a", 1, 0], 1767323045000000], [node, 1767323045678901]], completion=[7, 1]),
              dict(round=0, complete=False, closed=True, deadline=None, participants=[], wait_list=[],
                   redundancy_list=[], last_heartbeats=[])]
    made = tool("encode", [json.dumps(state) for state in states])
    read = [json.loads(line)
            for line in python(torch, "for line in sys.stdin: print(json.dumps(shown(load(line))))", made)]
    for state, back in zip(states, read):
        assert back == {**state, "unknown": []}


def test_states_of_torch_1_13_are_refused(torch113):
    """With and without nodes, and with a deadline; never taken for corrupt."""
    done = subprocess.run([*torch113, "-c", textwrap.dedent("""
        import base64, datetime, pickle
        from torch.distributed.elastic.rendezvous.dynamic_rendezvous import _NodeDesc, _RendezvousState
        states = [_RendezvousState() for _ in range(3)]
        node = _NodeDesc("localhost", 27511, 0)
        states[1].participants[node], states[1].last_heartbeats[node] = 0, datetime.datetime.utcnow()
        states[2].deadline = datetime.datetime.utcnow()
        for state in states:
            print(base64.b64encode(pickle.dumps(state)).decode())
    """)], capture_output=True, text=True, timeout=60)
    assert done.returncode == 0, done.stderr
    answers = tool("decode", done.stdout.split())
    signs = ["no 'redundancy_list'", "the field 'fqdn'", "no time zone"]
    for answer, sign in zip(answers, signs):
        assert answer.startswith("error: refused: ") and "PyTorch 1.13" in answer and sign in answer, answer


def test_what_would_run_code_is_corrupt():
    class Evil:
        def __reduce__(self):
            return (print, ("never",))
    import pickle
    lines = [base64.b64encode(pickle.dumps(value, 4)).decode()
             for value in (Evil(), {"a": Evil()}, [1], 1.5, {"a": {1}}, "text", None)]
    for answer in tool("decode", lines):
        assert answer.startswith("error: corrupt: the rendezvous state is corrupt: "), answer


STEPS = """
    # Random states around each row's conditions; what the real operation answers, and the state it leaves.
    from unittest import mock
    NOW = datetime.datetime(2026, 5, 1, 12, 0, 0, tzinfo=UTC)
    NODES = [_NodeDesc("10.0.0.%d" % i, 100 - i, 0) for i in range(4)]
    ME = NODES[1]
    class Clock(datetime.datetime):
        @classmethod
        def now(cls, tz=None):
            return NOW
    class Register:
        # A backend of one value: what the holder is given to read, and what it writes.
        name = "register"
        def __init__(self, state): self.bits, self.written = pickle.dumps(state), None
        def get_state(self): return self.bits, 1
        def set_state(self, bits, token=None): self.written = bits; return bits, 2, True
    def step(state, op, left, low, high):
        settings = dr.RendezvousSettings("id", low, high, dr.RendezvousTimeout(), datetime.timedelta(seconds=5), 3)
        register = Register(state)
        holder = dr._BackendRendezvousStateHolder(register, settings, 0)
        holder.sync()
        executor = dr._DistributedRendezvousOpExecutor(ME, holder, settings)
        class Enough(Exception): pass
        kinds = []
        operation = op()
        def once(context, deadline, *rest):
            if kinds:
                raise Enough
            action = operation(context, deadline)
            kinds.append(action.name)
            return action
        def enough(*_): raise Enough
        with mock.patch.object(dr.time, "monotonic", lambda: 1000.0), \\
             mock.patch.object(dr.time, "sleep", lambda *_: None), \\
             mock.patch.object(dr, "_delay", lambda **_: None), mock.patch.object(holder, "sync", lambda: None):
            try:
                executor.run(once, 1000.0 + left, lambda *_: 1600.0)
            except (Enough, dr.RendezvousTimeoutError, dr.RendezvousClosedError):
                pass
            except dr.RendezvousGracefulExitError:
                kinds.append("GRACEFUL_EXIT")
        return kinds[0], shown(holder.state)
    dr.datetime = Clock
    ops = dict(join=dr._RendezvousJoinOp, leave=dr._RendezvousExitOp, close=dr._RendezvousCloseOp,
               keep_alive=dr._RendezvousKeepAliveOp)
    def odd(state, high):
        # More participants than max, which no agent makes: torchrun's spares go in and out of their list.
        return ME in state.redundancy_list and len(state.participants) > high
    for seed in range(COUNT):
        draw = random.Random(seed)
        low = draw.randrange(1, 4)
        high = low + draw.randrange(0, 3)
        state = _RendezvousState()
        state.round, state.complete, state.closed = draw.randrange(3), draw.random() < .5, draw.random() < .1
        if draw.random() < .5:
            state.deadline = NOW + datetime.timedelta(seconds=draw.choice([-10, -.000001, 0, .000001, 10]))
        for desc in NODES:
            where = draw.randrange(5)
            if where == 0:
                continue
            if where == 3:
                state.wait_list.add(desc)
            elif where == 4:
                state.redundancy_list.add(desc)
            else:
                state.participants[desc] = 0
            ago = draw.choice([0, 1, 4.999999, 5, 5.000001, 14, 15, 15.000001, 60, -3600])
            state.last_heartbeats[desc] = NOW - datetime.timedelta(seconds=ago)
        if odd(state, high):
            continue
        op = draw.choice(["join"] * 5 + ["leave", "close", "keep_alive"])
        left = draw.choice([100, 100, 1, 0, -1, -5, -6])
        bits = text(state)
        kind, after = step(state, ops[op], left, low, high)
        print(json.dumps([dict(state=bits, op=op, min=low, max=high, now=micros(NOW), time_left=left * 10 ** 6,
                               node=node(ME)), kind, after]))
"""

KINDS = {"FINISH": "done", "ERROR_TIMEOUT": "timed_out", "ERROR_CLOSED": "closed", "GRACEFUL_EXIT": "graceful_exit",
         "SYNC": "wait"}


def test_the_state_machine_does_what_torch_does(torch):
    cases = [json.loads(line) for line in python(torch, STEPS.replace("COUNT", "1000"))]
    answers = [json.loads(line) for line in tool("step", [json.dumps(case[0]) for case in cases])]
    seen = {}
    for (asked, kind, after), answer in zip(cases, answers):
        expected = KINDS.get(kind, "write")
        seen[kind] = seen.get(kind, 0) + 1
        assert answer["kind"] == expected, (kind, asked, answer)
        assert sorted_lists(answer["state"]) == sorted_lists(after), (kind, asked)
    print(seen)
    assert len(seen) >= 12, seen
