"""A real Slurm cluster on hosts of hosts.py: munged and slurmctld on a login host, and slurmd on each compute host.

All its files lie in the test's folder, which all hosts share. It needs no cgroups, systemd or outside network. All
processes of a host end when the host is switched off (`power_cut`), as on a real machine.
"""
import json
import os
import pathlib
import re
import socket
import stat

from harness import BINARY, skip, until

SBIN = "/usr/sbin"
# A debootstrap folder of another Debian with slurm-wlm and munge, whose /usr all hosts get: another version of Slurm.
OTHER = os.environ.get("LOCKSTEP_SLURM_ROOT")
KILL_WAIT = 5


class SlurmCluster:
    """`count` compute hosts and a login host; `login` is a hosts.Host."""

    def __init__(self, hosts, count=4, cpus=8, gpus=8, memory=4000, cred_expire=5, extra=()):
        if OTHER and not pathlib.Path(OTHER, "usr/sbin/slurmctld").exists():
            skip(f"no slurmctld in {OTHER}: run ./dev peers, or install slurm-wlm and munge there")
        self.hosts = hosts
        self.login, *self.nodes = hosts(count + 1)
        self.folder = hosts.lockstep.folder / "slurm"
        for part in ("etc", "run", "log", "state", "dev", "bad", "munge"):
            (self.folder / part).mkdir(parents=True)
        (self.folder / "munge").chmod(0o700)
        self.home = self.folder / "home"  # shared by all hosts
        self.home.mkdir()
        self.work = self.folder / "work"
        self.work.mkdir()
        self._configure(cpus, gpus, memory, cred_expire, extra)
        self.daemons = {}
        for host in (self.login, *self.nodes):
            self._own_tmp(host)
        self._munged()
        self.start_controller()
        for node in self.nodes:
            self.start_node(node)
        self.ready()

    def _configure(self, cpus, gpus, memory, cred_expire, extra):
        for number in range(gpus):
            os.mknod(self.folder / f"dev/fakegpu{number}", 0o666 | stat.S_IFCHR, os.makedev(1, 3))
        (self.folder / "munge/key").write_bytes(os.urandom(1024))
        (self.folder / "munge/key").chmod(0o400)
        prolog = self.folder / "etc/prolog"
        prolog.write_text(f'#!/bin/sh\n[ ! -e {self.folder}/bad/"$SLURMD_NODENAME" ]\n')
        prolog.chmod(0o755)
        names = ",".join(node.name for node in self.nodes)
        lines = ["ClusterName=testbed", f"SlurmctldHost={self.login.name}({self.login.addr})", "SlurmUser=root",
                 "SlurmdUser=root", "AuthType=auth/munge",
                 f"AuthInfo=socket={self.folder}/run/munge.socket,cred_expire={cred_expire}",
                 f"StateSaveLocation={self.folder}/state", "SlurmdSpoolDir=/tmp/slurmd",  # sockets: short
                 f"SlurmctldPidFile={self.folder}/run/slurmctld.pid", f"SlurmdPidFile={self.folder}/run/slurmd-%n.pid",
                 f"SlurmctldLogFile={self.folder}/log/slurmctld.log", f"SlurmdLogFile={self.folder}/log/slurmd-%n.log",
                 # One machine pretends to be several, without cgroups.
                 "SlurmdParameters=config_overrides", "ProctrackType=proctrack/linuxproc", "TaskPlugin=task/none",
                 "JobAcctGatherType=jobacct_gather/none", "MpiDefault=none", "SelectType=select/cons_tres",
                 "SelectTypeParameters=CR_Core_Memory", "DefMemPerCPU=100", "GresTypes=gpu", "ReturnToService=2",
                 "MailProg=/bin/true",
                 # Fast clocks.
                 "SlurmctldTimeout=10", "SlurmdTimeout=10", f"KillWait={KILL_WAIT}", "MinJobAge=600",
                 "BatchStartTimeout=10", "SchedulerType=sched/backfill",
                 "SchedulerParameters=batch_sched_delay=0,bf_interval=1,sched_interval=2",
                 "JobRequeue=1", "PreemptType=preempt/partition_prio", "PreemptMode=REQUEUE",
                 "AccountingStorageType=accounting_storage/none", f"Prolog={prolog}", "PrologFlags=Alloc",
                 *(f"NodeName={node.name} NodeAddr={node.addr} CPUs={cpus} Boards=1 SocketsPerBoard=1 "
                   f"CoresPerSocket={cpus} ThreadsPerCore=1 RealMemory={memory} Gres=gpu:fake:{gpus} State=UNKNOWN"
                   for node in self.nodes),
                 f"PartitionName=gpu Nodes={names} Default=YES MaxTime=INFINITE State=UP PriorityTier=1 "
                 "PreemptMode=REQUEUE GraceTime=3",
                 f"PartitionName=urgent Nodes={names} MaxTime=INFINITE State=UP PriorityTier=10 PreemptMode=OFF",
                 *extra]
        (self.folder / "etc/slurm.conf").write_text("\n".join(lines) + "\n")
        (self.folder / "etc/gres.conf").write_text(
            f"NodeName={names} Name=gpu Type=fake File={self.folder}/dev/fakegpu[0-{gpus - 1}]\n" if gpus else "")
        # "quick": importing PyTorch on several hosts at once takes long, since all are this machine.
        self.env = {"SLURM_CONF": self.folder / "etc/slurm.conf", "HOME": self.home, "LOCKSTEP_PREFLIGHT": "quick",
                    "PATH": f"{os.environ['PATH']}:/usr/sbin:/sbin"}

    # --- daemons

    def _daemon(self, host, *argv):
        program, *words = argv
        return host.start(*words, program=(f"{SBIN}/{program}",), env=self.env, cwd=self.folder)

    def _own_tmp(self, host):
        """Gives the host its own /tmp. The checkout and the test's folder stay visible if they lie in /tmp."""
        if OTHER:
            host.inside("mount", "--bind", f"{OTHER}/usr", "/usr")
        host.hide("/tmp")

    def _munged(self):
        munge, socket = self.folder / "munge", self.folder / "run/munge.socket"
        self.daemons["munged"] = self._daemon(
            self.login, "munged", "--foreground", "--force", f"--key-file={munge}/key", f"--socket={socket}",
            f"--pid-file={self.folder}/run/munged.pid", f"--log-file={self.folder}/log/munged.log",
            f"--seed-file={munge}/seed")
        until(socket.exists, 20, "munged listens")

    def start_controller(self):
        self.daemons["slurmctld"] = self._daemon(self.login, "slurmctld", "-D")

    def stop_controller(self):
        self.daemons.pop("slurmctld").kill()

    def start_node(self, node):
        self.daemons[node.name] = self._daemon(node, "slurmd", "-D", "-N", node.name)

    def power_cut(self, node):
        node.vanish()

    def power_on(self, node):
        node.boot()
        self._own_tmp(node)
        self.start_node(node)

    def bad_prolog(self, node, bad=True):
        mark = self.folder / "bad" / node.name
        mark.touch() if bad else mark.unlink()

    def node_states(self):
        """Returns node name -> state from sinfo."""
        listed = self.slurm("sinfo", "-h", "-N", "-p", "gpu", "-o", "%N %T", check=False).out
        return dict(line.split() for line in listed.splitlines())

    def ready(self, nodes=None):
        names = {node.name for node in (self.nodes if nodes is None else nodes)}
        until(lambda: names <= {name for name, state in self.node_states().items() if state == "idle"}, 60,
              f"{names} are idle, but {self.node_states()}")

    # --- commands of a user on the login host

    def start(self, *args, program=(BINARY,), env=None, cwd=None, **options):
        return self.login.start(*args, program=program, env={**self.env, **(env or {})}, cwd=cwd or self.work,
                                **options)

    def run(self, *args, timeout=120.0, **options):
        return self.start(*args, **options).wait(timeout)

    def slurm(self, program, *args, check=True, timeout=60.0, **options):
        """Runs a command of Slurm on the login host."""
        ended = self.run(*args, program=(f"/usr/bin/{program}",), timeout=timeout, **options)
        assert not check or ended.rc == 0, ended
        return ended

    def script(self, name, text):
        path = pathlib.Path(self.work) / name
        path.write_text(text)
        path.chmod(0o755)
        return path

    def job(self, number):
        """Returns field -> value of `scontrol show job`."""
        told = self.slurm("scontrol", "-o", "show", "job", number, check=False).out
        return dict(word.split("=", 1) for word in told.split() if "=" in word)

    def close(self):
        """Cancels all jobs and ends the daemons. A process that is left on a host then comes from a job."""
        # A newer scancel asks a stopped controller for ever, so timeout ends that scancel.
        self.run("20", "/usr/bin/scancel", "--full", "-u", "root", program=("/usr/bin/timeout",))
        for host in self.nodes:
            if host.up:
                until(lambda host=host: not self._of_jobs(host), 30,
                      f"jobs' processes are gone from {host.name}: {self._of_jobs(host)}")
        for run in self.daemons.values():
            if run.process.poll() is None:
                run.kill()

    @staticmethod
    def _of_jobs(host):
        return {pid: comm for pid, comm in host.processes().items() if comm not in ("slurmd", "munged")}


class Page:
    """A `lockstep page` on a host, and requests from the same host."""

    def __init__(self, start, host, *words):
        self.host = host
        self.run = start("page", *words)
        address = until(lambda: re.search(r"http://\S+?(?=\W*$)", self.run.out()), 60,
                        f"the address is printed: {self.run.err()}")[0]
        self.port, self.token = re.fullmatch(r"http://127\.0\.0\.1:(\d+)/\?token=(\S+)", address).groups()

    def connect(self):
        with self.host.network():
            return socket.create_connection(("127.0.0.1", int(self.port)), 20)

    def get(self, target, token=None):
        """Returns the status and the body of the answer."""
        with self.connect() as fd:
            fd.sendall(f"GET {target} HTTP/1.1\r\nHost: 127.0.0.1:{self.port}\r\nConnection: close\r\n"
                       f"Authorization: Bearer {token or self.token}\r\n\r\n".encode())
            head, _, body = b"".join(iter(lambda: fd.recv(65536), b"")).partition(b"\r\n\r\n")
        return int(head.split()[1]), body.decode()

    def state(self):
        return json.loads(self.get("/state")[1])

    def ranks(self):
        return [row["rank"] for row in self.state()["view"]["rows"]]
