"""Machines rented for a program, as a cluster."""
import math
import sys
import threading
import time
from types import TracebackType
from typing import Any, Dict, List, Optional, Sequence, Tuple, Type, Union

from lockstep import _program
from lockstep._cluster import Cluster
from lockstep._errors import LockstepError

# Seconds for renting or terminating after Ctrl-C. Killing the binary sooner would leave machines to their leases.
_GRACE = 600.0
# Seconds without a new look during which machines count as still there. Shorter for a short idle limit.
_BELIEVED = 300.0
_PERIOD = "365d"  # the maximum of `lockstep cost --since`
_MICROS = 1e6


class OnDemandCluster(Cluster):
    """Made by `lockstep.ondemand_cluster()`. Rents machines at the first use, and again at the next use after they have
    ended. As a context manager, terminates them at the end of the block, also after an exception. Otherwise they end
    when idle, at their lifetime, or when their budget is spent.
    """

    def __init__(self, name: str, wish: Sequence[str], idle_s: int, project: Optional[str] = None) -> None:
        super().__init__(name, project)
        self._wish = list(wish)  # options of `lockstep up`
        self._believed = min(_BELIEVED, idle_s / 2) if idle_s > 0 else _BELIEVED
        self._renting = threading.RLock()
        self._asked = False  # this object has asked for machines
        self._rented: Optional[Dict[str, Any]] = None  # the answer of `lockstep up --json`
        self._seen = 0.0  # time of that answer, Unix time in seconds
        self._since: Optional[int] = None  # creation of the first machines that this object used, Unix time in ms

    def __repr__(self) -> str:
        return f"<lockstep machines on demand {self.where}>"

    def __enter__(self) -> "OnDemandCluster":
        return self

    def __exit__(self, kind: Optional[Type[BaseException]], error: Optional[BaseException],
                 trace: Optional[TracebackType]) -> None:
        if not self._asked:
            return
        try:
            self._terminate_for_certain()
        except LockstepError as failure:
            if error is None:
                raise
            # The caller must see the exception that ended the block.
            print(f"lockstep: {self.where} cannot be terminated: {failure}", file=sys.stderr)

    def up_if_not(self, stream_logs: bool = True) -> "OnDemandCluster":
        """Rents the machines unless they are up; returns when all can be used. Any other use does the same.

        stream_logs: print the plan and the progress on stderr. Raises LockstepError, and rents nothing, if no provider
        has such machines (the text names similar ones), every offer exceeds max_price, or a provider refuses.
        Machines that are already up under this name are used as they are.
        """
        with self._renting:
            self._asked = True
            found: Dict[str, Any] = _program.ask(["up", self.where, *self._wish, "--yes", "--json"],
                                                 stream_errors=stream_logs, grace=_GRACE)
            if self._rented is not None and _ids(found) != _ids(self._rented):
                self.forget()
            self._rented, self._seen = found, time.time()
            self._since = min(self._since or found["created_ms"], found["created_ms"])
        return self

    def teardown(self, force: bool = False) -> None:
        """Terminates the machines, and returns once they are gone. Does nothing if none are up.

        force: also while a job runs on them; otherwise a running job raises. Raises LockstepError if a machine may be
        left; the text says when it ends by itself.
        """
        with self._renting:
            self._rented = None
            self.forget()
            if any(row["closed_ms"] == 0 for row in self._rentals()):
                _program.ask(["down", self.where, "--json", *(["--force"] if force else [])], stream_errors=True,
                             grace=_GRACE)

    def keep_warm(self, minutes: float = 60) -> None:
        """Rents the machines if they are not up, and keeps them for `minutes` from now, busy or idle. Their budget
        still ends them."""
        seconds = _seconds("minutes", minutes)
        self.ready()
        ended = _program.run(["keep", self.where, f"{seconds}s"])
        if ended.code != 0:
            raise LockstepError(_program.error_text(ended.stderr, "lockstep keep failed"), ended.code)
        self._seen = 0.0  # they now end at another time: look again

    def cost(self) -> float:
        """Returns the cost so far in USD, for all machines that this object has used, or else those now up under its
        name. Computed from the prices at renting time, without traffic and taxes."""
        rows = self._rentals()
        since = self._since
        used = [row for row in rows if row["closed_ms"] == 0 or (since is not None and row["created_ms"] >= since)]
        return float(sum(row["cost_micros"] for row in used)) / _MICROS

    # For functions and the methods of Cluster.

    def ready(self) -> None:
        with self._renting:
            there, now = self._rented, time.time()
            if there is None or not 0 <= now - self._seen < self._believed or now * 1000 >= there["ends_ms"]:
                self.up_if_not()

    def _rentals(self) -> List[Dict[str, Any]]:
        rows: List[Dict[str, Any]] = _program.ask(["cost", self.where, "--since", _PERIOD, "--json"])["rentals"]
        return rows

    def _terminate_for_certain(self) -> None:
        """Terminates, also after a Ctrl-C: that may have come before anything was requested."""
        try:
            self.teardown(force=True)
        except KeyboardInterrupt:
            self.teardown(force=True)
            raise


def _ids(rented: Dict[str, Any]) -> List[Tuple[str, str]]:
    return [(node["zone"], node["id"]) for node in rented["nodes"]]


def _number(name: str, value: Union[int, float]) -> float:
    if isinstance(value, bool) or not isinstance(value, (int, float)):
        raise TypeError(f"{name} must be a number (got {value!r})")
    if not math.isfinite(value) or value <= 0:
        raise ValueError(f"{name} must be more than 0 (got {value!r})")
    return float(value)


def _whole(name: str, value: int) -> int:
    if int(_number(name, value)) != value:
        raise ValueError(f"{name} must be a whole number (got {value!r})")
    return int(value)


def _seconds(name: str, minutes: float) -> int:
    return max(1, round(_number(name, minutes) * 60))


def _dollars(name: str, value: float) -> str:
    text = f"{_number(name, value):.6f}".rstrip("0").rstrip(".")
    if text == "0":
        raise ValueError(f"{name} must be at least a millionth of a USD (got {value!r})")
    return text


def _list_text(name: str, value: Union[str, Sequence[str]]) -> str:
    words = [value] if isinstance(value, str) else list(value)
    if not words or not all(isinstance(word, str) and word for word in words):
        raise ValueError(f"{name} must be a name, or a list of names (got {value!r})")
    return ",".join(words)


def _needs_guard(provider: Union[str, Sequence[str]]) -> bool:
    return "lambda" in (provider.split(",") if isinstance(provider, str) else provider)


def _spot_option(use_spot: Union[bool, str]) -> List[str]:
    # Refuse texts: "False" would count as true.
    if use_spot is True or use_spot is False:
        return ["--spot"] if use_spot else []
    if use_spot == "prefer":
        return ["--spot=prefer"]
    raise ValueError(f"use_spot must be True, False or 'prefer' (got {use_spot!r})")


def ondemand_cluster(name: str, instance_type: str = "A100:1", provider: Union[str, Sequence[str]] = "cheapest",
                     use_spot: Union[bool, str] = False, num_nodes: int = 1,
                     region: Union[str, Sequence[str], None] = None, autostop_mins: float = 10,
                     max_price: Optional[float] = None, budget: Optional[float] = None,
                     disk_size: Optional[int] = None, image: Optional[str] = None, project: Optional[str] = None,
                     options: Sequence[str] = ()) -> OnDemandCluster:
    """Returns machines that are rented at their first use. This call itself contacts no provider.

        with lockstep.ondemand_cluster(name="lab", instance_type="A100:1", max_price=2) as gpu:
            loss = lockstep.function(fn=train, system=gpu)(epochs=3)

    name: of the cluster, for all other commands, too: `lockstep logs`, `lockstep down lab`.
    instance_type: the GPUs of one machine, "A100:8"; `lockstep offers A100:8` lists who has them.
    provider: "aws", "gcp", "lambda", "runpod", or several; "cheapest": all providers with credentials here. Lambda's
        machines cannot terminate themselves: if named, a guard on this machine terminates them (--guard here).
    use_spot: True: only machines that the provider may take away, at spot prices; "prefer": those first.
    num_nodes: number of machines, rented all or none. They are the cluster's nodes.
    region: one region of the providers, or several.
    autostop_mins: minutes without a job, a session or work on a GPU before the machines end, at least 1;
        -1: never, only at their lifetime of 24 hours (options=["--lifetime", "6h"]).
    max_price: the most USD per hour for all nodes together, disks included. Default: no limit.
    budget: the most USD in all; the machines end before it is spent. Default: no limit.
    disk_size: GB. Default: what the image needs.
    image: the image to boot, by the provider's name. Default: the provider's newest for GPUs.
    project: the local folder to send. Default: git's top folder, else the current one.
    options: more options of `lockstep up`, as words: ["--lifetime", "6h", "--guard", "here"].

    Rents without asking: max_price and budget limit the cost. Raises TypeError or ValueError for values that cannot be
    meant; all other errors come at the first use.
    """
    never = autostop_mins == -1
    idle_s = 0 if never else _seconds("autostop_mins", autostop_mins)
    wish = [f"--gpus={instance_type}", f"--provider={_list_text('provider', provider)}", *_spot_option(use_spot),
            f"--nodes={_whole('num_nodes', num_nodes)}", f"--autostop={'never' if never else f'{idle_s}s'}"]
    if region is not None:
        wish.append(f"--region={_list_text('region', region)}")
    if max_price is not None:
        wish.append(f"--max-price={_dollars('max_price', max_price)}")
    if budget is not None:
        wish.append(f"--budget={_dollars('budget', budget)}")
    if disk_size is not None:
        wish.append(f"--disk={_whole('disk_size', disk_size)}")
    if image is not None:
        wish.append(f"--image={image}")
    if isinstance(options, str):
        raise TypeError("options must be a list, as in options=['--lifetime', '6h']")
    if _needs_guard(provider) and not any(word == "--i-will-watch" or word.startswith("--guard") for word in options):
        print(f"lockstep: lambda's machines can't end their own bill: a guard on this machine ends {name}'s when they "
              "are idle or their time is over (--guard here); for one elsewhere give options=['--guard', 'HOST']",
              file=sys.stderr)
        wish += ["--guard", "here"]
    return OnDemandCluster(name, [*wish, *options], idle_s, project)
