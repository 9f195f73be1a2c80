"""What the demos show: titles, commands and their output, in the order in which it happens, also into a pipe."""
import subprocess
import sys

from harness import until


def say(text):
    print(f"\n\033[1m== {text}\033[0m" if sys.stdout.isatty() else f"\n== {text}", flush=True)


class Shown:
    """A command that is shown as it runs. `start` is a host's start(), whose words the user would type."""

    def __init__(self, start, words, **options):
        print("$ lockstep", *words, flush=True)
        # One file for both streams keeps their order.
        self.run = start(*words, stderr=subprocess.STDOUT, **options)
        self.words, self._shown = words, 0

    def show(self, most=None):
        """Prints what came since the last time; most: no more lines than that."""
        new = self.run.out()[self._shown:]
        self._shown += len(new)
        lines = new.splitlines(keepends=True)
        print(*lines[:most], sep="", end="", flush=True)
        if most and len(lines) > most:
            print(f"... {len(lines) - most} more lines", flush=True)

    def _ended(self):
        self.show()
        return self.run.process.poll() is not None

    def until_said(self, text, deadline=600):
        """Shows all until the command has said this."""
        until(lambda: self._ended() or text in self.run.out(), deadline, f"lockstep {self.words[0]} says '{text}'")
        self.show()
        if text not in self.run.out():
            sys.exit(f"demo: lockstep {self.words[0]} ended before it said '{text}'")

    def end(self, deadline=600, most=None):
        """Shows all to its end; its exit code. most: that many lines, at the end."""
        if most is None:
            until(self._ended, deadline, f"lockstep {self.words[0]} ends")
        code = self.run.wait(deadline).rc
        self.show(most)
        return code


def type_out(start, *words, most=None, **options):
    """What a user types, shown to its end; all of its output. The demo ends where it fails."""
    shown = Shown(start, words, **options)
    code = shown.end(most=most)
    if code != 0:
        sys.exit(f"demo: lockstep {words[0]} ended with {code}")
    return shown.run.out()
