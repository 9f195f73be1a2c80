"""The parts that the fakes of all providers share: a scripted clock, machines with a money meter, events, and hooks.

Two clocks: `world.now()` is the providers' time, which tests stretch and advance. Bills, leases, boots and notices use
it. `world.wall()` is this machine's time plus a skew, for Date headers and signatures. Money is exact, in micro-USD: a
rate per hour times nanoseconds.
"""
import heapq
import itertools
import json
import pathlib
import random
import threading
import time
import traceback

CATALOG = pathlib.Path(__file__).parent / "cloud_catalog.json"
HOURS_PER_MONTH = 730


def micros(usd):
    """Returns a catalog's price in micro-USD; None stays None."""
    return None if usd is None else round(float(usd) * 1_000_000)


def disk_rate(gb, usd_per_gb_month):
    """Returns the micro-USD per hour of a disk."""
    return round(gb * usd_per_gb_month * 1_000_000 / HOURS_PER_MONTH)


class Clock:
    """The providers' time: real time at the start, then `scale` times as fast, plus all advances."""

    def __init__(self):
        self.at_real, self.at_fake, self.scale, self.skew = time.time(), time.time(), 1.0, 0.0

    def now(self):
        return self.at_fake + (time.time() - self.at_real) * self.scale

    def wall(self):
        return time.time() + self.skew

    def change(self, scale=None, advance=0.0):
        self.at_fake, self.at_real = self.now() + advance, time.time()
        if scale is not None:
            self.scale = float(scale)

    def real_seconds_until(self, moment):
        return None if self.scale <= 0 else max(0.0, (moment - self.now()) / self.scale)


class Bill:
    """One billed thing, from a moment on: the machine, its disk or its address."""

    def __init__(self, what, rate, begin, minimum_s=0):
        self.what, self.rate, self.begin, self.end, self.minimum_s = what, rate, begin, None, minimum_s

    def seconds(self, now):
        lasted = (now if self.end is None else self.end) - self.begin
        return max(lasted, self.minimum_s, 0)

    def micros(self, now):
        return self.rate * self.seconds(now) / 3600

    def view(self, now):
        return {"what": self.what, "rate": self.rate, "begin": self.begin, "end": self.end,
                "seconds": self.seconds(now), "micros": round(self.micros(now))}


class Machine:
    """One rented machine. `state` is booting, running, ending, stopped or gone; the faces have words of their own."""

    def __init__(self, face, ident, kind, region, zone, spot):
        self.face, self.id, self.type, self.region, self.zone, self.spot = face, ident, kind, region, zone, spot
        self.name = ""
        self.state, self.why, self.launched, self.ended = "booting", "", 0.0, None
        self.running_at = None
        self.tags = {}
        self.user_data, self.public_key, self.env, self.image = "", "", {}, ""
        self.gpu, self.gpus, self.disk_gb = "", 0, 0
        self.address, self.private_address, self.port, self.host_keys = "", "", 22, []
        self.address_from, self.listed_from = 0.0, 0.0
        self.bills = []
        self.traits = {}       # from faults: {"unhealthy": True, "gpu": "802"}
        self.notice = None     # {"action": "terminate", "at": moment}
        self.hook_done = False
        self.extra = {}        # private data of the face

    def alive(self):
        """Returns whether the provider runs the machine, which "0 live machines" counts."""
        return self.state in ("booting", "running", "ending")

    def billed(self):
        return any(bill.end is None and bill.rate > 0 for bill in self.bills)

    def micros(self, now):
        return round(sum(bill.micros(now) for bill in self.bills))

    def stop_bills(self, now, keep=()):
        for bill in self.bills:
            if bill.end is None and bill.what not in keep:
                bill.end = now

    def view(self, now):
        keep = ("face", "id", "name", "type", "region", "zone", "spot", "state", "why", "launched", "running_at",
                "ended", "tags", "user_data", "public_key", "env", "image", "gpu", "gpus", "disk_gb", "address",
                "private_address", "port", "traits", "notice")
        seen = {name: getattr(self, name) for name in keep}
        return {**seen, "alive": self.alive(), "billed": self.billed(), "micros": self.micros(now),
                "lived_s": (now if self.ended is None else self.ended) - self.launched,
                "bills": [bill.view(now) for bill in self.bills]}


class World:
    """All state, under one lock. Faces hold the lock while they answer; hooks run without it, on their own threads.

    on_launch(machine) -> {"address", "private_address", "port", "host_keys"} or None for 127.0.0.1: during
    this call, the machine boots. on_end(machine): the machine has ended. on_notice(machine, seconds): preemption.
    """

    def __init__(self, catalog=CATALOG):
        self.clock = Clock()
        self.lock = threading.RLock()
        self.changed = threading.Condition(self.lock)
        self.catalog = json.loads(pathlib.Path(catalog).read_text(encoding="utf-8"))
        self.random = random.Random(1)
        self.machines = {}
        self.settings = {"boot_s": 0.3, "end_s": 0.2, "operation_s": 0.1, "limits": 1.0, "address": "127.0.0.1",
                         "port": 22, "gce_capacity_s": 0.3, "listed_terminated_s": 3600, "max_run_late_s": 0.0,
                         "gce_denied": [], "page_most": 5000, "spot_role": True}
        self.on_launch = self.on_end = self.on_notice = None
        self.errors = []       # of hooks
        self._events, self._order = [], itertools.count()
        self._stop = False
        self._thread = threading.Thread(target=self._run, daemon=True)
        self._thread.start()

    def now(self):
        return self.clock.now()

    def wall(self):
        return self.clock.wall()

    def ident(self, prefix, digits=17):
        return prefix + "".join(self.random.choice("0123456789abcdef") for _ in range(digits))

    def close(self):
        with self.lock:
            self._stop = True
            self.changed.notify_all()
        self._thread.join(10)

    # Events, by the providers' time.

    def after(self, seconds, what):
        """Runs what() after this time, with the lock held."""
        with self.lock:
            heapq.heappush(self._events, (self.now() + seconds, next(self._order), what))
            self.changed.notify_all()

    def advance(self, seconds=0.0, scale=None, skew=None):
        """Advances the time at once. Events that become due run in order, each at its own moment."""
        with self.lock:
            target = self.now() + seconds
            while self._events and self._events[0][0] <= target:
                self.clock.change(advance=max(0.0, self._events[0][0] - self.now()))
                self.happen()
            self.clock.change(scale=scale, advance=max(0.0, target - self.now()))
            if skew is not None:
                self.clock.skew = float(skew)
            self.happen()
            self.changed.notify_all()

    def happen(self):
        """Runs all due events."""
        with self.lock:
            while self._events and self._events[0][0] <= self.now():
                heapq.heappop(self._events)[2]()
                self.changed.notify_all()

    def _run(self):
        with self.lock:
            while not self._stop:
                self.happen()
                wait = self.clock.real_seconds_until(self._events[0][0]) if self._events else None
                self.changed.wait(wait)

    # Machines.

    def launch(self, machine, rates, minimum_s, traits):
        """Starts the bills. rates: [(what, micro-USD per hour)]; traits: from faults."""
        with self.lock:
            machine.launched = self.now()
            machine.bills = [Bill(what, rate, self.now(), minimum_s) for what, rate in rates]
            machine.traits = dict(traits)
            machine.address_from = self.now() + traits.get("no_address_s", 0)
            machine.listed_from = self.now() + traits.get("not_listed_s", 0)
            self.machines[machine.id] = machine
            if "dies" in traits:
                self.after(traits.get("dies_after_s", self.settings["boot_s"]),
                           lambda: self.end(machine, traits["dies"]))
            else:
                threading.Thread(target=self._boot, args=(machine,), daemon=True).start()

    def _boot(self, machine):
        due = machine.launched + machine.traits.get("boot_s", self.settings["boot_s"])
        given = {}
        if self.on_launch is not None:
            try:
                given = self.on_launch(machine) or {}
            except Exception:  # the test's hook failed: record the error; the machine does not come up
                with self.lock:
                    # The end of a test kills machines that were terminated during their boot.
                    if machine.state not in ("ending", "gone"):
                        self.errors.append(traceback.format_exc())
                    self.end(machine, "Server.InternalError")
                return
        with self.lock:
            machine.address = given.get("address", self.settings["address"])
            machine.private_address = given.get("private_address", machine.address)
            machine.port = given.get("port", self.settings["port"])
            machine.host_keys = given.get("host_keys", [])
            machine.hook_done = True
            if machine.extra.get("end_told"):  # ended during the boot: only now can the machine be taken down
                self._call(self.on_end, machine)
            self.after(max(0.0, due - self.now()), lambda: self._runs(machine))

    def _runs(self, machine):
        if machine.state == "booting":
            machine.state, machine.running_at = "running", self.now()

    def end(self, machine, why, keep=(), state="gone", after=None):
        """Stops the bills (except `keep`). The machine is gone, or stopped, after `end_s`."""
        with self.lock:
            if machine.state == "ending" and state == "gone":
                machine.stop_bills(self.now())
                machine.extra["final"] = "gone"
            if machine.state in ("ending", "gone") or (machine.state == "stopped" and state == "stopped"):
                return
            was_alive = machine.alive()
            machine.stop_bills(self.now(), keep)
            machine.why, machine.ended = why, machine.ended or self.now()
            machine.state = "ending" if was_alive else state
            if was_alive:
                self.after(self.settings["end_s"] if after is None else after, lambda: self._ended(machine, state))
            self.changed.notify_all()

    def _ended(self, machine, state):
        machine.state = machine.extra.get("final", state)
        machine.extra["end_told"] = True
        if machine.hook_done:
            self._call(self.on_end, machine)

    def _call(self, hook, *arguments):
        if hook is None:
            return

        def run():
            try:
                hook(*arguments)
            except Exception:
                with self.lock:
                    self.errors.append(traceback.format_exc())
        threading.Thread(target=run, daemon=True).start()

    def notify(self, machine, seconds, action="terminate"):
        """Preempts a spot machine: gives notice now, and the face ends the machine `seconds` later."""
        with self.lock:
            machine.notice = {"action": action, "at": self.now() + seconds}
            self._call(self.on_notice, machine, seconds)
            self.after(seconds, lambda: machine.extra["preempted"]() if machine.alive() else None)

    def power_off(self, machine):
        """Handles a power-off by the guest."""
        with self.lock:
            if machine.state in ("booting", "running"):
                machine.extra["powered_off"]()

    def place_foreign(self, machine, rates):
        """Adds a running machine without hooks, for machines of other users in the account."""
        with self.lock:
            machine.launched = machine.running_at = machine.address_from = machine.listed_from = self.now()
            machine.bills = [Bill(what, rate, self.now()) for what, rate in rates]
            machine.state, machine.address, machine.private_address = "running", "192.0.2.1", "10.0.0.1"
            machine.hook_done, machine.extra = True, {**machine.extra, "foreign": True}
            self.machines[machine.id] = machine
            return machine.id

    def find(self, **wanted):
        return [machine for machine in self.machines.values()
                if all(getattr(machine, name) == value for name, value in wanted.items())]

    def live(self):
        with self.lock:
            return [machine for machine in self.machines.values() if machine.alive()]

    def micros(self):
        with self.lock:
            return sum(machine.micros(self.now()) for machine in self.machines.values())
