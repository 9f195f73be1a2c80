"""Named clusters and single hosts, with the requests to them."""
import json
import os
import shlex
import sys
import threading
from typing import Any, Dict, List, Mapping, NamedTuple, Optional, Sequence, Set, Tuple, Union

from lockstep import _program
from lockstep._errors import CommandError, LockstepError
from lockstep._project import find_root, inside, name_on_hosts

_CREDENTIALS = ("ssh_user", "ssh_private_key")
# Specs with files of the project, which may have changed. The host decides about running them again.
_LOCAL_SPECS = ("pip:", "reqs:", "conda:", "local:", "wheel:")


class CommandResult(NamedTuple):
    code: int
    output: str
    stderr: str


class Cluster:
    """Made by `lockstep.cluster()`. Contacts hosts only when a method needs them."""

    def __init__(self, where: str, project: Optional[str] = None, one_host: bool = False,
                 options: Sequence[str] = ()) -> None:
        self.where = where  # name of the cluster, or the single host
        self._one_host = one_host or "@" in where
        self._options = list(options)
        self._project = None if project is None else os.path.realpath(project)
        self._placed: Set[str] = set()  # projects that this object has sent to the hosts
        self._installed: Set[Tuple[str, ...]] = set()
        self._lock = threading.Lock()

    def __repr__(self) -> str:
        return f"<lockstep cluster {self.where}>"

    @property
    def project(self) -> str:
        """The local folder for `sync`: git's top folder, else the current folder."""
        return self._project or find_root(os.getcwd())

    def hosts(self) -> List[Dict[str, Any]]:
        """Returns the nodes of a named cluster, as `lockstep cluster show --json` prints them."""
        if self._one_host:
            return [{"host": self.where}]
        known = _program.ask(["cluster", "show", self.where, "--json"])
        nodes: List[Dict[str, Any]] = known["nodes"]
        return nodes

    def sync(self, path: Optional[str] = None, to: Optional[str] = None) -> Dict[str, Any]:
        """Sends a folder (default: the project) to all nodes. Returns what was sent. Raises LockstepError.

        to: the destination on the hosts, relative to the home or absolute.
        """
        if path is None and to is None:
            return self._sync_found(self.project)
        return self._sync(os.path.realpath(path or self.project), to)

    def _sync_found(self, root: str) -> Dict[str, Any]:
        """Sends a folder found, not named. The binary finds the folder again, and refuses the home and the like."""
        return self._sync(root, None, named=root == self._project)

    def _sync(self, source: str, to: Optional[str], named: bool = True) -> Dict[str, Any]:
        self.ready()
        words = [source if to is None else f"{source}:{to}"] if named else []
        with self._lock:
            report: Dict[str, Any] = _program.ask(["sync", self.where, *self._options, "--json", *words],
                                                  cwd=None if named else source)
            if to is None:
                self._placed.add(source)
        return report

    def install_packages(self, packages: Sequence[str], stream_logs: bool = True, options: Sequence[str] = ()) -> Any:
        """Sends the project and installs packages into its environment. Returns `lockstep install --json`.

        packages: specs of `lockstep install`: "pip:./", "reqs:./", "conda:FILE", "torch --index-url URL", ...
        Raises LockstepError with the last lines of a failed step.
        """
        if isinstance(packages, str):
            raise TypeError("packages must be a list, as in install_packages(['numpy'])")
        specs = list(packages)
        self.sync()
        if not specs:
            return []
        with self._lock:
            answer = _program.ask(["install", self.where, *self._options, "--json", "--project", self.project, *options,
                                   *specs], stream_errors=stream_logs)
            self._installed.add((self.project, *specs))
        return answer

    @property
    def folder(self) -> str:
        """The project's folder on the hosts, relative to the home."""
        return name_on_hosts(self.project)

    def up_if_not(self, stream_logs: bool = True) -> "Cluster":
        """Does nothing: your own hosts are always up. Lets a script work with rented machines, too."""
        return self

    def run(self, commands: Sequence[Union[str, Sequence[str]]], stream_logs: bool = True, check: bool = True,
            nodes: Optional[str] = None, cwd: Optional[str] = None) -> List[CommandResult]:
        """Runs commands one after the other, on all nodes or on `nodes` ("0", "1-3"). A failure does not stop the rest.

        A text runs in /bin/sh on the host; a list is a program with its arguments. Commands run in the home, or in
        `cwd` below it (gpu.folder: the project's), and in the project's environment once this object has sent it.
        Returns one result per command. After the last command, raises CommandError if one has failed, unless
        check=False; the error has all results.
        """
        if isinstance(commands, str):
            raise TypeError("commands must be a list, as in run(['nvidia-smi'])")
        self.ready()
        results: List[CommandResult] = []
        for command in commands:
            arguments = self._exec_arguments(command, nodes, cwd)
            results.append(CommandResult(*_program.run(arguments, stream=stream_logs)))
        failed = [(command, result) for command, result in zip(commands, results) if result.code != 0]
        if failed and check:
            command, result = failed[0]
            said = result.stderr.strip().splitlines()
            raise CommandError(f"{_shown(command)} on {self.where} ended with code {result.code}" +
                               (f": {said[-1]}" if said else ""), result.code, results)
        return results

    def _exec_arguments(self, command: Union[str, Sequence[str]], nodes: Optional[str], cwd: Optional[str]
                        ) -> List[str]:
        arguments = ["exec", "--no-stdin", *self._options]
        if nodes is not None:
            arguments += ["--nodes", nodes]
        if self.project in self._placed:
            # The environment depends on the folder: start in the project, and let the shell change to cwd.
            arguments += ["--cwd", self.folder, "--in-project"]
            way = f"cd && cd -- {shlex.quote(cwd or '.')} || exit"
            if isinstance(command, str):
                command = f"{way}\n{command}"
            else:
                command = ["/bin/sh", "-c", way + '\nexec "$@"', "sh", *command]
        elif cwd is not None:
            arguments += ["--cwd", cwd]
        if isinstance(command, str):
            return [*arguments, "--shell", command, self.where]
        return [*arguments, self.where, "--", *command]

    def status(self) -> Dict[str, Any]:
        """Returns the report of `lockstep cluster check --json`: the nodes, with everything in the way of a job."""
        ended = _program.run(["cluster", "check", self.where, *self._options, "--json"])
        if not ended.output.strip():
            raise LockstepError(ended.stderr.strip(), ended.code)
        status: Dict[str, Any] = json.loads(ended.output)
        return status

    # For functions.

    def ready(self) -> None:
        """Called before hosts are used. Machines on demand are rented here."""

    def forget(self) -> None:
        """Called when the name now means other machines, which have nothing from this object yet."""
        with self._lock:
            self._placed.clear()
            self._installed.clear()

    def bring(self, root: Optional[str], specs: Sequence[str], again: bool) -> None:
        """Sends the project and its packages before a call. again: also if done before, because files may change."""
        if root is None and not specs:
            return
        root = root or self.project
        if again or root not in self._placed:
            self._sync_found(root)
        key = (root, *specs)
        local = any(spec.startswith(_LOCAL_SPECS) for spec in specs)
        with self._lock:
            if specs and (key not in self._installed or (again and local)):
                _program.ask(["install", self.where, *self._options, "--json", "--project", root, *specs],
                             stream_errors=True)
                self._installed.add(key)

    def call_arguments(self, node: int, folder: str) -> List[str]:
        numbers = [] if self._one_host else ["--nodes", str(node)]
        return [self.where, *self._options, *numbers, "--cwd", folder]

    def folder_on_hosts(self, root: Optional[str]) -> Tuple[str, str]:
        """Returns a function's working folder relative to the home, and the way from there up to the project."""
        if root is None:
            return ".", "."
        here = os.path.realpath(os.getcwd())
        below = os.path.relpath(here, root) if inside(here, root) else "."
        up = "." if below == "." else "/".join([".."] * (below.count("/") + 1))
        return os.path.normpath(os.path.join(name_on_hosts(root), below)), up


def _shown(command: Union[str, Sequence[str]]) -> str:
    text = command if isinstance(command, str) else " ".join(shlex.quote(word) for word in command)
    line = text.strip().split("\n")[0]
    return line if len(line) <= 80 else f"{line[:77]}..."


def _host_text(address: str, user: Optional[str]) -> str:
    return address if user is None or "@" in address else f"{user}@{address}"


def _options_of(ssh_creds: Mapping[str, str]) -> Tuple[Optional[str], Optional[str]]:
    for name in ssh_creds:
        if name not in _CREDENTIALS:
            raise LockstepError(f"ssh_creds has {name!r}; it may have {' and '.join(_CREDENTIALS)}; other ways to log "
                                "in are ssh's own (~/.ssh/config, the agent)")
    key = ssh_creds.get("ssh_private_key")
    return ssh_creds.get("ssh_user"), None if key is None else os.path.abspath(os.path.expanduser(key))


def _known(name: str) -> Optional[List[Dict[str, Any]]]:
    for known in _program.ask(["cluster", "list", "--json"]):
        if known["name"] == name:
            nodes: List[Dict[str, Any]] = known["nodes"]
            return nodes
    return None


def _node_text(node: Dict[str, Any]) -> str:
    host = node["host"] if node.get("port") is None else f"{node['host']}:{node['port']}"
    return f"{node['user']}@{host}" if node.get("user") else str(host)


def _same(nodes: List[Dict[str, Any]], hosts: List[str], key: Optional[str]) -> bool:
    return [_node_text(node) for node in nodes] == hosts and all(node.get("key_path") == key for node in nodes)


def _rented(name: Optional[str], project: Optional[str], own: Mapping[str, object],
            rented: Mapping[str, object]) -> Cluster:
    """Returns the cluster for cluster()'s options of machines on demand."""
    from lockstep._ondemand import ondemand_cluster

    ours = [key for key, value in own.items() if value]
    theirs = [key for key, value in rented.items() if value is not None]
    if ours:
        raise LockstepError(f"{ours[0]} and {theirs[0]} exclude each other: {ours[0]} is for hosts of your own, "
                            f"{theirs[0]} for rented machines; leave out {' and '.join(ours)}, or "
                            f"{' and '.join(theirs)}")
    if "instance_type" not in theirs:
        raise LockstepError(f"{theirs[0]} is for rented machines; say which: instance_type='A100:1'")
    if name is None:
        raise LockstepError("rented machines need a name: name=")
    more: Dict[str, Any] = {key: rented[key] for key in theirs}
    return ondemand_cluster(name, project=project, **more)


def cluster(name: Optional[str] = None, ips: Optional[Sequence[str]] = None,
            ssh_creds: Optional[Mapping[str, str]] = None, project: Optional[str] = None,
            replace: bool = True, instance_type: Optional[str] = None,
            provider: Union[str, Sequence[str], None] = None, use_spot: Union[bool, str, None] = None) -> Cluster:
    """Returns your own hosts as a cluster, or machines that are rented at their first use.

    name: a known cluster (`lockstep cluster add`), or with `ips` the name to store them under.
    ips: addresses, names or [USER@]HOST[:PORT]. Without a name only one is allowed, and nothing is stored; "localhost"
        is then this machine, without ssh, unless ssh_creds say how to log in.
    ssh_creds: {"ssh_user": ..., "ssh_private_key": FILE}. ssh decides about missing entries.
    project: the local folder to send. Default: git's top folder, else the current one.
    replace: if the name is known with other hosts, replace them and say so on stderr. False: raise LockstepError.
    instance_type, provider, use_spot: machines on demand, see ondemand_cluster(), which has more options.
        Raises LockstepError together with ips or ssh_creds, whatever their values.
    """
    rented = {"instance_type": instance_type, "provider": provider, "use_spot": use_spot}
    if any(value is not None for value in rented.values()):
        return _rented(name, project, {"ips": ips is not None, "ssh_creds": ssh_creds is not None}, rented)
    user, key = _options_of(ssh_creds or {})
    hosts = [_host_text(address, user) for address in ([ips] if isinstance(ips, str) else ips or [])]
    if name is None:
        if len(hosts) != 1:
            raise LockstepError(f"{len(hosts)} hosts are given without a name; give name=, or one host")
        if hosts[0] == "localhost" and key is None:
            return Cluster("local", project, one_host=True)  # the binary's name of this machine: no ssh
        return Cluster(hosts[0], project, one_host=True, options=["--key-path", key] if key else [])
    if not hosts:
        if _known(name) is None:
            raise LockstepError(f"there is no cluster {name}; give its hosts as ips=[...]")
        return Cluster(name, project)
    nodes = _known(name)
    if nodes is not None and _same(nodes, hosts, key):
        return Cluster(name, project)
    if nodes is not None and not replace:
        raise LockstepError(f"there is a cluster {name} already, with other hosts or another key; leave out "
                            "replace=False, or give another name")
    more = [*(["--key-path", key] if key else []), *(["--replace"] if nodes is not None else [])]
    ended = _program.run(["cluster", "add", name, *[f"--host={host}" for host in hosts], *more])
    if ended.code != 0 and not _same(_known(name) or [], hosts, key):  # another program may have been faster
        raise LockstepError(_program.error_text(ended.stderr, f"cluster {name} cannot be added"), ended.code)
    if nodes is not None:
        before = ", ".join(_node_text(node) for node in nodes) or "without hosts"
        print(f"lockstep: cluster {name} is now {', '.join(hosts)}; it was {before}", file=sys.stderr)
    return Cluster(name, project)
