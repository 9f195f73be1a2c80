"""The status page and /metrics: who may see them, what they show, and that a job does not depend on them."""
import contextlib
import hashlib
import http.client
import json
import os
import re
import signal
import socket
import subprocess
import time

import pytest

from browser import Browser, chromium
from harness import BINARY, PYTHON, SCRIPTS, free_port, one_line, skip, until
from hosts import _within
from nodes import Job, listening
from ssh_hosts import SshWorld
from test_jobs import PARKED, add_cluster, script

TOKEN = "0123456789abcdef"


class Page:
    """A job with a status page, and requests to it."""

    def __init__(self, run, address=None):
        self.run = run
        self.address = address or until(lambda: re.search(r"status page: (http://\S+)", run.err()), 20,
                                        "the address is printed")[1]
        self.host, self.port, self.token = re.fullmatch(r"http://(.*):(\d+)/\?token=(\S+)", self.address).groups()
        self.port = int(self.port)
        self.cookie = f"lockstep_{hashlib.sha256(self.token.encode()).hexdigest()[:8]}={self.token}"

    def get(self, target, method="GET", cookie=True, **fields):
        connection = http.client.HTTPConnection("127.0.0.1", self.port, timeout=10)
        connection.putrequest(method, target, skip_host="Host" in fields)
        if cookie:
            fields["Cookie"] = self.cookie
        for name, value in fields.items():
            connection.putheader(name.replace("_", "-"), value)
        connection.endheaders()
        reply = connection.getresponse()
        with contextlib.closing(connection):
            return reply.status, reply.headers, reply.read().decode()

    def state(self):
        return json.loads(self.get("/state")[2])

    def live(self):
        """An open stream of states."""
        fd = socket.create_connection(("127.0.0.1", self.port), timeout=10)
        fd.sendall(f"GET /live HTTP/1.1\r\nHost: 127.0.0.1\r\nCookie: {self.cookie}\r\n\r\n".encode())
        return fd


def frames(fd):
    """The states of a stream, as they come."""
    waiting = b""
    while chunk := fd.recv(65536):
        waiting += chunk
        *whole, waiting = waiting.split(b"\n\n")
        for frame in whole:
            if frame.startswith(b"event: state\ndata: "):
                yield json.loads(frame.partition(b"data: ")[2])


@pytest.fixture
def job(lockstep):
    run = lockstep.start_worker("--nproc-per-node", 2, "--status-page",
                                actions=[f"env={lockstep.facts}", f"touch={lockstep.facts}", "await"])
    lockstep.ready(2)
    yield Page(run)
    run.signal(signal.SIGTERM)
    run.wait()


def test_the_token_becomes_a_cookie(job):
    assert job.host == "127.0.0.1" and len(job.token) == 32
    status, fields, _ = job.get(f"/?token={job.token}", cookie=False)
    assert status == 303 and fields["Location"] == "/"
    assert fields["Set-Cookie"] == f"{job.cookie}; Path=/; HttpOnly; SameSite=Strict"
    status, fields, body = job.get("/")
    assert status == 200 and body.startswith("<!doctype html>") and len(body) < 80 << 10
    assert job.token not in body
    assert fields["X-Content-Type-Options"] == "nosniff" and fields["Cache-Control"] == "no-store"
    policy = fields["Content-Security-Policy"]
    assert policy.startswith("default-src 'none'; script-src 'sha256-") and "unsafe" not in policy


def test_nobody_else_gets_in(job):
    for target in ("/", "/state", "/live", "/history", "/why?rank=0", "/events", "/metrics", "/?token=", "/?token=x"):
        status, _, body = job.get(target, cookie=False)
        assert status == 403 and "token" in body, target
    assert job.get("/state", cookie=False, Authorization=f"Bearer {job.token}")[0] == 200
    for name in ("evil.example", f"evil.example:{job.port}", "127.0.0.1.evil.example", "10.0.0.1", ""):
        assert job.get("/state", Host=name)[0] == 403, name
    assert job.get("/state", Host="localhost:8080")[0] == 200  # through a forwarded port
    assert job.get("/state", Origin="http://evil.example")[0] == 403
    assert job.get("/state", Origin=f"http://127.0.0.1:{job.port}")[0] == 200
    assert job.get("/state", Sec_Fetch_Site="cross-site", Sec_Fetch_Mode="no-cors")[0] == 403
    for method in ("POST", "PUT", "DELETE", "OPTIONS", "TRACE"):
        assert job.get("/state", method=method)[0] == 405, method
    for path in ("/../etc/passwd", "/%2e%2e/%2e%2e/etc/passwd", "//etc/passwd", "/state/", "/./state", "/state%00"):
        assert job.get(path)[0] in (400, 404), path


def test_only_loopback_is_listened_on(job):
    with open("/proc/net/tcp") as v4, open("/proc/net/tcp6") as v6:
        listening = [line.split()[1] for line in v4.readlines()[1:] + v6.readlines()[1:] if line.split()[3] == "0A"]
    places = [place.split(":") for place in listening]
    assert [address for address, port in places if int(port, 16) == job.port] == ["0100007F"]


def test_the_states_come_each_second(job):
    until(lambda: len(job.state()["view"]["rows"]) == 2, 20, "both ranks are seen")
    with job.live() as fd:
        begun = time.monotonic()
        stream = frames(fd)
        states = [next(stream) for _ in range(4)]
    assert 2 <= time.monotonic() - begun < 10
    assert [row["rank"] for row in states[-1]["view"]["rows"]] == [0, 1]
    assert states[-1]["now_ms"] > states[0]["now_ms"]
    assert states[-1]["attempts"][0]["end_ms"] is None
    history = json.loads(job.get("/history?span=600")[2])
    assert history["width_ms"] == 1000 and len(history["time_ms"]) >= 3
    assert history["cpu"]["most"][-1] is not None


def test_why_of_a_rank(job):
    until(lambda: json.loads(job.get("/why?rank=1")[2])["ranks"], 20, "rank 1 is seen")
    (rank,) = json.loads(job.get("/why?rank=1")[2])["ranks"]
    assert rank["rank"] == 1 and rank["pid"] > 0


def test_why_of_a_rank_that_has_ended(lockstep):
    run = lockstep.start("--status-page", "--tee", "3", "--nproc-per-node", "2", "--no-python", "sh", "-c",
                         'echo "last words"; [ $RANK = 1 ] || sleep 1000')
    page = Page(run)
    until(lambda: json.loads(page.get("/why?rank=0")[2])["ranks"], 20, "rank 0 is seen")

    def ended():
        ranks = json.loads(page.get("/why?rank=1")[2])["ranks"]
        return ranks if ranks and ranks[0]["doing"] == "ended" else None
    (rank,) = until(ended, 20, "rank 1 has ended")
    assert (rank["rank"], rank["output"]) == (1, ["last words"])
    assert json.loads(page.get("/why?rank=2")[2])["ranks"] == []
    one_line(lockstep.run("--rank", "1", f"pid-{run.pid}", program=(BINARY, "why")), 1, "rank 1 of", "does not run")
    run.signal(signal.SIGTERM)
    run.wait()
    run.none_left()


def test_the_end_is_shown(lockstep):
    run = lockstep.start_worker("--status-page", actions=[f"touch={lockstep.facts}", "await"])
    lockstep.ready(1)
    with Page(run).live() as fd:
        stream = frames(fd)
        next(stream)
        run.signal(signal.SIGTERM)
        ends = [state["ended"] for state in stream]
    assert ends[-1] == "interrupted", ends
    run.wait()
    run.none_left()


def test_a_crowd_and_a_viewer_that_never_reads(job, lockstep):
    """The 65th viewer is refused. No viewer holds up the job."""
    with contextlib.ExitStack() as crowd:
        first = []
        for _ in range(80):
            fd = crowd.enter_context(job.live())
            first.append(fd.recv(12))
        assert first.count(b"HTTP/1.1 200") == 64 and first.count(b"HTTP/1.1 503") == 16
        for _ in range(200):
            silent = crowd.enter_context(socket.create_connection(("127.0.0.1", job.port)))
            silent.sendall(b"GET /state HT")
        assert job.get("/state")[0] == 200
    until(lambda: next(frames(job.live()), None), 10, "the places of those who left are free")


def test_the_token_may_be_given_and_workers_do_not_get_it(lockstep):
    port = free_port()
    run = lockstep.start_worker(f"--status-page=127.0.0.1:{port}", env={"LOCKSTEP_PAGE_TOKEN": TOKEN},
                                actions=[f"env={lockstep.facts}", f"touch={lockstep.facts}", "await"])
    lockstep.ready(1)
    page = Page(run)
    assert (page.port, page.token) == (port, TOKEN)
    assert TOKEN not in "".join(lockstep.worker_env().values())
    for pid in run.living():
        assert TOKEN.encode() not in open(f"/proc/{pid}/environ", "rb").read(), pid
    run.signal(signal.SIGTERM)
    run.wait()


def test_bad_options(lockstep):
    for place in ("", "a:b", "1.2.3.4:99999"):
        ended = lockstep.run_worker(f"--status-page={place}", actions=["exit=0"])
        assert ended.rc == 1 and "--status-page must be a port or ADDR:PORT" in ended.err, str(ended)
    ended = lockstep.run_worker("--metrics", env={"LOCKSTEP_PAGE_TOKEN": "short"}, actions=["exit=0"])
    assert ended.rc == 1 and "LOCKSTEP_PAGE_TOKEN" in ended.err, str(ended)


def test_a_taken_port_is_no_reason_to_stop(lockstep):
    with socket.socket() as one, socket.socket() as other:
        for holder in (one, other):
            holder.bind(("127.0.0.1", 0))
            holder.listen()
        page, metrics = (f"127.0.0.1:{holder.getsockname()[1]}" for holder in (one, other))
        ended = lockstep.run_worker(f"--status-page={page}", f"--metrics={metrics}", actions=["exit=0"])
    assert ended.rc == 0, str(ended)
    assert "no status page is served" in ended.err and "no /metrics is served" in ended.err, str(ended)


def test_one_port_for_both_is_refused(lockstep):
    ended = lockstep.run_worker("--status-page=8000", "--metrics=8000", actions=["exit=0"])
    assert ended.rc == 1 and len(ended.error_lines) == 1, ended
    assert "--status-page and --metrics must have different ports (got 8000 twice)" in ended.err, ended


@pytest.mark.parametrize("option", ["--status-page", "--metrics"])
def test_a_port_behind_a_space_is_named(lockstep, option):
    ended = lockstep.run(option, 8000, "train.py")
    assert ended.rc == 1, str(ended)
    assert f"{option} takes a value only behind '=': write {option}=8000" in ended.err, str(ended)


# --- lockstep page


def page_command(lockstep, *words):
    return subprocess.run([BINARY, "page", *map(str, words)], env=lockstep.environment(), capture_output=True,
                          text=True, timeout=30)


def test_a_page_is_opened_on_request(lockstep):
    run = lockstep.start_worker("--nproc-per-node", 2, actions=[f"touch={lockstep.facts}", "await"])
    lockstep.ready(2)
    job = f"pid-{run.process.pid}"
    said = page_command(lockstep, job)
    assert said.returncode == 0, said
    page = Page(run, said.stdout.strip())
    assert (page.host, len(page.token)) == ("127.0.0.1", 32)
    test_only_loopback_is_listened_on(page)
    test_nobody_else_gets_in(page)
    state = page.state()
    assert [row["rank"] for row in state["view"]["rows"]] == [0, 1]
    assert state["nodes"] == {"lines": [], "more": 0, "silent": []}
    assert state["goodput"]["seconds"].keys() >= {"rendezvous", "start", "training", "down"}
    assert page_command(lockstep, job).stdout == said.stdout, "one page, however often it is asked for"
    other = page_command(lockstep, "--json", job)
    assert json.loads(other.stdout)["address"] == page.address
    assert page.token not in run.err() + run.out()
    none = page_command(lockstep, "--node", 1, job)
    assert none.returncode == 1 and f"no node 1 of {job} answers" in none.stderr, none
    port = page_command(lockstep, "--port", 8123, job)
    assert port.returncode == 2 and "lockstep run --status-page=8123 chooses the port" in port.stderr, port
    run.signal(signal.SIGTERM)
    run.wait()
    run.none_left()


def test_a_page_of_the_start_is_found_again(job, lockstep):
    said = page_command(lockstep, f"pid-{job.run.process.pid}")
    assert said.stdout == job.address + "\n", said


def test_a_page_beyond_loopback_is_reached_from_its_machine(lockstep):
    run = lockstep.start_worker("--status-page=:0", actions=[f"touch={lockstep.facts}", "await"])
    lockstep.ready(1)
    page = Page(run, page_command(lockstep, f"pid-{run.process.pid}").stdout.strip())
    assert page.host == "127.0.0.1" and page.get("/state")[0] == 200
    run.signal(signal.SIGTERM)
    run.wait()


@pytest.mark.parametrize("words, why", [
    (("--port", "70000"), "--port must be"), (("--node", "-1"), "--node must be"),
    (("pid-999999999",), "pid-999999999"), (("a", "b"), "one word too many")])
def test_bad_requests_for_a_page(lockstep, words, why):
    said = page_command(lockstep, *words)
    assert said.returncode in (1, 2) and why in said.stderr and said.stderr.count("\n") == 1, said


def test_the_page_of_a_job_on_hosts(hosts):
    """The page comes over the connection that is there; the token is in no argument and no log."""
    world = SshWorld(hosts)
    client, one, two = world(2)
    add_cluster(client, (one, two))
    for server in (one, two):
        script(server, PARKED)
    ended = client.run("run", "--on", "gpus", "--sync", "none", "--cwd", ".", "--nproc-per-node", "2", "--detach",
                       "job.py")
    assert ended.rc == 0, ended
    job = ended.out.strip()
    until(lambda: json.loads(client.run("top", "--json", job).out).get("nodes"), 60, "the agents answer")
    run = client.start("page", job)
    address = until(lambda: re.search(r"^http://\S+$", run.out(), re.M) or run.process.poll() is not None and run.err(),
                    60, "the address is printed")[0]
    _, port, token = re.fullmatch(r"http://(127\.0\.0\.1):(\d+)/\?token=(\S+)", address).groups()

    def state():
        """Returns the state of the page, {} if it does not answer."""
        with contextlib.suppress(ConnectionError):
            with _within(client.host.holder.pid, "net"):
                fd = socket.create_connection(("127.0.0.1", int(port)), 10)
            with fd:
                fd.sendall(f"GET /state HTTP/1.1\r\nHost: 127.0.0.1:{port}\r\n"
                           f"Authorization: Bearer {token}\r\n\r\n".encode())
                answer = b"".join(iter(lambda: fd.recv(65536), b""))
            return json.loads(answer.partition(b"\r\n\r\n")[2] or b"{}")
        return {}

    def of_all_nodes():
        lines = state().get("nodes", {}).get("lines", [])
        return len({line["node"] for line in lines if line["where"].startswith("<module>, job.py:")}) == 2

    until(of_all_nodes, 60, "the page of node 0 knows both nodes")
    for argv in all_argvs():
        assert token not in argv, argv
    assert token not in client.run("logs", job).out
    second = client.start("page", "--node", "1", "--json", job)
    said = until(lambda: second.out(), 60, "the page of the other node")
    assert json.loads(said)["address"].partition("token=")[2] != token
    second.signal(signal.SIGINT)
    assert second.wait(20).rc == 128 + signal.SIGINT
    assert client.run("cancel", job).rc == 0
    until(lambda: not state() and run.process.poll() is not None, 60, "the page ends with the job")
    assert run.wait(5).rc == 1 and "the status page is gone" in run.err(), run.err()
    assert client.run("page", job).rc == 1
    left = world.close()
    assert not left


def all_argvs():
    for pid in filter(str.isdigit, os.listdir("/proc")):
        with contextlib.suppress(OSError):
            with open(f"/proc/{pid}/cmdline") as argv:
                yield argv.read()


# --- metrics

SAMPLE = re.compile(r'([a-zA-Z_:][a-zA-Z0-9_:]*)\{((?:[a-z_]+="(?:[^"\\\n]|\\[\\"n])*",?)*)\} (-?[0-9.e+]+)')
SUFFIXES = {"counter": "_total", "info": "_info"}


def check_metrics(text, open_metrics):
    """Checks the rules of scrapers: a family is one block of HELP, TYPE, perhaps UNIT, and its samples, each once."""
    assert text.endswith("\n# EOF\n" if open_metrics else "\n")
    families, samples, name, kind = [], {}, None, None
    for line in text.splitlines():
        if line == "# EOF":
            continue
        if line.startswith("# "):
            _, keyword, about, rest = line.split(" ", 3)
            if keyword == "HELP":
                families.append(about)
                name = about
            assert about == name, line
            if keyword == "TYPE":
                kind = rest
            if keyword == "UNIT":
                assert open_metrics and name.endswith("_" + rest), line
            continue
        found = SAMPLE.fullmatch(line)
        assert found, line
        assert found[1] == name + (SUFFIXES.get(kind, "") if open_metrics else ""), line
        assert open_metrics or kind != "counter" or name.endswith("_total")
        assert (found[1], found[2]) not in samples, line
        samples[found[1], found[2]] = float(found[3])
    assert len(families) == len(set(families))
    return {f"{name}{{{labels}}}": value for (name, labels), value in samples.items()}


def scrape(port, accept, **fields):
    connection = http.client.HTTPConnection("127.0.0.1", port, timeout=10)
    connection.request("GET", "/metrics", headers={"Accept": accept, **fields})
    reply = connection.getresponse()
    with contextlib.closing(connection):
        return reply.status, reply.headers["Content-Type"], reply.read().decode()


def test_metrics_in_both_formats(lockstep):
    run = lockstep.start_worker("--nproc-per-node", 2, "--metrics", "--role", 'a"b',
                                actions=[f"touch={lockstep.facts}", "await"])
    lockstep.ready(2)
    port = int(until(lambda: re.search(r"metrics: http://127.0.0.1:(\d+)/metrics$", run.err(), re.M), 10)[1])
    def seen():
        return 'rank="1"' in scrape(port, "")[2]
    until(seen, 20, "the ranks are seen")
    status, kind, text = scrape(port, "*/*")
    assert status == 200 and kind.startswith("text/plain; version=0.0.4")
    samples = check_metrics(text, False)
    status, kind, text = scrape(port, "application/openmetrics-text;version=1.0.0,text/plain;version=0.0.4;q=0.5")
    assert status == 200 and kind.startswith("application/openmetrics-text; version=1.0.0")
    assert set(check_metrics(text, True)) == set(samples)
    (memory,) = [value for name, value in samples.items()
                 if name.startswith("lockstep_rank_memory_bytes") and 'rank="1"' in name]
    assert memory > 0
    assert len([name for name in samples if name.startswith("lockstep_job_info{")]) == 1
    phases = {name.partition('phase="')[2].partition('"')[0]: value for name, value in samples.items()
              if name.startswith("lockstep_goodput_seconds_total{")}
    assert len(phases) == 7 and sum(phases.values()) > 0, phases
    assert 0 <= next(value for name, value in samples.items() if name.startswith("lockstep_goodput_ratio{")) <= 1
    assert scrape(port, "", Host="evil.example")[0] == 403
    run.signal(signal.SIGTERM)
    run.wait()


def test_metrics_beyond_loopback_need_the_token(lockstep):
    run = lockstep.start_worker("--metrics=:0", env={"LOCKSTEP_PAGE_TOKEN": TOKEN},
                                actions=[f"touch={lockstep.facts}", "await"])
    lockstep.ready(1)
    port = int(until(lambda: re.search(r"metrics: http://[^/]*:(\d+)/metrics \(Authorization", run.err()), 10)[1])
    assert scrape(port, "")[0] == 403
    assert scrape(port, "", Authorization="Bearer wrong")[0] == 403
    assert scrape(port, "", Authorization=f"Bearer {TOKEN}")[0] == 200
    run.signal(signal.SIGTERM)
    run.wait()


# --- in a browser

@pytest.fixture
def browse(tmp_path):
    if not chromium():
        skip("no chromium-headless-shell: apt-get install chromium-headless-shell")
    opened = []

    def begin(**options):
        folder = tmp_path / f"browser{len(opened)}"
        folder.mkdir()
        opened.append(Browser(folder, **options))
        return opened[-1]

    yield begin
    for browser in opened:
        browser.close()


@pytest.fixture
def gloo(lockstep, tmp_path):
    jobs = []

    def begin(*args, env=None, ranks=4):
        jobs.append(lockstep.start("--nproc-per-node", ranks, "--log-dir", lockstep.logs, *args,
                                   env={"OMP_NUM_THREADS": "1", "TEST_FOLDER": tmp_path, **(env or {})}))
        return jobs[-1]

    yield begin
    for job in jobs:
        job.kill()


def shown(browser, *words, within=20, selector="body"):
    return until(lambda: all(word in (text := browser.text(selector)) for word in words) and text, within,
                 f"{words} on the page, which says: {browser.text(selector)[:2000]}")


def test_a_browser_sees_the_job_live(gloo, browse):
    page = Page(gloo("--status-page", "--hang-after", 5, SCRIPTS / "hang.py", "sleep", 2))
    browser = browse()
    browser.open(page.address)
    shown(browser, "hang.py", "live", within=30)
    assert browser.run("location.search") == "", "the token leaves the address"
    assert browser.run("document.cookie") == "", "scripts cannot read the cookie"
    shown(browser, "training", within=60, selector="#state")
    shown(browser, "training", "start", "%", selector="#phase-words")
    assert not browser.run("document.querySelector('#nodes-part').checkVisibility()"), "one node needs no list of nodes"
    loads = browser.navigations
    until(lambda: "hang: " in page.run.err(), 60, "the hang is told")
    told = time.monotonic()
    shown(browser, "hung", selector="#state")
    assert time.monotonic() - told < 2
    shown(browser, "rank 2", "sleep", selector="#groups")
    browser.run("document.querySelector('.cell:nth-child(3)').click()")
    shown(browser, "Rank 2", "main thread", "hang.py:", selector="#rank")
    assert browser.navigations == loads, "without a reload"
    assert browser.errors == []
    home = f"http://127.0.0.1:{page.port}/"
    assert f"{home}live" in browser.requests
    assert all(url.startswith((home, "data:")) for url in browser.requests), browser.requests
    page.run.signal(signal.SIGTERM)
    shown(browser, "received SIGTERM", "rank 2 was in ", "hang.py:", selector="#attempts")


def test_a_browser_without_the_token(job, browse):
    browser = browse()
    browser.open(f"http://127.0.0.1:{job.port}/")
    shown(browser, "no token")


def test_the_last_lines_of_a_rank_that_has_ended(lockstep, browse):
    page = Page(lockstep.start("--status-page", "--tee", "3", "--nproc-per-node", "2", "--no-python", "sh", "-c",
                               'echo "last words"; [ $RANK = 1 ] || sleep 1000'))
    browser = browse()
    browser.open(page.address)
    cell = "document.querySelector('.cell:nth-child(2)')"
    until(lambda: browser.run(f"{cell}?.title") == "rank 1, gone", 30, "rank 1 is shown as gone")
    browser.run(f"{cell}.click()")
    shown(browser, "the rank has ended", selector="#threads")
    shown(browser, "last words", selector="#last")
    page.run.signal(signal.SIGTERM)
    page.run.wait()


def test_output_stays_text(gloo, browse, tmp_path):
    script = tmp_path / "<b>hostile.py"
    evil = "</script><script>document.title='owned'</script><img src=x onerror=alert(1)>"
    script.write_text("import time\nfor number in range(30):\n    print('line', number)\n"
                      f"print({evil!r} + chr(27) + '[2J', flush=True)\ntime.sleep(1000)\n")
    page = Page(gloo("--status-page", "--tee", 3, script, ranks=1))
    browser = browse()
    browser.open(page.address)
    shown(browser, "hostile.py", within=30)
    browser.run("document.querySelector('#all').open = true")
    shown(browser, evil, selector="#rows")
    browser.run("document.querySelector('.cell').click()")
    shown(browser, evil, "main thread", "line 29", selector="#rank")
    assert [line for line in browser.text("#last").splitlines() if line.startswith("line ")] == [
        f"line {number}" for number in range(11, 30)], "the last 20 lines, with the hostile one"
    assert browser.run("document.querySelectorAll('img, h1 b, #rows b, pre *, script').length") == 1
    assert "owned" not in browser.run("document.title")
    assert browser.errors == []


def test_a_phone_in_the_dark_and_a_keyboard(lockstep, browse):
    run = lockstep.start_worker("--nproc-per-node", 8, "--status-page", actions=[f"touch={lockstep.facts}", "await"])
    lockstep.ready(8)
    browser = browse(width=390, height=844, dark=True)
    browser.open(Page(run).address)
    until(lambda: browser.run("document.querySelectorAll('.cell').length") == 8, 30, "every rank has a square")
    assert browser.run("document.documentElement.scrollWidth") <= 390, "nothing is wider than the screen"
    background = browser.run("getComputedStyle(document.documentElement).backgroundColor")
    assert max(int(part) for part in re.findall(r"\d+", background)) < 64, background
    browser.run("document.querySelector('.cell').focus()")
    browser.press("ArrowRight"), browser.press("ArrowRight"), browser.press("Enter")
    shown(browser, "Rank 2", selector="#rank")
    assert browser.run("document.querySelector('#rank').open")
    browser.press("Escape")
    assert not browser.run("document.querySelector('#rank').open")
    assert browser.run("document.activeElement.dataset.rank") == "2", "the focus is where it was"
    assert browser.errors == []
    run.signal(signal.SIGTERM)
    run.wait()


def test_a_page_outlives_its_agent(lockstep, browse):
    port = free_port()

    def start():
        run = lockstep.start_worker(f"--status-page={port}", env={"LOCKSTEP_PAGE_TOKEN": TOKEN},
                                    actions=[f"touch={lockstep.facts}", "await"])
        return Page(run)
    page = start()
    browser = browse()
    browser.open(page.address)
    shown(browser, "live", within=30, selector="#link")
    first = page.state()["start_ms"]
    os.kill(page.run.agent(), signal.SIGKILL)
    page.run.wait()
    shown(browser, "not connected", selector="#link")
    page = start()
    shown(browser, "live", within=30, selector="#link")
    assert page.state()["start_ms"] > first
    page.run.signal(signal.SIGTERM)
    page.run.wait()


def test_a_page_shows_the_ranks_of_all_nodes(lockstep, browse):
    """Both agents have one name here, as they run on one machine."""
    job = Job(lockstep, "lockstep")
    runs = []
    for number in range(2):
        runs.append(job.node(number, *(["--status-page"] if number == 0 else []), nproc=2,
                             settings="keep_alive_interval=5,keep_alive_max_attempt=20",
                             actions=[f"touch={lockstep.facts}", "await"]))
        listening(job.port)  # the first is node 0
    lockstep.ready(4, 30)
    second = page_command(lockstep, f"pid-{runs[1].process.pid}")
    assert second.returncode == 0 and [row["rank"] for row in Page(runs[1], second.stdout.strip()).state()["view"][
        "rows"]] == [2, 3], second
    browser = browse()
    browser.open(Page(runs[0]).address)
    shown(browser, "0-3", selector="#nodes")
    assert browser.errors == []
    os.kill(runs[1].agent(), signal.SIGSTOP)
    shown(browser, "has not told for", selector="#silent")
    os.kill(runs[1].agent(), signal.SIGCONT)
    for run in runs:
        run.signal(signal.SIGTERM)
    for run in runs:
        run.wait()
