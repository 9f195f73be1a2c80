"""Hosts with a real sshd and users with different login shells, and a client host that logs in there.

Each host has its own /etc/passwd and homes (bind mounts in its namespaces), so nothing of this machine's users is
touched. The client's keys and known hosts lie in its own home.
"""
import contextlib
import functools
import os
import pathlib
import re
import shutil
import signal
import subprocess

from harness import BINARY, BUILD, TOKEN, until

SSHD = "/usr/sbin/sshd"
SHELLS = {"bash": "/bin/bash", "dash": "/bin/dash", "zsh": "/usr/bin/zsh", "fish": "/usr/bin/fish", "csh": "/bin/tcsh"}
FIRST_UID = 2001


def make_key(path):
    subprocess.run(["ssh-keygen", "-q", "-t", "ed25519", "-N", "", "-f", path], check=True)
    return path


@functools.cache
def packed_binary(binary=BINARY):
    """Returns the binary, packed as `lockstep` packs it for a push, under its name in the client's cache. Packing for
    each test took a twentieth of all tests' CPU time."""
    notes = subprocess.run(["readelf", "--notes", binary], check=True, capture_output=True, text=True).stdout
    version = subprocess.run([BINARY, "--version"], check=True, capture_output=True, text=True).stdout.split()[-1]
    identity = re.search(r"Build ID: (\w{16})", notes)[1]
    packed = BUILD / f"tests/packed-{binary.name}/lockstep-{version}-{identity}.gz"
    if not packed.exists():
        packed.parent.mkdir(exist_ok=True)
        draft = packed.with_suffix(f".{os.getpid()}")
        with open(binary, "rb") as plain, open(draft, "wb") as out:
            subprocess.run(["gzip", "-1", "-c"], check=True, stdin=plain, stdout=out)
        draft.rename(packed)
        for old in set(packed.parent.glob("*.gz")) - {packed}:
            old.unlink(missing_ok=True)
    return packed


class SshHost:
    """One host of hosts.py with users and, if it is a server, with sshd. `users`: name -> login shell."""

    def __init__(self, host, users=None, server=True, public_key=None):
        self.host, self.name, self.addr = host, host.name, host.addr
        self.folder = host.folder / "ssh"
        self.folder.mkdir(parents=True, exist_ok=True)
        self.root_home = self.folder / "root"
        self.homes = {}
        self._accounts({"me": "/bin/bash"} if users is None else users, public_key)
        self.sshd = None
        if server:
            self.host_key = make_key(self.folder / "host_key")
            self.start_sshd()

    def _inside(self, *argv):
        self.host.inside(*argv)

    def _accounts(self, users, public_key):
        """Makes accounts for this host alone. Their homes survive switch_off()."""
        lines = [f"root:x:0:0::{self.root_home}:/bin/bash", "nobody:x:65534:65534::/nonexistent:/usr/sbin/nologin",
                 "sshd:x:100:65534::/run/sshd:/usr/sbin/nologin"]
        shadow = ["root:*:19000:0:99999:7:::", "nobody:*:19000:0:99999:7:::", "sshd:*:19000:0:99999:7:::"]
        for number, (name, shell) in enumerate(users.items()):
            home = self.folder / name
            (home / ".ssh").mkdir(parents=True)
            if public_key:
                (home / ".ssh/authorized_keys").write_text(public_key)
            self.homes[name] = home
            lines.append(f"{name}:x:{FIRST_UID + number}:{FIRST_UID + number}::/home/{name}:{shell}")
            shadow.append(f"{name}:*:19000:0:99999:7:::")
            subprocess.run(["chown", "-R", str(FIRST_UID + number), home], check=True)
        (self.root_home / ".ssh").mkdir(parents=True)
        (self.root_home / ".ssh").chmod(0o700)
        (self.folder / "passwd").write_text("\n".join(lines) + "\n")
        (self.folder / "shadow").write_text("\n".join(shadow) + "\n")
        self._mount()

    def _mount(self):
        """Mounts the homes and our passwd and shadow files in the host's mount namespace."""
        # An own /home: pytest's folders above the homes may not let other users through.
        self.host.hide("/home")
        for name, home in self.homes.items():
            self._inside("mkdir", "-p", f"/home/{name}")
            self._inside("mount", "--bind", home, f"/home/{name}")
        for name in ("passwd", "shadow"):
            self._inside("mount", "--bind", self.folder / name, f"/etc/{name}")

    def switch_off(self):
        """Pulls the power cord: no peer sees a FIN."""
        self.host.vanish()
        self.sshd = None

    def switch_on(self):
        """Starts the host again with the same name, address, key and homes, and no old process."""
        self.host.boot()
        self._mount()
        self.start_sshd()

    def start_sshd(self, *options, port=22):
        config = self.folder / "sshd_config"
        config.write_text("\n".join([
            f"Port {port}", f"ListenAddress {self.addr}", f"HostKey {self.host_key}", "UsePAM no", "StrictModes no",
            "PidFile none", "MaxStartups 200", "MaxSessions 200", "LogLevel VERBOSE", *options]) + "\n")
        pathlib.Path("/run/sshd").mkdir(exist_ok=True)
        self.sshd = self.host.start("-D", "-e", "-f", config, program=(SSHD,))
        until(lambda: "Server listening" in self.sshd.err() or self.sshd.process.poll() is not None, 10, "sshd listens")
        assert self.sshd.process.poll() is None, self.sshd.err()

    def stop_sshd(self):
        """Kills the listener and all of its sessions."""
        def gone():  # again and again: an sshd may have just started a session
            left = [pid for pid, comm in self.host.processes().items() if comm.startswith("sshd")]
            for pid in left:
                with contextlib.suppress(ProcessLookupError):
                    os.kill(pid, signal.SIGKILL)
            return not left
        until(gone, 10, f"sshd is gone from {self.name}")
        if self.sshd:
            self.sshd.process.wait(10)
            self.sshd = None

    def commands(self):
        """Returns pid -> comm of all processes here except sshd."""
        return {pid: comm for pid, comm in self.host.processes().items() if not comm.startswith("sshd")}

    def kill_all(self):
        """Kills all processes, as if the machine had been switched off. Its network stays up."""
        for pid in self.host.processes():
            with contextlib.suppress(ProcessLookupError):
                os.kill(pid, signal.SIGKILL)
        until(lambda: not self.host.processes(), 10, f"nothing runs on {self.name}")

    def nothing_left(self, deadline=15.0):
        until(lambda: not self.commands(), deadline, f"no command is left on {self.name}, but {self.commands()}")


class Client(SshHost):
    """The host where the user types: root, with a key in its ~/.ssh."""

    def __init__(self, host):
        super().__init__(host, users={}, server=False)
        self.key = make_key(self.root_home / ".ssh/id_ed25519")
        self.public_key = self.key.with_suffix(".pub").read_text()
        self.keep_packed(BINARY)
        # Short, and on this host alone: for a longer path lockstep would use /tmp, which all hosts share.
        self.runtime = pathlib.Path("/home/run")
        self._inside("mkdir", "--mode=700", self.runtime)
        self.binary = BINARY

    def keep_packed(self, binary):
        folder = self.root_home / ".cache/lockstep/push"
        folder.mkdir(mode=0o700, parents=True, exist_ok=True)
        shutil.copy(packed_binary(binary), folder)

    def environment(self, env=None):
        """Returns variables. LOCKSTEP_SSH_ENV makes ssh keep the token that finds processes left behind."""
        return {"HOME": self.root_home, "XDG_RUNTIME_DIR": self.runtime, "SSH_AUTH_SOCK": None,
                "LOCKSTEP_SSH_ENV": TOKEN, **(env or {})}

    def start(self, *args, env=None, program=None, **options):
        return self.host.start(*args, env=self.environment(env), program=program or (self.binary,), **options)

    def run(self, *args, timeout=60.0, **options):
        return self.start(*args, **options).wait(timeout)

    def exec(self, where, *command, options=(), **more):
        return self.run("exec", *options, where, "--", *command, **more)

    def forget_masters(self):
        """Ends all ssh masters, so that no connection is kept."""
        for pid, comm in self.host.processes().items():
            if comm == "ssh":
                with contextlib.suppress(ProcessLookupError):
                    os.kill(pid, signal.SIGKILL)
        until(lambda: "ssh" not in self.host.processes().values(), 10, "no ssh is left")
        self._inside("rm", "-rf", self.runtime / "lockstep")


class SshWorld:
    """The client and servers of a test, made by `world(count, users=...)`."""

    def __init__(self, hosts):
        self.hosts = hosts
        self.servers = []
        self.client = None

    def __call__(self, count=1, users=None):
        if self.client is None:
            self.client = Client(self.hosts(1)[0])
        new = [SshHost(host, users, public_key=self.client.public_key) for host in self.hosts(count)]
        self.servers += new
        return (self.client, *new)

    def close(self):
        """Kills sshd and kept connections. Returns the other processes that were still there."""
        left = {}
        for server in self.servers:
            if server.host.up:
                with contextlib.suppress(AssertionError):
                    server.nothing_left()
                left.update(server.commands())
            server.stop_sshd()
        if self.client and self.client.host.up:
            self.client.forget_masters()
        return left
