"""The first contact with rented machines, which Debian's real cloud-init has set up (tests/cloud/machines.py), with
real sshd and sudo; GPUs are stand-ins."""
import base64
import contextlib
import json
import os
import pathlib
import re
import signal
import socket
import subprocess
import sys
import threading
import time

import pytest

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[1] / "cloud"))

import machines  # noqa: E402
from harness import until  # noqa: E402
from rented_world import TOOL, CloudWorld, RentedWorld, daemon, sleepers  # noqa: E402
from ssh_hosts import make_key  # noqa: E402


@pytest.fixture
def world(hosts, tmp_path):
    made = RentedWorld(hosts, tmp_path)
    yield made
    made.close()


def test_user_data_is_what_cloud_init_takes(world):
    path = world.folder / "user-data"
    path.write_text(world.user_data())
    said = subprocess.run([machines.CLOUD_INIT, "schema", "--config-file", path], capture_output=True, text=True)
    assert said.returncode == 0 and "Valid cloud-config" in said.stdout, said
    assert path.stat().st_size < 4096
    wrong = world.folder / "wrong"
    wrong.write_text(path.read_text().replace("ssh_deletekeys: true", "ssh_deletekeys: [1]"))
    said = subprocess.run([machines.CLOUD_INIT, "schema", "--config-file", wrong], capture_output=True, text=True)
    assert said.returncode != 0, "the check can't fail"
    public = subprocess.run(["ssh-keygen", "-y", "-f", world.key], capture_output=True, text=True, check=True).stdout
    assert public == world.key.with_suffix(".pub").read_text()
    assert world.key.stat().st_mode & 0o777 == 0o600


def test_first_contact_is_held_to_the_key_that_was_injected_and_pins_a_fresh_one(world):
    machine = world.launch(gpus=(8,))
    assert [path.name for path in machine.path("/etc/ssh").glob("ssh_host_*_key")] == ["ssh_host_ed25519_key"]
    assert sleepers(machine) == ["lockstep-guard"]
    (found,) = world.contact(machine, gpu="A100-80GB", gpus=8, terms={"lives_s": 600, "idle_s": 300})
    assert found["outcome"] == "ready" and found["fresh_key"], found
    told = " ".join(finding["what"] for finding in found["findings"])
    assert "8 GPUs were opened" in told and "MB/s" in told, found
    fresh = found["host_public_key"].split()[:2]
    assert fresh[1] != world.host_key.split()[1]
    injected = " ".join(world.host_key.split()[:2])
    assert world.pins.read_text() == f"# {machine.addr} {injected}\n{machine.addr} {' '.join(fresh)}\n"
    # The lease has taken the place of the first boot's timer.
    assert sleepers(machine) == ["lockstep-lease-1"] and daemon(machine)
    # A new connection is held to the fresh key, and to nothing else.
    world.client.forget_masters()
    state = world.lease(machine)
    assert state["error"] == "" and state["phase"] == "running" and state["watched"], state
    assert 550_000 < state["left_ms"] <= 600_000 and state["idle_limit_ms"] == 300_000, state
    world.client.forget_masters()
    world.pins.write_text(f"{machine.addr} {injected}\n")
    assert "the host key differs from the key made for this machine" in world.lease(machine)["error"]
    # The user's own files know nothing of it.
    assert not (world.client.root_home / ".ssh/known_hosts").exists()


def test_a_client_that_is_lost_at_any_moment_does_not_lose_the_machine(world):
    """Killed at each of many moments of the first contact; the next client always gets on with the same machine."""
    machine = world.launch()
    whole = time.monotonic()
    assert world.contact(machine)[0]["outcome"] == "ready"
    whole = time.monotonic() - whole
    keys = {machine.path("/etc/ssh/ssh_host_ed25519_key.pub").read_text()}
    for tenth in range(1, 10):
        run = world.start(world.request(machine))
        with contextlib.suppress(subprocess.TimeoutExpired):
            run.process.wait(whole * tenth / 10)
        run.kill()
        world.client.forget_masters()
        keys.add(machine.path("/etc/ssh/ssh_host_ed25519_key.pub").read_text())
    (found,) = world.contact(machine)
    assert found["outcome"] == "ready" and found["fresh_key"], found
    assert len(keys) > 1, "no client came as far as a fresh key"


def test_another_host_key_ends_it_at_once_and_nothing_is_brought_there(world):
    machine = world.launch()
    other = make_key(world.folder / "other").with_suffix(".pub").read_text()
    began = time.monotonic()
    (found,) = world.contact(machine, host_key=other)
    assert found["outcome"] == "wrong_host" and time.monotonic() - began < 10, found
    assert "gpus-0: the host key differs from the key made for this machine" in found["error"], found
    assert not machine.path(f"/home/{machine.user}/.cache").exists()
    assert sleepers(machine) == ["lockstep-guard"]


def test_a_machine_boots_while_it_is_waited_for(world):
    machine, other = world.launch(boot=False), world.launch()
    other.vanish()
    run = world.start(world.request(machine, other, patience_s=12))
    until(lambda: "gpus-0 waits for sshd" in run.err(), 20, "it waits")
    machine.power_on()
    ready, lost = json.loads(run.wait(60).out)
    assert ready["outcome"] == "ready", ready
    assert (lost["outcome"], lost["findings"]) == ("unreachable", []), lost
    assert "gpus-1: not reached within 12 s: " in lost["error"], lost
    run = world.start(world.request(other))
    until(lambda: "waits for sshd" in run.err(), 20, "it waits")
    run.signal(signal.SIGINT)
    assert json.loads(run.wait(10).out) == {"error": "SIGINT while waiting for machines"}


def test_gpus_that_do_not_open_are_found(world):
    machine = world.launch(gpus=(8, 802))
    (found,) = world.contact(machine, gpu="A100-80GB", gpus=8, health_s=0)
    assert found["outcome"] == "sick", found
    assert "the GPUs can't be opened: cuInit: 802 (system not yet initialized)" in found["error"], found
    assert not daemon(machine) and sleepers(machine) == ["lockstep-guard"]
    machine.give_gpus(7)
    (found,) = world.contact(machine, gpu="A100-80GB", gpus=8)
    assert "7 GPUs found, 8 were bought" in found["error"], found
    machine.give_gpus(8, name="NVIDIA H100 80GB HBM3")
    (found,) = world.contact(machine, gpu="A100-80GB", gpus=8)
    assert "and a A100-80GB was bought" in found["error"], found
    machine.path("/usr/lib/libcuda.so.1").unlink()
    (found,) = world.contact(machine, gpu="H100-SXM", gpus=8, health_s=0)
    assert "libcuda.so.1 is missing" in found["error"], found
    # Without a program that can open the GPUs they are only listed, and the output says so.
    machine.path("/usr/bin/python3").unlink()
    machine.put("/usr/local/bin/dmesg", "#!/bin/sh\necho '[1.5] NVRM: Xid (PCI:0000:17:00): 79, GPU fell off'\n", 0o755)
    (found,) = world.contact(machine, gpu="H100-SXM", gpus=8)
    assert found["outcome"] == "sick" and "Xid (PCI:0000:17:00): 79" in found["error"], found
    assert {"kind": "note", "what": "the GPUs were listed, but not opened: python3 is not installed"} in \
        found["findings"], found


def test_a_driver_and_a_fabric_that_come_up_late_are_waited_for(world):
    """A machine lets users in before its driver is loaded; NVSwitches take another 47 s (a published log of p4d)."""
    machine = world.launch()
    run = world.start(world.request(machine, gpu="A100-80GB", gpus=8))
    until(lambda: "gpus-0 waits for the NVIDIA driver, 300 s at most" in run.err(), 30, "it waits for the driver")
    machine.give_gpus(8, 802)
    until(lambda: "gpus-0 waits for the fabric manager of the NVSwitches, 300 s at most" in run.err(), 30,
          "it waits for the fabric")
    machine.give_gpus(8)
    (found,) = json.loads(run.wait(30).out)
    assert found["outcome"] == "ready", found
    # The client waits for health_s at most, and then gives the machine up.
    machine.give_gpus(8, 802)
    (found,) = world.contact(machine, gpu="A100-80GB", gpus=8, health_s=1)
    assert found["outcome"] == "sick" and "(system not yet initialized), for " in found["error"], found


def test_sudo_that_asks_for_a_password_is_told(world):
    machine = world.launch()
    machine.path("/etc/sudoers.d/90-cloud-init-users").write_text(f"{machine.user} ALL=(ALL) ALL\n")
    (found,) = world.contact(machine)
    assert found["outcome"] == "no_lease", found
    assert "sudo does not let this user be root without a password" in found["error"], found
    assert sleepers(machine) == ["lockstep-guard"], "it still ends itself"


def test_a_container_ends_itself_by_its_providers_program(world):
    """By the start script's timer, and by its lease. The provider's program is a stand-in."""
    def launch(**options):
        start = base64.b64encode(world.user_data(container=True, **options).encode()).decode()
        return world.machines.launch("", container={"command": world.start_command,
                                                    "env": {"LOCKSTEP_START": start, "RUNPOD_POD_ID": "pod7"}})
    forgotten, machine = launch(guard_s=6), launch()
    assert world.key.with_suffix(".pub").read_text() in machine.path("/root/.ssh/authorized_keys").read_text()
    assert world.host_key == machine.path("/etc/ssh/ssh_host_ed25519_key.pub").read_text().strip()
    assert not machine.path("/tmp/lockstep-start").exists()
    # The lease must outlive the rest of the first contact, on a busy machine as well.
    (found,) = world.contact(machine, terms={"lives_s": 25, "pod": True})
    assert found["outcome"] == "ready" and found["fresh_key"], found
    assert sleepers(machine) == ["lockstep-lease-1"]
    for each in (forgotten, machine):
        each.powered_off(90)
        assert re.fullmatch(r"\S*/runpodctl remove pod pod7", each.said_off[0]), each.said_off


@pytest.mark.parametrize("provider, gpus", [("aws", "A100:8"), ("gcp", "A100:8"), ("lambda", "A100:8"),
                                            ("runpod", "A100-80GB:1")])
def test_what_a_provider_launches_is_met_and_given_its_lease(hosts, tmp_path, provider, gpus):
    """Each provider's own user data: cloud-init's, or a container's."""
    with CloudWorld(hosts, tmp_path, binary=TOOL) as world:
        world.fake.world.settings.update(limits=0)
        ended = world.lockstep("up", "gpus", "--gpus", gpus, "--provider", provider, "-y", "--i-will-watch",
                               "--allow-from", f"{world.client.addr}/32")
        assert ended.rc == 0 and "gpus-0: gets its lease" in ended.err, ended
        (machine,) = world.machines.all
        assert [each.id for each in world.live()] == list(world.machines.by_id)
        assert daemon(machine) and sleepers(machine) == ["lockstep-lease-1"]
        assert world.lockstep("exec", "gpus", "--", "hostname").out == f"{machine.name}\n"
        # A power-off from inside ends the bill where the provider supports this.
        switch = ("runpodctl", "remove", "pod", "x") if provider == "runpod" else ("poweroff",)
        machine.start(*switch[1:], program=(f"/usr/local/{'bin' if switch[1:] else 'sbin'}/{switch[0]}",), cwd="/")
        until(lambda: machine.is_off(), 30, "it is off")
        until(lambda: provider == "lambda" or not world.live(), 30, "the provider has seen it")
        assert world.fake.failures == [] and world.fake.world.errors == []


@contextlib.contextmanager
def silent_port():
    """Returns a port that never answers, as behind a firewall that drops packets: its queue is full."""
    with contextlib.ExitStack() as open_ones:
        listener = open_ones.enter_context(socket.socket())
        listener.bind(("127.0.0.1", 0))
        listener.listen(0)
        for _ in range(2):
            filler = open_ones.enter_context(socket.socket())
            filler.setblocking(False)
            filler.connect_ex(listener.getsockname())
        yield listener.getsockname()[1]


@contextlib.contextmanager
def refusing_port():
    """Returns a closed port, as behind a firewall that rejects, or before sshd runs."""
    with socket.socket() as holder:
        holder.bind(("127.0.0.1", 0))
        yield holder.getsockname()[1]


@contextlib.contextmanager
def greeting_port():
    with socket.socket() as listener:
        listener.bind(("127.0.0.1", 0))
        listener.listen()

        def greet():
            with contextlib.suppress(OSError):
                listener.accept()[0].sendall(b"SSH-2.0-known\r\n")

        threading.Thread(target=greet, daemon=True).start()
        yield listener.getsockname()[1]


@pytest.mark.parametrize("known, words", [
    (silent_port, "does not answer from here, either (it does not answer): a firewall here seems to block outgoing"),
    (refusing_port, "does not answer from here, either (connection refused): a firewall here seems to block outgoing"),
    (greeting_port, "answers from here, so the machine is still booting, or the machine's own firewall is closed"),
    (None, "the machine may still be booting, or a firewall here blocks outgoing port")])
@pytest.mark.parametrize("machine, why", [(silent_port, "it does not answer"), (refusing_port, "connection refused")])
def test_a_port_that_stays_silent_is_told_from_a_machine_that_boots(tmp_path, machine, why, known, words):
    key = make_key(tmp_path / "key")
    public = pathlib.Path(f"{key}.pub").read_text()
    with machine() as port, (known or contextlib.nullcontext)() as probed:
        asked = {"hosts": [{"name": "gpus-0", "address": "127.0.0.1", "port": port, "user": "ubuntu",
                            "key_path": str(key), "host_public_key": public}],
                 "pins": str(tmp_path / "pins"), "patience_s": 5, "silent_ms": 200}
        environment = {"PATH": os.environ["PATH"], "HOME": str(tmp_path),
                       "LOCKSTEP_SSH_PROBE": f"127.0.0.1:{probed}" if known else "none"}
        said = subprocess.run([TOOL, "first-contact"], input=json.dumps(asked), capture_output=True, text=True,
                              timeout=60, env=environment)
    (found,) = json.loads(said.stdout)
    assert found["outcome"] == "unreachable" and found["silent"], found
    assert f"gpus-0 no SSH server has answered at 127.0.0.1 port {port} for 1 s ({why}); " in said.stderr, said
    assert words in said.stderr, said
