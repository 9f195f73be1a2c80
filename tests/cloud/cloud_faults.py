"""Faults of the fake clouds: a list of rules. A rule says where a fault happens, how often, and what goes wrong.

A rule: {"face", "action", "path", "region", "zone", "type": shell patterns, default "*"; "times": 1, or -1
for always; "skip": number of matching requests without the fault first; "do": what}. `do` is one of

  {"kind": "error", "code", "message", "status"}    the provider's own error, in its own envelope
  {"kind": "status", "status": 503, "retry_after"}  a bare status; retry_after: seconds, or none
  {"kind": "cut", "when": "before" | "after"}       the connection ends without an answer, before or after the action
  {"kind": "half"}, {"kind": "cut_at", "bytes"}     done, but the answer ends in the middle, or after so many bytes
  {"kind": "stall", "seconds"}                      real seconds of silence, then the usual answer
  {"kind": "capacity", "after_s"}                   no capacity, in the provider's own form
  {"kind": "quota"}                                 the account's limit is reached
  {"kind": "token_expired"}                         keys or token have expired
  {"kind": "unreachable"}                           a zone that lists name as unreachable (GCE)
  {"kind": "omit_id"}                               done, but the first id is missing in the answer (Lambda)
  {"kind": "trait", ...}                            the machine is launched with {"dies": reason, "dies_after_s",
                                                    "no_address_s", "not_listed_s", "boot_s", "unhealthy",
                                                    "no_private_ip", "status", "gpu": "802", ...}: see the faces
"""
import fnmatch
import itertools

PLACES = ("face", "action", "path", "region", "zone", "type")
KINDS = {"error", "status", "cut", "half", "cut_at", "stall", "capacity", "quota", "token_expired", "unreachable",
         "omit_id", "trait"}


class Faults:
    def __init__(self):
        self.rules, self._ids = [], itertools.count(1)

    def add(self, rule):
        unknown = set(rule) - {*PLACES, "times", "skip", "do"}
        if unknown or rule.get("do", {}).get("kind") not in KINDS:
            raise ValueError(f"no such fault: {rule} (unknown: {sorted(unknown)}; kinds: {sorted(KINDS)})")
        made = {"id": next(self._ids), "times": 1, "skip": 0, "hits": 0, **rule}
        self.rules.append(made)
        return made["id"]

    def remove(self, ident=None):
        """Removes one rule, or all."""
        self.rules = [rule for rule in self.rules if ident is not None and rule["id"] != ident]

    def take(self, place):
        """Returns the faults of a request at this place. Counts one use of each matching rule."""
        found = []
        for rule in self.rules:
            if rule["times"] == 0 or not matches(rule, place):
                continue
            if rule["skip"] > 0:
                rule["skip"] -= 1
                continue
            rule["times"] -= 1 if rule["times"] > 0 else 0
            rule["hits"] += 1
            found.append(rule["do"])
        return found

    def look(self, place, kind):
        """Returns whether a rule of this kind matches the place, without counting a use (unreachable zones)."""
        return any(rule["times"] != 0 and rule["do"]["kind"] == kind and matches(rule, place) for rule in self.rules)


def matches(rule, place):
    return all(fnmatch.fnmatchcase(str(place.get(name) or ""), rule.get(name, "*")) for name in PLACES)


def first(found, *kinds):
    return next((each for each in found if each["kind"] in kinds), None)


def traits(found):
    """Returns the merged traits of all `trait` rules."""
    said = {}
    for each in found:
        if each["kind"] == "trait":
            said.update({name: value for name, value in each.items() if name != "kind"})
    return said
