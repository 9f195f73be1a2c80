"""Asks the launcher's file timer, as torch.distributed.elastic.timer does, to watch this process."""
import json
import os
import signal
import sys
import time


def ask(*expirations):
    """Writes all requests at once: a timer that is released must not expire before."""
    lines = "".join(json.dumps({"version": 1, "pid": os.getpid(), "scope_id": "step", "expiration_time": expires,
                                "signal": 9}) + "\n" for expires in expirations)
    with open(os.environ["TORCHELASTIC_TIMER_FILE"], "w") as timer:
        timer.write(lines)


open(os.path.join(os.environ["OUT_DIR"], os.environ["RANK"]), "w").write(str(os.getpid()))
if sys.argv[1] == "expire" and os.environ["RANK"] == "0":
    while not os.path.exists(os.path.join(os.environ["OUT_DIR"], "go")):
        time.sleep(0.02)
    ask(time.time() + 0.2)
    signal.pause()
elif sys.argv[1] == "expire":
    signal.pause()
else:
    ask(time.time() + 0.4, -1.0)
    time.sleep(1)
