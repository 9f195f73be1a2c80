"""Several hosts on one machine: each its own network, host name, processes and /etc/hosts.

A host is a set of namespaces (network, UTS, mount, IPC, PID) held by one small process; hosts are joined by a
bridge that lives in a network namespace of its own. Nothing has a name that another test could also use, and
nothing outlives the test: the holders end when the pipe from the test does, and the kernel then kills all that
runs on the host and takes the network down. So a crashed test leaves nothing to sweep.

A cut drops every frame (ARP too) where it enters, at the bridge's port and at the host's own interface: no
process sees a FIN, a RST or an error, as if a cable were pulled behind a switch.
"""
import contextlib
import ctypes
import os
import pathlib
import signal
import subprocess
import uuid

from harness import BINARY, BUILD, PEERS, REPOSITORY, TOKEN, Run, Starter, children, until

NETWORK = "10.77.0"
SECOND = "10.77.1"
_HOLD = "exec env --ignore-signal=CHLD cat"  # process 1 of a host; ignoring SIGCHLD reaps its children
_libc = ctypes.CDLL(None, use_errno=True)


@contextlib.contextmanager
def _within(pid, kind):
    """Puts this thread into a namespace of process `pid`: "net", or "pid" (child processes then start there)."""
    def enter(fd):
        if _libc.setns(fd, 0) != 0:
            raise OSError(ctypes.get_errno(), f"setns to the {kind} namespace of {pid}")
    with open(f"/proc/thread-self/ns/{kind}") as ours, open(f"/proc/{pid}/ns/{kind}") as theirs:
        enter(theirs.fileno())
        try:
            yield
        finally:
            enter(ours.fileno())


def _must(argv, text=None):
    done = subprocess.run([str(part) for part in argv], input=text, text=True, capture_output=True)
    assert done.returncode == 0, f"{' '.join(map(str, argv))}\n{text or ''}{done.stderr}"
    return done.stdout


# Mounts an empty tmpfs over a folder. Only the folders inside that are named after it stay visible.
_HIDE = """
hidden=$1; shift
mount --rbind "$hidden" /mnt
mount -t tmpfs tmpfs "$hidden"
for kept; do mkdir -p "$kept"; mount --rbind "/mnt${kept#"$hidden"}" "$kept"; done
umount -l /mnt
"""


class Holder:
    """A process that only keeps its namespaces. It ends when its stdin closes, so also when this process ends."""

    def __init__(self, *unshare, setup="", enter=()):
        """enter: options for nsenter, to enter namespaces of another holder first. That holder must stay alive."""
        fork = "--fork" in unshare
        first = ["nsenter", *enter] if enter else []
        self.process = subprocess.Popen([*first, "unshare", *unshare, "sh", "-ec", f"{setup}\necho ready\n{_HOLD}"],
                                        stdin=subprocess.PIPE, stdout=subprocess.PIPE, bufsize=0, process_group=0)
        self._fork = fork
        self.pid = self.process.pid

    def ready(self):
        line = self.process.stdout.readline()
        assert line == b"ready\n", f"a host's holder said {line!r}"
        if self._fork:
            (self.pid,) = children(self.process.pid)
        return self

    def pids(self):
        return (self.process.pid, self.pid)  # the first may only be the parent of the second, and wait for its end

    def network_inode(self):
        return os.stat(f"/proc/{self.pid}/ns/net").st_ino

    def ip(self, *lines):
        _must(["nsenter", "--target", self.pid, "--net", "ip", "-batch", "-"], "\n".join(lines) + "\n")

    def nft(self, *lines):
        _must(["nsenter", "--target", self.pid, "--net", "nft", "-f", "-"], "\n".join(lines) + "\n")

    def kill(self):
        """Kills process 1 of the host: the kernel then kills all processes of the host at once."""
        for pid in self.pids():
            with contextlib.suppress(ProcessLookupError):
                os.kill(pid, signal.SIGKILL)
        self.process.wait(10)
        self.process.stdin.close()
        self.process.stdout.close()


class Host(Starter):
    """One machine. `start` and `run` work as in harness.Lockstep, but on this host."""

    def __init__(self, hosts, number):
        self.hosts = hosts
        self.number = number
        self.name = f"node{number}"
        self.addr = f"{NETWORK}.{number + 10}"
        self.folder = hosts.lockstep.folder / "hosts" / self.name
        self.home, self.temp, self.logs = (self.folder / part for part in ("home", "temp", "logs"))
        for path in (self.home, self.temp):
            path.mkdir(parents=True, exist_ok=True)
        self.up = False
        self.boots = 0
        self.runs = []

    def __repr__(self):
        return self.name

    # --- power

    def _begin(self):
        hosts_file = self.hosts.hosts_file
        # A minimal Debian has no /etc/hosts, and a bind mount needs a file to cover.
        setup = ["[ -e /etc/hosts ] || touch /etc/hosts", "[ -e /etc/resolv.conf ] || touch /etc/resolv.conf",
                 f"hostname {self.name}", f"mount --bind {hosts_file} /etc/hosts", "ip link set lo up",
                 # Names come from /etc/hosts alone: an unreachable resolver would only cost time.
                 f"mount --bind {self.hosts.resolv_file} /etc/resolv.conf"]
        for peer in PEERS.glob("*/etc/hosts"):
            setup.append(f"mount --bind {hosts_file} {peer}")
        self.holder = Holder("--net", "--uts", "--mount", "--ipc", "--pid", "--fork", "--kill-child", "--mount-proc",
                             "--propagation", "private", setup="\n".join(setup))

    def inside(self, *argv):
        """Runs a command with this host's mounts (umount needs a /proc that knows its caller)."""
        subprocess.run(["nsenter", "--target", str(self.holder.pid), "--mount", "--pid", "--", *map(str, argv)],
                       check=True)

    def hide(self, folder):
        """Hides the content of a folder on this host, except the checkout, the build and the test's folder."""
        kept = {path for path in (REPOSITORY, BUILD, pathlib.Path(self.hosts.lockstep.folder))
                if path.resolve().is_relative_to(folder)}
        self.inside("sh", "-ec", _HIDE, "sh", folder, *sorted(path.resolve() for path in kept))

    def _plug(self, nic=0):
        # A new port name after every boot: the kernel takes its time to remove the port of a dead host.
        port, device = f"h{self.number}n{nic}b{self.boots}", f"eth{nic}"
        address = f"{(NETWORK, SECOND)[nic]}.{self.number + 10}"
        self.hosts.switch.ip(f"link add {port} type veth peer name {device} netns {self.holder.pid}",
                             f"link set {port} master br{nic} up")
        self.holder.ip(f"link set {device} address 02:00:00:00:{nic:02x}:{self.number:02x}",
                       f"address add {address}/24 dev {device}", f"link set {device} up")
        self._nics[device] = port
        return address

    def _finish(self):
        self.holder.ready()
        self.boots += 1
        self._nics, self._cut_in, self._cut_out, self.up = {}, False, False, True
        self._plug()
        self._inode = self.holder.network_inode()

    def boot(self):
        """Starts the host again after vanish(), with the same name and address, and none of the old processes."""
        assert not self.up
        self._begin()
        self._finish()

    def spoken(self, *words):
        """Returns the processes here whose command lines contain these words in a row."""
        needle = b"\0" + b"\0".join(word.encode() for word in words) + b"\0"
        found = []
        for pid in self.processes():
            with contextlib.suppress(OSError):
                if needle in pathlib.Path(f"/proc/{pid}/cmdline").read_bytes():
                    found.append(pid)
        return found

    def vanish(self):
        """Pulls the power cord: cuts the network first, so that no FIN gets out, then kills everything."""
        self.cut()
        self.off()

    def off(self):
        if self.up:
            self.up = False
            self.holder.kill()
            until(lambda: not self.processes(), 5, f"{self.name} is dead")

    # --- the network

    def second_nic(self):
        """Plugs eth1 into a second network, which all hosts with an eth1 share. Returns the address."""
        return self._plug(1)

    def _drop(self, where, device, rule):
        table = f"table netdev cut_{device}"
        where.nft(f"add {table}", f"delete {table}", *([f"{table} {{ chain in {{ type filter hook ingress device "
                                                       f'"{device}" priority 0; policy drop; }}; }}'] if rule else []))

    def _set(self, drop_in, drop_out):
        for device, port in self._nics.items():
            if drop_in != self._cut_in:
                self._drop(self.holder, device, drop_in)
            if drop_out != self._cut_out:
                self._drop(self.hosts.switch, port, drop_out)
        self._cut_in, self._cut_out = drop_in, drop_out

    def cut(self):
        """Drops all frames in both directions. Neither side sees an error."""
        self._set(True, True)

    def heal(self):
        self._set(False, False)

    def drop_in(self):
        """Drops what comes in. What this host sends still arrives."""
        self._set(True, self._cut_out)

    def drop_out(self):
        """Drops what goes out. What other hosts send still arrives."""
        self._set(self._cut_in, True)

    def network(self):
        """Sockets that are made in this context belong to this host."""
        return _within(self.holder.pid, "net")

    # --- processes

    def start(self, *args, env=None, cwd=None, program=(BINARY, "run"), token=None, **popen):
        """harness.Lockstep.start on this host; `lockstep run` gets a log directory of the host's own."""
        assert self.up, f"{self.name} is off"
        args = list(args)
        if tuple(program) == (BINARY, "run") and not any(str(a).startswith("--log-dir") for a in args):
            args = ["--log-dir", self.logs, *args]
        lockstep = self.hosts.lockstep
        token = token or uuid.uuid4().hex
        full = lockstep.environment({"HOME": self.home, "TMPDIR": self.temp, **(env or {})})
        full[TOKEN] = token
        enter = ["nsenter", "--target", self.holder.pid, "--net", "--uts", "--mount", "--ipc",
                 f"--wdns={cwd or lockstep.work}", "--"]
        with _within(self.holder.pid, "pid"):
            run = Run([*enter, *program, *args], self.folder, token, full, "/", **popen)
        self.runs.append(run)
        lockstep.runs.append(run)
        return run

    def processes(self):
        """Returns pid -> comm of all processes on this host, except the holder."""
        found = {}
        for entry in os.scandir("/proc"):
            try:
                if not entry.name.isdigit() or os.stat(f"/proc/{entry.name}/ns/net").st_ino != self._inode:
                    continue
                with open(f"/proc/{entry.name}/stat") as file:
                    pid_comm, _, rest = file.read().rpartition(")")
                if rest.split()[0] not in "ZX" and int(entry.name) not in self.holder.pids():
                    found[int(entry.name)] = pid_comm.partition("(")[2]
            except OSError:
                continue
        return found

    def agent(self):
        """Waits for the only agent on this host, and returns its pid."""
        def look():
            agents = [pid for pid, comm in self.processes().items() if comm == "lockstep-agent"]
            return len(agents) == 1 and agents[0]
        return until(look, what=f"an agent on {self.name}")

    def outer(self, local):
        """Returns our pid of the process whose pid on this host is `local`."""
        for pid in self.processes():
            with contextlib.suppress(OSError, StopIteration):
                with open(f"/proc/{pid}/status") as file:
                    numbers = next(line for line in file if line.startswith("NSpid:")).split()
                if int(numbers[2]) == local:
                    return pid
        return None

    def freeze(self, pid):
        """Sends SIGSTOP, and returns once the process has stopped."""
        os.kill(pid, signal.SIGSTOP)

        def stopped():
            with open(f"/proc/{pid}/stat") as file:
                return file.read().rpartition(")")[2].split()[0] == "T"
        until(stopped, what=f"{pid} stopped")

    def thaw(self, pid):
        os.kill(pid, signal.SIGCONT)


class Hosts:
    """Makes hosts on one network. At the end of a test, no process may be left on any of them."""

    def __init__(self, lockstep):
        self.lockstep = lockstep
        self.all = []
        self.switch = None
        self.hosts_file = lockstep.folder / "etc-hosts"
        self.resolv_file = lockstep.folder / "resolv.conf"
        self.resolv_file.touch()
        self.hosts_file.touch()

    def __call__(self, count):
        """Makes `count` more hosts."""
        if self.switch is None:
            self.switch = Holder("--net").ready()
            self.switch.ip("link set lo up", "link add br0 type bridge", "link set br0 up", "link add br1 type bridge",
                           "link set br1 up")
        new = [Host(self, len(self.all) + number) for number in range(count)]
        self.all += new
        lines = ["127.0.0.1 localhost", *(f"{host.addr} {host.name}" for host in self.all)]
        self.hosts_file.write_text("\n".join(lines) + "\n")
        for host in new:
            host._begin()
        for host in new:
            host._finish()
        return new

    def processes(self):
        """Returns host -> its processes, for the hosts that have any."""
        return {host: left for host in self.all if host.up and (left := host.processes())}

    def none_left(self, deadline=5.0):
        until(lambda: not self.processes(), deadline, f"nothing left on any host, but {self.processes()}")

    def close(self):
        left = self.processes()
        for host in self.all:
            host.off()
        if self.switch:
            self.switch.kill()
        return left
