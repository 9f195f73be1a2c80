#!/usr/bin/env python3
"""One test server with a face for each provider: EC2 (with STS, SSM, Service Quotas, Price List), Google
Compute (with its token endpoint and the billing catalog), Lambda Cloud and RunPod. The fakes check requests
strictly, with a scripted clock, faults (cloud_faults.py) and a money meter (cloud_world.py).

    python3 tests/cloud/fake_cloud.py --port 0 --folder DIR

prints one JSON line: {"url", "pid", "env": {..}, "home"}. `env` has all that a client needs: endpoints (each
replaces "https://HOST") and paths of key files in DIR. Control, in JSON, without keys:

    GET  /_fake/machines            all machines, with their bills; /_fake/machines/ID: one
    POST /_fake/machines/ID/preempt {"notice": seconds}      preempts the machine
    POST /_fake/machines/ID/poweroff                         the guest powers off
    POST /_fake/machines/ID/end     {"why"}                  ended in the provider's console
    GET  /_fake/meter               {"micros", "live", "billed", "machines": {id: micros}}
    GET, POST /_fake/clock          {"scale", "advance", "skew"} -> {"now", "wall", "scale", "skew"}
    GET, POST, DELETE /_fake/faults POST: one rule or a list, -> {"ids"}; DELETE ?id= or all
    GET, DELETE /_fake/record       every request, canonicalised; ?since=N
    GET, POST /_fake/settings       boot_s, end_s, operation_s, limits (of Lambda: 0 off), delay_s, page_most, ...
    POST /_fake/price, /_fake/stock, /_fake/quota    {"face", ...}: see each face's change()
    POST /_fake/foreign             {"face", "count", "zone" ..}: running machines of other users; see foreign()
    POST /_fake/reset               no machines, faults, records
    GET  /_fake/errors              errors of hooks and of the fakes: must be empty
"""
import argparse
import gzip
import json
import os
import pathlib
import signal
import socket
import sys
import threading
import time
import traceback
from email.utils import formatdate
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer

sys.path.insert(0, str(pathlib.Path(__file__).parent))

import cloud_keys  # noqa: E402
import fake_ec2  # noqa: E402
import fake_gce  # noqa: E402
import fake_lambda  # noqa: E402
import fake_runpod  # noqa: E402
from cloud_faults import Faults, first  # noqa: E402
from cloud_http import Refused, Reply, Request  # noqa: E402
from cloud_world import World  # noqa: E402

MAX_BODY = 4 << 20


class Handler(BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"
    disable_nagle_algorithm = True

    def log_message(self, *_):
        pass

    def serve(self):
        length = self.headers.get("Content-Length", "0")
        if not length.isdigit() or int(length) > MAX_BODY or "Transfer-Encoding" in self.headers:
            self.close_connection = True
            self.wfile.write(b"HTTP/1.1 411 Length Required\r\nContent-Length: 0\r\nConnection: close\r\n\r\n")
            return
        request = Request(self.command, self.path, self.headers, self.rfile.read(int(length)), self.client_address[0])
        cut_at = None
        if request.path.startswith("/_fake/"):
            reply = self.server.cloud.control(request)
        else:
            reply, cut_at = self.server.cloud.answer(request)
        self.send(request, reply, cut_at)

    do_GET = do_POST = do_PUT = do_DELETE = do_PATCH = do_HEAD = serve

    def send(self, request, reply, cut_at):
        if reply is None:
            return self.cut()
        body = reply.body
        headers = {**reply.headers, "Date": formatdate(self.server.cloud.world.wall(), usegmt=True)}
        if "gzip" in self.headers.get("Accept-Encoding", "") and len(body) > 1024:
            body, headers["Content-Encoding"] = gzip.compress(body, 1), "gzip"
        if reply.status not in (204, 304):
            headers["Content-Length"] = str(len(body))
        lines = [f"HTTP/1.1 {reply.status} {self.responses.get(reply.status, ('Status',))[0]}"]
        lines += [f"{name}: {value}" for name, value in headers.items()]
        head = ("\r\n".join(lines) + "\r\n\r\n").encode()
        if cut_at is None:
            return self.wfile.write(head + body)
        whole = head + body
        self.wfile.write(whole[:len(head) + len(body) // 2 if cut_at < 0 else min(cut_at, len(whole) - 1)])
        return self.cut()

    def cut(self):
        self.close_connection = True
        try:
            self.connection.shutdown(socket.SHUT_RDWR)
        except OSError:
            pass

    def handle(self):
        try:
            super().handle()
        except (ConnectionError, TimeoutError):
            pass


class Server(ThreadingHTTPServer):
    daemon_threads = True
    request_queue_size = 128

    def handle_error(self, request, client_address):
        self.cloud.error()


class FakeCloud:
    """The server, for tests in the same process: cloud.world.on_launch = ...; cloud.env; cloud.faults.add(...)."""

    def __init__(self, folder, port=0, host="127.0.0.1"):
        self.folder = pathlib.Path(folder)
        self.world, self.faults = World(), Faults()
        self.records, self.failures = [], []
        self.server = Server((host, port), Handler)
        self.server.cloud = self
        self.url = f"http://{host}:{self.server.server_address[1]}"
        self.keys = cloud_keys.Keys(self.folder, self.url, self.world.catalog)
        self.env = self.keys.env
        self.faces = [fake_gce.Face(self), fake_lambda.Face(self), fake_runpod.Face(self), fake_ec2.Face(self)]
        self.thread = threading.Thread(target=self.server.serve_forever, args=(0.05,), daemon=True)
        self.thread.start()

    def close(self):
        self.server.shutdown()
        self.server.server_close()
        self.thread.join(10)
        self.world.close()

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.close()

    def error(self):
        self.failures.append(traceback.format_exc())

    def face(self, name):
        return next(face for face in self.faces if face.name == name)

    def answer(self, request):
        """Returns (the reply, or None for no answer; the byte at which the answer is cut)."""
        face = next((face for face in self.faces if face.takes(request)), None)
        if face is None:
            return Reply({"error": f"no provider answers {request.method} {request.path}"}, 404), None
        record = {"n": len(self.records), "at": time.time(), "status": 0}
        self.records.append(record)
        delay = self.world.settings.get("delay_s", 0)
        if delay:
            time.sleep(delay)
        try:
            return self.answer_of(face, request, record)
        except Refused as refused:
            reply = face.refuse(request, refused)
            record.update(status=reply.status, code=refused.code)
            return reply, None
        except Exception:
            self.error()
            record.update(status=500, code="fake")
            return Reply({"error": "the fake failed: see /_fake/errors"}, 500), None
        finally:
            record.update(request.place(), **request.canonical())

    def answer_of(self, face, request, record):
        face.read(request)
        with self.world.lock:
            found = request.found = self.faults.take(request.place())
        record["faults"] = [each["kind"] for each in found]
        if first(found, "stall"):
            time.sleep(first(found, "stall")["seconds"])
        wrong = first(found, "error", "status", "token_expired")
        if wrong:
            raise face.fault(request, wrong)
        cut = first(found, "cut")
        if cut and cut.get("when", "after") == "before":
            return None, None
        with self.world.lock:
            self.world.happen()
            reply = face.answer(request)
        record["status"] = reply.status
        if cut:
            return None, None
        half = first(found, "half", "cut_at")
        return reply, None if half is None else half.get("bytes", -1)

    # Control.

    def control(self, request):
        try:
            given = json.loads(request.body or b"{}")
            with self.world.lock:
                self.world.happen()
                return Reply(self.controlled(request, request.path.split("/")[2:], given))
        except (ValueError, KeyError, TypeError, StopIteration) as error:
            return Reply({"error": f"{type(error).__name__}: {error}"}, 400)

    def controlled(self, request, path, given):
        world, what = self.world, path[0]
        if what == "machines":
            return self.control_machines(path[1:], given)
        if what == "meter":
            return {"micros": world.micros(), "live": [each.id for each in world.live()],
                    "billed": [each.id for each in world.machines.values() if each.billed()],
                    "machines": {each.id: each.micros(world.now()) for each in world.machines.values()}}
        if what == "clock":
            world.advance(float(given.get("advance", 0)), given.get("scale"), given.get("skew"))
            return {"now": world.now(), "wall": world.wall(), "scale": world.clock.scale, "skew": world.clock.skew}
        if what == "faults":
            if request.method == "DELETE":
                self.faults.remove(int(request.query["id"]) if "id" in request.query else None)
            rules = given if isinstance(given, list) else [given] if given else []
            return {"ids": [self.faults.add(rule) for rule in rules], "rules": self.faults.rules}
        if what == "record":
            if request.method == "DELETE":
                self.records.clear()
            return self.records[int(request.query.get("since", 0)):]
        if what == "settings":
            unknown = set(given) - set(world.settings) - {"delay_s"}
            if unknown:
                raise ValueError(f"no such settings: {sorted(unknown)}")
            world.settings.update(given)
            return world.settings
        if what in ("price", "stock", "quota"):
            return self.face(given["face"]).change(what, given) or {}
        if what == "foreign":
            face = self.face(given.pop("face"))
            count = int(given.pop("count", 1))
            return {"ids": [face.foreign(given) for _ in range(count)]}
        if what == "reset":
            return self.reset()
        if what == "errors":
            return self.failures + world.errors
        raise ValueError(f"no control {'/'.join(path)}")

    def control_machines(self, path, given):
        world = self.world
        if not path:
            return [machine.view(world.now()) for machine in world.machines.values()]
        machine = world.machines[path[0]]
        if path[1:] == ["preempt"]:
            world.notify(machine, float(given.get("notice", self.face(machine.face).notice_s)))
        elif path[1:] == ["poweroff"]:
            world.power_off(machine)
        elif path[1:] == ["end"]:
            world.end(machine, given.get("why", self.face(machine.face).ended_by_hand))
        elif path[1:]:
            raise ValueError(f"no control of a machine {path[1:]}")
        return machine.view(world.now())

    def reset(self):
        for machine in self.world.live():
            self.world.end(machine, "reset")
        self.world.machines.clear()
        self.faults.remove()
        self.records.clear()
        for face in self.faces:
            face.reset()
        return {}


def control(url, path, given=None, method=None):
    """Sends a control call from another process: control(url, "clock", {"advance": 60})."""
    import urllib.request
    body = None if given is None else json.dumps(given).encode()
    asked = urllib.request.Request(f"{url}/_fake/{path}", body, method=method or ("GET" if given is None else "POST"))
    opener = urllib.request.build_opener(urllib.request.ProxyHandler({}))
    with opener.open(asked, timeout=30) as answer:
        return json.loads(answer.read())


def main():
    parser = argparse.ArgumentParser(description="Fakes of the clouds, for tests.")
    parser.add_argument("--port", type=int, default=0)
    parser.add_argument("--host", default="127.0.0.1")
    parser.add_argument("--folder", required=True, help="where key files are written")
    given = parser.parse_args()
    ended = threading.Event()
    for number in (signal.SIGTERM, signal.SIGINT):
        signal.signal(number, lambda *_: ended.set())
    with FakeCloud(given.folder, given.port, given.host) as cloud:
        print(json.dumps({"url": cloud.url, "pid": os.getpid(), "env": cloud.env, "home": str(cloud.keys.home)}),
              flush=True)
        ended.wait()


if __name__ == "__main__":
    main()
