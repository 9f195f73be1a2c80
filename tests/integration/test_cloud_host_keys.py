"""Machines whose image makes its own host key and ignores Lockstep's. At Google, guest attributes tell the key, and no
other key is accepted. Real machines behind the fakes."""
import contextlib
import json
import pathlib
import sqlite3
import sys

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[1] / "cloud"))

from harness import read  # noqa: E402
from rented_world import CloudWorld  # noqa: E402
from ssh_hosts import make_key  # noqa: E402

PLACE = "/etc/ssh/ssh_host_ed25519_key"


def with_own_key(machine):
    made = make_key(machine.folder / "own_key")
    machine.put(PLACE, made.read_text(), 0o600)
    machine.put(f"{PLACE}.pub", made.with_suffix(".pub").read_text())
    machine.power_on()


def not_met(world):
    """Sets the journal as after a kill of the client just before its last step."""
    with contextlib.closing(sqlite3.connect(world.state / "rentals.db", timeout=10)) as journal, journal:
        ((ident, text),) = journal.execute("SELECT id, json FROM records WHERE kind = 'rental'").fetchall()
        rental = json.loads(text)
        rental["attempts"][-1]["machines"][0]["host_key"] = ""
        journal.execute("UPDATE records SET json = ? WHERE id = ?", (json.dumps(rental), ident))


def up(world, provider):
    return world.lockstep("up", "lab", "--gpus", "L4:1", "--provider", provider, "-y", "--wait", "1s",
                          "--max-price", "2", "--region", {"aws": "us-east-2", "gcp": "us-west1"}[provider],
                          "--allow-from", f"{world.client.addr}/32")


def test_the_provider_knows_it(hosts, tmp_path):
    with CloudWorld(hosts, tmp_path, boot=with_own_key) as world:
        ended = up(world, "gcp")
        assert ended.rc == 0 and "the image created a host key: " in ended.err, ended
        (machine,) = world.machines.all
        own = (machine.folder / "own_key.pub").read_text().split()[1]
        pins = read(world.client.root_home / ".local/state/lockstep/hosts-lab").splitlines()
        assert machine.path(f"{PLACE}.pub").read_text().split()[1] != own, "and it is replaced as any other"
        assert len(pins) == 2 and own not in pins[0] and own not in pins[1], pins
        not_met(world)
        again = up(world, "gcp")
        assert again.rc == 0 and "using this rental" in again.err and "own" not in again.err, again
        assert len(world.machines.all) == 1, "whose client was lost in first contact is met again"
        world.client.forget_masters()
        there = world.lockstep("exec", "lab", "--", "hostname")
        assert there.rc == 0, there
        assert world.lockstep("down", "lab").rc == 0 and world.live() == []


def test_the_selftest_says_so(hosts, tmp_path):
    with CloudWorld(hosts, tmp_path, boot=with_own_key) as world:
        ended = world.lockstep("cloud", "selftest", "gcp", "-y", "--patience", "1s", "--allow-from",
                               f"{world.client.addr}/32")
        assert "the image created a host key, the provider knows the same key" in ended.out, ended
        assert "the host key is the expected one" not in ended.out and world.live() == [], ended


def test_another_key_than_that_one_is_refused(hosts, tmp_path):
    """The key at Google differs from the key of the machine; and a provider that tells no key."""
    with CloudWorld(hosts, tmp_path, boot=with_own_key) as world:
        launch = world.fake.world.on_launch
        other = make_key(tmp_path / "other").with_suffix(".pub").read_text()
        world.fake.world.on_launch = lambda wanted: {**launch(wanted), "host_keys": [other]}
        for provider in ("gcp", "aws"):
            ended = up(world, provider)
            assert ended.rc == 1 and "host key differs from the key made for this machine" in ended.err, ended
            assert ("image created a host key: " in ended.err) == (provider == "gcp"), ended
            assert world.live() == [], ended
        for machine in world.machines.all:
            assert not machine.up or not machine.path(f"/home/{machine.user}/.cache").exists()
