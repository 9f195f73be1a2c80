"""Shows titles, commands and their output in the demos, in true order, also into a pipe."""
import subprocess
import sys

from harness import until


def say(text):
    print(f"\n\033[1m== {text}\033[0m" if sys.stdout.isatty() else f"\n== {text}", flush=True)


class Shown:
    """A command whose output is shown while it runs. start: a host's start(). words: what the user would type."""

    def __init__(self, start, words, **options):
        print("$ lockstep", *words, flush=True)
        # One file for both streams keeps their order.
        self.run = start(*words, stderr=subprocess.STDOUT, **options)
        self.words, self._shown = words, 0

    def show(self, most=None):
        """Prints the new output, at most `most` lines."""
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
        """Shows the output until it has this text."""
        until(lambda: self._ended() or text in self.run.out(), deadline, f"lockstep {self.words[0]} says '{text}'")
        self.show()
        if text not in self.run.out():
            sys.exit(f"demo: lockstep {self.words[0]} ended before it said '{text}'")

    def end(self, deadline=600, most=None):
        """Shows the output to the end, at most the last `most` lines. Returns the exit code."""
        if most is None:
            until(self._ended, deadline, f"lockstep {self.words[0]} ends")
        code = self.run.wait(deadline).rc
        self.show(most)
        return code


def type_out(start, *words, most=None, **options):
    """Shows a command of the user to its end, and returns all its output. A failure ends the demo."""
    shown = Shown(start, words, **options)
    code = shown.end(most=most)
    if code != 0:
        sys.exit(f"demo: lockstep {words[0]} ended with {code}")
    return shown.run.out()
