"""Machines that are rented for a program, as a cluster."""
import math
import sys
import threading
import time
from types import TracebackType
from typing import Any, Dict, List, Optional, Sequence, Tuple, Type, Union

from lockstep import _program
from lockstep._cluster import Cluster
from lockstep._errors import LockstepError

# Seconds that renting and giving back may take after Ctrl-C: whoever ends them sooner leaves machines to their leases.
_GRACE = 600.0
# Seconds for which machines that were seen are taken to be there still; less where they end sooner when idle.
_BELIEVED = 300.0
_PERIOD = "365d"  # the longest that `lockstep cost --since` takes
_MICROS = 1e6


class OnDemandCluster(Cluster):
    """Made by `lockstep.ondemand_cluster()`. Machines are rented at the first use, and again at the next use after they
    have ended themselves. As a context manager it gives them back at its end, whatever ends it; without one, they end
    when they are idle, at their lifetime or when their budget is spent.
    """

    def __init__(self, name: str, wish: Sequence[str], idle_s: int, project: Optional[str] = None) -> None:
        super().__init__(name, project)
        self._wish = list(wish)  # options of `lockstep up`
        self._believed = min(_BELIEVED, idle_s / 2) if idle_s > 0 else _BELIEVED
        self._renting = threading.RLock()
        self._asked = False  # for machines, by this object
        self._rented: Optional[Dict[str, Any]] = None  # as `lockstep up --json` has them
        self._seen = 0.0  # when that was, Unix time
        self._since: Optional[int] = None  # when what this object has used was rented first, Unix time in ms

    def __repr__(self) -> str:
        return f"<lockstep machines on demand {self.where}>"

    def __enter__(self) -> "OnDemandCluster":
        return self

    def __exit__(self, kind: Optional[Type[BaseException]], error: Optional[BaseException],
                 trace: Optional[TracebackType]) -> None:
        if not self._asked:
            return
        try:
            self._give_back_for_certain()
        except LockstepError as failure:
            if error is None:
                raise
            # What ended the block is what the caller has to see.
            print(f"lockstep: {self.where} was not given back: {failure}", file=sys.stderr)

    def up_if_not(self, stream_logs: bool = True) -> "OnDemandCluster":
        """Rents the machines unless they are there; returns when all of them can be used. Any use does the same.

        stream_logs: the plan, and what happens, are passed on to stderr. Raises LockstepError with the reason: nobody
        has such machines (what comes near is named), max_price is below every offer, a provider refuses; nothing is
        rented then. Machines that are rented under this name already are taken up as they are, whatever they are.
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
        """Gives the machines back and returns when they were seen gone; where nothing is rented it does nothing.

        force: also while a job runs there, which raises otherwise. Raises LockstepError where something may be left;
        the text says when that ends by itself.
        """
        with self._renting:
            self._rented = None
            self.forget()
            if any(row["closed_ms"] == 0 for row in self._rentals()):
                _program.ask(["down", self.where, "--json", *(["--force"] if force else [])], stream_errors=True,
                             grace=_GRACE)

    def keep_warm(self, minutes: float = 60) -> None:
        """Rents the machines if they are not there, and keeps them for so many minutes from now, at work or idle; their
        budget ends them all the same."""
        seconds = _seconds("minutes", minutes)
        self.ready()
        ended = _program.run(["keep", self.where, f"{seconds}s"])
        if ended.code != 0:
            raise LockstepError(_program.error_text(ended.stderr, "lockstep keep failed"), ended.code)
        self._seen = 0.0  # they end at another time now

    def cost(self) -> float:
        """USD that the machines have cost so far: those that this object has used, given back or not, else those that
        are there under its name. By the prices at which they were rented, without traffic and taxes."""
        rows = self._rentals()
        since = self._since
        used = [row for row in rows if row["closed_ms"] == 0 or (since is not None and row["created_ms"] >= since)]
        return float(sum(row["cost_micros"] for row in used)) / _MICROS

    # What functions and the methods of Cluster need.

    def ready(self) -> None:
        with self._renting:
            there, now = self._rented, time.time()
            if there is None or not 0 <= now - self._seen < self._believed or now * 1000 >= there["ends_ms"]:
                self.up_if_not()

    def _rentals(self) -> List[Dict[str, Any]]:
        rows: List[Dict[str, Any]] = _program.ask(["cost", self.where, "--since", _PERIOD, "--json"])["rentals"]
        return rows

    def _give_back_for_certain(self) -> None:
        """A Ctrl-C in the meantime is heeded afterwards: it may have come before anything was asked for."""
        try:
            self.teardown(force=True)
        except KeyboardInterrupt:
            self.teardown(force=True)
            raise


def _ids(rented: Dict[str, Any]) -> List[Tuple[str, str]]:
    return [(node["zone"], node["id"]) for node in rented["nodes"]]


def _number(name: str, value: Union[int, float]) -> float:
    if isinstance(value, bool) or not isinstance(value, (int, float)):
        raise TypeError(f"{name} is {value!r}; it is a number")
    if not math.isfinite(value) or value <= 0:
        raise ValueError(f"{name} is {value!r}; it is more than 0")
    return float(value)


def _whole(name: str, value: int) -> int:
    if int(_number(name, value)) != value:
        raise ValueError(f"{name} is {value!r}; it is a whole number")
    return int(value)


def _seconds(name: str, minutes: float) -> int:
    return max(1, round(_number(name, minutes) * 60))


def _dollars(name: str, value: float) -> str:
    text = f"{_number(name, value):.6f}".rstrip("0").rstrip(".")
    if text == "0":
        raise ValueError(f"{name} is {value!r} USD, which is less than a millionth")
    return text


def _list_text(name: str, value: Union[str, Sequence[str]]) -> str:
    words = [value] if isinstance(value, str) else list(value)
    if not words or not all(isinstance(word, str) and word for word in words):
        raise ValueError(f"{name} is {value!r}; it is a name, or a list of names")
    return ",".join(words)


def _needs_guard(provider: Union[str, Sequence[str]]) -> bool:
    return "lambda" in (provider.split(",") if isinstance(provider, str) else provider)


def _spot_option(use_spot: Union[bool, str]) -> List[str]:
    # Of a text, "False" included, nobody knows what was meant.
    if use_spot is True or use_spot is False:
        return ["--spot"] if use_spot else []
    if use_spot == "prefer":
        return ["--spot=prefer"]
    raise ValueError(f"use_spot is {use_spot!r}; it is True, False or 'prefer'")


def ondemand_cluster(name: str, instance_type: str = "A100:1", provider: Union[str, Sequence[str]] = "cheapest",
                     use_spot: Union[bool, str] = False, num_nodes: int = 1,
                     region: Union[str, Sequence[str], None] = None, autostop_mins: float = 10,
                     max_price: Optional[float] = None, budget: Optional[float] = None,
                     disk_size: Optional[int] = None, image: Optional[str] = None, project: Optional[str] = None,
                     options: Sequence[str] = ()) -> OnDemandCluster:
    """Machines that are rented when they are first used. Nothing is asked and nothing is rented before that.

        with lockstep.ondemand_cluster(name="lab", instance_type="A100:1", max_price=2) as gpu:
            loss = lockstep.function(fn=train, system=gpu)(epochs=3)

    name: of the cluster, for every other command too: `lockstep logs`, `lockstep down lab`.
    instance_type: the GPUs of one machine, "A100:8"; `lockstep offers A100:8` shows who has them.
    provider: "aws", "gcp", "lambda", "runpod", or several of them; "cheapest": all whose keys are found. Lambda's
        machines can't end their own bill: where it is named, a guard on this machine ends them (--guard here).
    use_spot: True: only machines that may be taken away, at spot's price; "prefer": those first.
    num_nodes: machines, all or none. They are the cluster's nodes.
    region: only this one of the providers', or these.
    autostop_mins: minutes without a job, a session and work on a GPU after which they end themselves, at least 1;
        -1: never, only at their lifetime, which is 24 hours (options=["--lifetime", "6h"]).
    max_price: USD an hour for all nodes together, disks included; dearer ones are not taken. Default: no limit.
    budget: USD in all; the machines end themselves before it is spent. Default: no limit.
    disk_size: GB. Default: what the image needs.
    image: what they boot, as the provider names it. Default: the provider's newest for GPUs.
    project: the local folder that is brought there; by default git's top folder, else the current one.
    options: more options of `lockstep up`, as words: ["--lifetime", "6h", "--guard", "here"].

    Nobody is asked whether to rent: max_price and budget say what may be spent. Raises TypeError or ValueError where
    a value can't be meant; everything else is said at the first use.
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
        raise TypeError("options is a list, as in options=['--lifetime', '6h']")
    if _needs_guard(provider) and not any(word == "--i-will-watch" or word.startswith("--guard") for word in options):
        print(f"lockstep: lambda's machines can't end their own bill: a guard on this machine ends {name}'s when they "
              "are idle or their time is over (--guard here); for one elsewhere give options=['--guard', 'HOST']",
              file=sys.stderr)
        wish += ["--guard", "here"]
    return OnDemandCluster(name, [*wish, *options], idle_s, project)
