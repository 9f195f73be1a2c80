# mypy: ignore-errors
# Runs one function in a fresh Python on a host. `lockstep call` starts this text as `python3 -c`, so it must stand
# alone: Python 3.8 or later, no packages. docs/protocols/call.md describes its input (stdin) and its output (the
# descriptor in LOCKSTEP_RESULT_FD). Each import here costs every call, so json and traceback are imported late.
import os
import sys
from _pickle import PickleBuffer, Pickler, Unpickler

REFUSED, RAISED, INTERRUPTED = 3, 1, 130
PART = 1 << 20


class Refused(Exception):
    """A call that cannot be made, or a value that cannot be sent. The text is one line for the user."""


class Answer:
    """Writes frames: a kind (one letter), a length and bytes. Also a file for the pickled value."""

    def __init__(self, fd):
        os.set_inheritable(fd, False)  # a process started by the function must not keep the descriptor open
        self.fd = fd

    def put(self, kind, data=b""):
        view = memoryview(data).cast("B")
        for start in range(0, max(len(view), 1), PART):
            part = view[start:start + PART]
            self._write(kind + len(part).to_bytes(4, "little"))
            self._write(part)

    def _write(self, data):
        view = memoryview(data)
        while len(view):
            view = view[os.write(self.fd, view):]

    def write(self, data):
        self.put(b"v", data)


class Values(Pickler):
    """Sends arrays and tensors as plain bytes, so that the reader need not trust numpy's or torch's code."""

    def persistent_id(self, value):
        home = type(value).__module__
        if home == "numpy":
            return _array(value)
        if home.startswith("torch"):
            return _tensor(value)
        return None


def _array(value):
    import numpy
    kind = type(value)
    if (kind is not numpy.ndarray and not isinstance(value, numpy.generic)) or value.dtype.kind not in "biufcSUmM":
        return None
    flat = numpy.ascontiguousarray(value).reshape(-1)
    data = PickleBuffer(flat.view("uint8")) if flat.nbytes else b""
    return ("array" if kind is numpy.ndarray else "scalar", value.dtype.str, value.shape, data)


def _tensor(value):
    import torch
    if type(value) not in (torch.Tensor, torch.nn.Parameter) or value.layout != torch.strided or value.is_quantized:
        return None
    flat = value.detach().cpu().contiguous().reshape(-1)
    data = PickleBuffer(flat.view(torch.uint8).numpy()) if flat.numel() else b""
    kind = "tensor" if type(value) is torch.Tensor else "parameter"
    return (kind, str(value.dtype).partition(".")[2], tuple(value.shape), data, value.requires_grad)


class Pieces(list):
    def write(self, data):
        self.append(bytes(data))


def pickled(value):
    pieces = Pieces()
    Values(pieces, 5).dump(value)
    return b"".join(pieces)


def use_sources(root):
    """Makes modules below root load from source. Byte code is matched by whole seconds, so it may be stale."""
    import importlib.machinery as machinery

    class Source(machinery.SourceFileLoader):
        def get_code(self, fullname):
            path = self.get_filename(fullname)
            return self.source_to_code(self.get_data(path), path)

    def hook(path):
        folder = os.path.realpath(path or ".")
        inside = folder == root or folder.startswith(root.rstrip("/") + "/")
        if not inside or "site-packages" in folder or "dist-packages" in folder or not os.path.isdir(folder):
            raise ImportError
        return machinery.FileFinder(path, (machinery.ExtensionFileLoader, machinery.EXTENSION_SUFFIXES),
                                    (Source, machinery.SOURCE_SUFFIXES),
                                    (machinery.SourcelessFileLoader, machinery.BYTECODE_SUFFIXES))

    sys.path_hooks.insert(0, hook)
    sys.path_importer_cache.clear()


class Package:
    """Stands in for the package lockstep, which scripts import at their top, on hosts without the package."""

    @staticmethod
    def find_spec(name, path=None, target=None):
        if name != "lockstep":
            return None
        from importlib.machinery import ModuleSpec
        return ModuleSpec(name, Package)

    @staticmethod
    def create_module(spec):
        return None

    @staticmethod
    def exec_module(module):
        def wrapper(fn=None, *args, **kwargs):
            return fn if callable(fn) else (lambda function: function)

        class Nothing:
            """A cluster or function that a script may create but not use."""
            def __init__(self, *args, **kwargs):
                pass

            def __getattr__(self, name):
                raise RuntimeError(f".{name} of lockstep's is used while the script is imported on a host; "
                                   "put that part of it under: if __name__ == '__main__'")

        module.record = module.function = wrapper
        module.__getattr__ = lambda name: Nothing


def read_header(stream):
    fields = {"path": []}
    for line in iter(stream.readline, b"\n"):
        if not line:
            raise Refused("the request ends in its header")
        name, _, value = os.fsdecode(line[:-1]).partition(" ")
        if name == "path":
            fields["path"].append(value)
        else:
            fields[name] = value
    return fields


def main_module(path):
    """Loads the caller's script like multiprocessing's spawn, under a name other than __main__: no main part runs."""
    module = type(sys)("__mp_main__")
    module.__file__ = os.path.abspath(path)
    sys.argv = [path]
    sys.modules["__main__"] = sys.modules["__mp_main__"] = module
    with open(path, "rb") as file:
        code = compile(file.read(), module.__file__, "exec")
    exec(code, module.__dict__)
    return module


def import_module(name):
    import importlib
    try:
        return importlib.import_module(name)
    except ModuleNotFoundError as error:
        if error.name is None or not (name == error.name or name.startswith(error.name + ".")):
            raise
        raise Refused(f"found no module {name!r} in {', '.join(sys.path[:3])} or elsewhere in Python's path") from None


def find_function(header):
    if "script" in header:
        if not os.path.isfile(header["script"]):
            raise Refused(f"there is no {os.path.abspath(header['script'])}")
        module, where = main_module(header["script"]), header["script"]
    else:
        module = import_module(header["module"])
        where = f"module {header['module']!r}"
    found = module
    for name in header["function"].split("."):
        if not hasattr(found, name):
            known = sorted(n for n in vars(module) if not n.startswith("_") and callable(getattr(module, n)))
            raise Refused(f"{where} has no function {header['function']!r}; it has: {', '.join(known[:20]) or 'none'}")
        found = getattr(found, name)
    found = getattr(found, "__lockstep_function__", found)
    if not callable(found):
        raise Refused(f"{header['function']!r} of {where} is a {type(found).__name__}, which can't be called")
    return found


def read_arguments(values, stream):
    """Reads the payload: an object for 'json', a tuple for 'pickle'."""
    if values == "json":
        text = stream.read()
        if not text:
            return [], {}
        import json
        given = json.loads(text)
        return given["args"], given["kwargs"]
    try:
        return Unpickler(stream).load()
    except Exception as error:
        import platform
        raise Refused(f"the arguments can't be read here, by Python {platform.python_version()}: "
                      f"{type(error).__name__}: {error}") from None


def send_value(answer, values, name, value):
    try:
        if values == "json" and value is None:
            answer.write(b"null")
        elif values == "json":
            import json
            answer.write(json.dumps(value, allow_nan=False).encode())
        else:
            Values(answer, 5).dump(value)
    except OSError:  # the caller has gone
        raise
    except Exception as error:
        what = "is not JSON" if values == "json" else "can't be sent"
        raise Refused(f"the value of {name}, a {type(value).__name__}, {what}: {error}") from None
    answer.put(b"k")


def tell_error(answer, values, error, frames):
    """Sends an exception: a text for the user, and the arguments for making the exception again."""
    import traceback
    kind, trace = type(error), error.__traceback__
    for _ in range(frames):
        trace = trace.tb_next if trace is not None and trace.tb_next is not None else trace
    text = "".join(traceback.format_exception(kind, error, trace))
    told = "".join(traceback.format_exception_only(kind, error)).strip()
    if values == "json":
        import json
        said = {"type": kind.__qualname__, "module": kind.__module__, "message": told, "traceback": text}
        return answer.put(b"e", json.dumps(said).encode())
    try:
        # As in Python's own exceptions: the caller makes the exception without its class's constructor.
        made = next(base for base in kind.__mro__ if base.__module__ == "builtins").__reduce__(error)
        part = pickled((made[1], made[2] if len(made) > 2 else None))
    except Exception:  # the arguments cannot be sent: do without them
        part = None
    answer.put(b"e", pickled((kind.__module__, kind.__qualname__, told, text, part)))


def call(header, answer):
    stream = sys.stdin.buffer
    root = os.path.realpath(header.get("root", "."))
    sys.path[:] = [os.path.abspath(path) for path in header["path"]] + [path for path in sys.path if path]
    use_sources(root)
    sys.meta_path.append(Package)
    values = header["values"]
    if header.get("stdout") == "stderr":
        os.dup2(2, 1)
    sys.stdout.reconfigure(line_buffering=True)
    if "module" in header or "script" in header:
        function = find_function(header)
        args, kwargs = read_arguments(values, stream)
    else:
        function, args, kwargs = read_arguments(values, stream)
    nothing = os.open(os.devnull, os.O_RDONLY)
    os.dup2(nothing, 0)
    os.close(nothing)
    value = function(*args, **kwargs)
    send_value(answer, values, getattr(function, "__name__", "the function"), value)


def main():
    answer = Answer(int(os.environ.pop("LOCKSTEP_RESULT_FD")))
    values = "json"
    try:
        header = read_header(sys.stdin.buffer)
        values = header["values"]
        call(header, answer)
        return 0
    except Refused as refusal:
        answer.put(b"r", str(refusal).encode("utf-8", "replace"))
        return REFUSED
    except BaseException as error:
        tell_error(answer, values, error, 2)
        if isinstance(error, SystemExit):
            return error.code if isinstance(error.code, int) else RAISED
        return INTERRUPTED if isinstance(error, KeyboardInterrupt) else RAISED


if __name__ == "__main__":
    sys.exit(main())
