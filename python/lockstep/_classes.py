"""Decides which classes this program accepts from a host, and makes their objects without running the classes' code.

A name sent by a host never causes an import, a call or a lookup, except for what these tables list.
"""
import abc
import builtins
import dataclasses
import enum
import os
import sys
import types
import uuid
from typing import Any, Dict, List, Mapping, Optional, Protocol, Tuple

from lockstep._maker import Maker, Malformed, NotTaken, check_key, is_kind
from lockstep._plain import PLAIN_MAKERS, texts, typed
from lockstep._project import inside, is_installed

_OF_TYPES: Mapping[str, Any] = vars(type)


def namespace(kind: type) -> Mapping[str, Any]:
    """Returns the class's own attributes without asking its metaclass."""
    found: Mapping[str, Any] = _OF_TYPES["__dict__"].__get__(kind)
    return found


def _mro(kind: type) -> Tuple[type, ...]:
    return tuple(_OF_TYPES["__mro__"].__get__(kind))


def defined_class(module_name: str, name: str) -> Optional[type]:
    """Returns the class defined under this name in a module that is already imported. Never a class that the module
    imported itself, a function or another attribute."""
    module = sys.modules.get(module_name)
    if not is_kind(module, types.ModuleType):
        return None
    space = object.__getattribute__(module, "__dict__")  # any other access could make a lazy module import
    path = ""
    found = None
    for part in name.split("."):
        found = space.get(part)
        path = f"{path}.{part}" if path else part
        if not is_kind(found, type):
            return None
        space = namespace(found)
        if _OF_TYPES["__qualname__"].__get__(found) != path or not _same(space.get("__module__"), module_name):
            return None
    return found


def _same(home: Any, module_name: str) -> bool:
    names = ("__main__", "__mp_main__")  # one module, see find()
    return type(home) is str and (home == module_name or (home in names and module_name in names))


class Member(Maker):
    """Enum members, found by value or name. They belong to this program: none is created or changed."""

    def make(self, args: Tuple[Any, ...], kwargs: Mapping[str, Any], called: bool) -> Any:
        value, = typed(args, (type(args[0]),))
        check_key(value)
        space = namespace(self.kind)
        try:
            return space["_value2member_map_"][value]
        except (KeyError, TypeError):  # TypeError: a list, which can be an enum's value
            pass
        for member in space["_member_map_"].values():
            known = attributes(member)["_value_"]
            if type(known) is type(value) and known == value:
                return member
        # enum's own code combines several flags.
        if enum.Flag in _mro(self.kind) and type(value) is int and type(self.kind) is enum.EnumMeta:
            if not self._has_code():
                return self.kind(value)
        raise Malformed(f"no member of {self.name}")

    def _has_code(self) -> bool:
        """Returns True if the class's own code would make such a member."""
        code = (types.FunctionType, classmethod, staticmethod)
        return any(is_kind(namespace(one).get(name), *code) for one in _mro(self.kind)
                   if namespace(one).get("__module__") != "enum"
                   for name in ("_missing_", "__new_member__", "_new_member_"))

    def named(self, name: Any) -> Any:
        return namespace(self.kind)["_member_map_"][name]


def attributes(made: Any) -> Dict[str, Any]:
    """Returns the object's own __dict__. Raises NotTaken if its class replaces __dict__."""
    for one in _mro(type(made)):
        found = namespace(one).get("__dict__")
        if type(found) is types.GetSetDescriptorType:
            held: Dict[str, Any] = found.__get__(made)
            return held
        if found is not None:
            break
    raise NotTaken


def _is_generated(hook: Any) -> bool:
    return hook is getattr(dataclasses, "_dataclass_setstate", "none before Python 3.10")


class Own(Maker):
    """Creates an empty object through the base type, then sets the attributes. Runs no method of the class."""

    def __init__(self, kind: type, base: Any) -> None:
        super().__init__(kind)
        self._base = base

    def make(self, args: Tuple[Any, ...], kwargs: Mapping[str, Any], called: bool) -> Any:
        fields = next((namespace(one)["_fields"] for one in _mro(self.kind) if "_fields" in namespace(one)), None)
        if kwargs or called != (self._base in (set, frozenset)):
            raise NotTaken
        if self._base is tuple and fields is not None:  # typing.NamedTuple: the arguments are its items
            if len(args) != len(fields):
                raise Malformed(f"{self.name} has {len(fields)} fields")
            return tuple.__new__(self.kind, args)
        if self._base in (object, list, dict):
            if args:
                raise NotTaken
            return self._base.__new__(self.kind)
        typed(args, (list,) if called else (self._base,))
        if not called:
            return self._base.__new__(self.kind, *args)
        for item in args[0] if args else ():
            check_key(item)
        if self._base is frozenset:
            return frozenset.__new__(self.kind, *args)
        made = set.__new__(self.kind)
        set.update(made, *args)
        return made

    def build(self, made: Any, state: Any) -> None:
        slots: Mapping[str, Any] = {}
        if type(state) is tuple and len(state) == 2:
            state, slots = state
        # A frozen dataclass with slots: its generated __setstate__ takes a list of field values.
        if type(state) is list and _is_generated(namespace(self.kind).get("__setstate__")):
            names = [field.name for field in dataclasses.fields(self.kind)]
            if len(state) != len(names):
                raise Malformed(f"{self.name} has {len(names)} fields")
            state, slots = None, dict(zip(names, state))
        if type(slots) is not dict or type(state) not in (dict, type(None)):
            raise NotTaken
        if state:
            attributes(made).update(texts(state))
        for name, value in texts(slots).items():
            slot = next((namespace(one)[name] for one in _mro(self.kind) if name in namespace(one)), None)
            if type(slot) is not types.MemberDescriptorType:
                raise Malformed(f"{self.name} has no slot {name!r}")
            slot.__set__(made, value)

    def extend(self, made: Any, items: List[Any]) -> None:
        if self._base is not list:
            raise Malformed(f"{self.name} has no items")
        list.extend(made, items)

    def set_items(self, made: Any, pairs: List[Tuple[Any, Any]]) -> None:
        if self._base is not dict:
            raise Malformed(f"{self.name} has no keys")
        for key, value in pairs:
            dict.__setitem__(made, key, value)


class Error(Maker):
    """Exceptions, made without calling any __new__ or __init__ written in Python."""

    def make(self, args: Tuple[Any, ...], kwargs: Mapping[str, Any], called: bool) -> Any:
        if kwargs:
            raise NotTaken
        base: Any = next(one for one in _mro(self.kind) if one in _ERRORS)
        if issubclass(base, _PICKY) and not all(_is_plain(arg) for arg in args):
            raise NotTaken  # their C code asks arguments for items or numbers, and so could run foreign code
        made = base.__new__(self.kind, *args)
        base.__init__(made, *args)
        return made

    def build(self, made: Any, state: Any) -> None:
        if state is None:
            return
        if type(state) is not dict:
            raise NotTaken
        held = attributes(made)
        for name, value in texts(state).items():
            slot = next((namespace(one)[name] for one in _mro(type(made)) if one in _ERRORS and name in namespace(one)),
                        None)
            if slot is None:
                held[name] = value
            elif type(slot) is types.MemberDescriptorType and not name.startswith("__"):  # ImportError.name
                slot.__set__(made, value)


_ERRORS = {kind for kind in vars(builtins).values() if isinstance(kind, type) and issubclass(kind, BaseException)}


_PICKY = (OSError, SyntaxError, UnicodeError, ImportError, StopIteration, SystemExit,
          *(kind for kind in _ERRORS if kind.__name__ == "BaseExceptionGroup"))


def _is_plain(value: Any, depth: int = 3) -> bool:
    if type(value) in (tuple, list) and depth > 0:
        return all(_is_plain(item, depth - 1) for item in value)
    return type(value) in (bool, bytes, float, int, str, type(None)) or is_kind(value, BaseException)


class Named(Maker):
    """A class allowed by the caller: made as Python's reader makes it, running the class's own code."""

    def make(self, args: Tuple[Any, ...], kwargs: Mapping[str, Any], called: bool) -> Any:
        return self.kind(*args) if called else self.kind.__new__(self.kind, *args, **kwargs)

    def build(self, made: Any, state: Any) -> None:
        if hasattr(made, "__setstate__"):
            made.__setstate__(state)
            return
        state, slots = state if type(state) is tuple and len(state) == 2 else (state, None)
        vars(made).update(state or {}) if state else None
        for name, value in (slots or {}).items():
            setattr(made, name, value)

    def extend(self, made: Any, items: List[Any]) -> None:
        made.extend(items)

    def set_items(self, made: Any, pairs: List[Tuple[Any, Any]]) -> None:
        for key, value in pairs:
            made[key] = value


_METACLASSES = (type, abc.ABCMeta, enum.EnumMeta, type(Protocol))
_BASES = (bytes, complex, dict, float, frozenset, int, list, set, str, tuple, object)


def maker_of(kind: type) -> Optional[Maker]:
    """Returns None for a class with code that runs when an object is made or destroyed."""
    kinds = _mro(kind)
    if not any(type(kind) is known for known in _METACLASSES):
        return None
    if enum.Enum in kinds:
        return Member(kind)
    hooks = [namespace(one) for one in kinds if one not in _ERRORS]
    if any("__del__" in one or ("__setstate__" in one and not _is_generated(one["__setstate__"])) for one in hooks):
        return None
    if any(one in _ERRORS for one in kinds):
        return Error(kind)
    return Own(kind, next(one for one in kinds if one in _BASES))


def find(root: Optional[str], allowed: Mapping[Tuple[str, str], type], module: str, name: str) -> Optional[Maker]:
    """Returns the maker, or None to refuse. root: the project's folder. allowed: classes named by the caller."""
    if (module, name) in allowed:
        kind = allowed[module, name]
        return Member(kind) if enum.Enum in _mro(kind) else Named(kind)
    if module == "__mp_main__":
        module = "__main__"
    if (module, name) in PLAIN_MAKERS:
        return PLAIN_MAKERS[module, name]
    if (module, name) == ("uuid", "SafeUUID"):
        return Member(uuid.SafeUUID)
    if module == "builtins":
        return next((Error(kind) for kind in _ERRORS if kind.__name__ == name), None)
    found = defined_class(module, name) if _is_own(root, module) else None
    return None if found is None else maker_of(found)


def find_exception(root: Optional[str], allowed: Mapping[Tuple[str, str], type], module: str, name: str
                   ) -> Optional[Maker]:
    """Accepts exceptions of every module that this program has imported, too: only arguments and attributes are set."""
    found = find(root, allowed, module, name)
    if found is None:
        kind = defined_class(module, name)
        found = None if kind is None or Exception not in _mro(kind) else maker_of(kind)
    # SystemExit and the like would end this program.
    return found if found is not None and Exception in _mro(found.kind) else None


def _is_own(root: Optional[str], module: str) -> bool:
    """Returns True for imported modules of the project. Importing another one could run a script."""
    known = sys.modules.get(module)
    if module == "__main__" or root is None or not is_kind(known, types.ModuleType):
        return module == "__main__"
    file = object.__getattribute__(known, "__dict__").get("__file__")
    if type(file) is not str:
        return False
    place = os.path.realpath(file)
    return inside(place, root) and not is_installed(place)
