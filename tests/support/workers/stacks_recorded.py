"""The program whose memory tests/fuzz/corpus/stacks records, by tests/fuzz/make_stacks_corpus.py."""
import threading
import time

SOURCE = """\
import threading
import time


def wait_\u00e4\u6587(seconds):
    if seconds:
        print(
            "ready", flush=True)
        time.sleep(seconds)


class Model:
    def forward(self):
        def items():
            yield 1
            wait_\u00e4\u6587(1000)

        return list(items())


threading.Thread(target=time.sleep, args=(1000,), daemon=True).start()
time.sleep(.2)
Model().forward()
"""
exec(compile(SOURCE, "/tmp/recorded/d\u00e4ta_\u6587.py", "exec"))
