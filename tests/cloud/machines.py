"""Rented machines for tests. Each machine is a host of hosts.py with its own root, where Debian's real cloud-init has
processed the user data (NoCloud seed), and Debian's sshd runs. `poweroff` on a machine calls on_poweroff and ends the
machine. GPUs are stand-ins (give_gpus), the metadata service is metadata_service.py.

cloud-init runs once for each distinct user data. If only keys differ, its files are used again with the other keys.
Every boot runs `bootcmd` again, as on a real machine.

    world = Machines(hosts)                        # the fixture `hosts` of the integration tests
    machine = world.launch(user_data)              # blocks until it runs, not until sshd answers
    machine.addr, machine.user, machine.is_off(), machine.give_gpus(8), machine.path("/etc/passwd")
    world.plug(fake)                               # a FakeCloud whose launches become such machines: see plug()
    world.close()                                  # all are off
"""
import atexit
import contextlib
import hashlib
import json
import os
import pathlib
import re
import shlex
import shutil
import subprocess
import sys
import tempfile
import threading
import time

HERE = pathlib.Path(__file__).resolve().parent
sys.path[:0] = [str(HERE), str(HERE.parent / "integration")]

import metadata_service  # noqa: E402
from harness import until  # noqa: E402
from hosts import Holder, Host  # noqa: E402

SUPPORT = HERE.parent / "support"
USER = "ubuntu"  # the user of the images that our providers use
SSHD = "/usr/sbin/sshd"
CLOUD_INIT = "/usr/bin/cloud-init"
METADATA = "169.254.169.254"

# Settings that a provider's image has: the place of the user data. Disks must not be resized.
CONFIG = """
datasource_list: [NoCloud]
network: {config: disabled}
growpart: {mode: "off"}
resize_rootfs: false
preserve_hostname: true
apt: {preserve_sources_list: true}
locale: false
system_info: {default_user: {name: USER}}
"""

# A root over this machine's root, in its own mount namespace. Its /dev has none of our disks, and its /run is empty, so
# that its processes cannot reach this machine's services.
ROOT = r"""
mount -t tmpfs -o size=4g,mode=755 tmpfs /mnt
mkdir /mnt/upper /mnt/work /mnt/root
[ -z "$image" ] || tar --xattrs --xattrs-include='*' -xf "$image" -C /mnt/upper
mount -t overlay overlay -o lowerdir=/,upperdir=/mnt/upper,workdir=/mnt/work /mnt/root
root=/mnt/root
mount -t proc proc $root/proc
mount -t sysfs -o ro sysfs $root/sys
mount -t tmpfs -o mode=755 tmpfs $root/run
mount -t tmpfs -o mode=1777 tmpfs $root/tmp
mount -t tmpfs -o mode=755 tmpfs $root/dev
for name in null zero full random urandom tty; do
  cp -a /dev/$name $root/dev/$name
done
mkdir $root/dev/pts $root/dev/shm
mount -t devpts -o newinstance,ptmxmode=666,mode=620 devpts $root/dev/pts
mount -t tmpfs -o mode=1777 tmpfs $root/dev/shm
ln -s pts/ptmx $root/dev/ptmx
ln -s /proc/self/fd $root/dev/fd
ln -s /proc/self/fd/0 $root/dev/stdin
ln -s /proc/self/fd/1 $root/dev/stdout
ln -s /proc/self/fd/2 $root/dev/stderr
mkdir -p $root/run/lock $root/run/sshd
touch $root/etc/hosts $root/etc/resolv.conf  # mounted over later; a minimal Debian has no /etc/hosts
"""

BOOT = r"""
rm -f $root/etc/cloud/cloud-init.disabled
rm -rf $root/var/lib/cloud
mkdir -p $root/var/lib/cloud/seed/nocloud
cp "$seed/user-data" "$seed/meta-data" $root/var/lib/cloud/seed/nocloud/
cp "$seed/config" $root/etc/cloud/cloud.cfg.d/99-machine.cfg
for stage in 'init --local' init 'modules --mode=config' 'modules --mode=final'; do
  chroot $root /usr/bin/cloud-init $stage >>"$seed/log" 2>&1 </dev/null || :
done
cp $root/var/log/cloud-init.log "$seed/" 2>/dev/null || :
cp $root/run/cloud-init/result.json "$seed/" 2>/dev/null || :
rm -f $root/var/log/cloud-init*.log
tar --xattrs --xattrs-include='*' -C /mnt/upper -cf "$seed/image.partial" .
"""

# The same with systemd as process 1, which starts cloud-init and sshd in the order of a real boot. Units of this
# machine that a rented machine lacks are left out. If the test dies, its pipe closes and the machine ends.
SYSTEMD = r"""
mount -t cgroup2 cgroup2 $root/sys/fs/cgroup
rm -f $root/etc/cloud/cloud-init.disabled
rm -rf $root/var/lib/cloud
mkdir -p $root/var/lib/cloud/seed/nocloud
cp "$seed/user-data" "$seed/meta-data" $root/var/lib/cloud/seed/nocloud/
cp "$seed/config" $root/etc/cloud/cloud.cfg.d/99-machine.cfg
: >$root/etc/fstab
rm -f $root/etc/systemd/system/default.target $root/etc/ssh/ssh_host_*
ln -s /lib/systemd/system/multi-user.target $root/etc/systemd/system/default.target
for unit in $(cd $root/etc/systemd/system/multi-user.target.wants && ls); do
  [ $unit = ssh.service ] || rm $root/etc/systemd/system/multi-user.target.wants/$unit
done
# Enable what an image has enabled: on this machine ./dev enables nothing.
wanted() {
  mkdir -p $root/etc/systemd/system/$2.wants
  ln -sf /lib/systemd/system/$1 $root/etc/systemd/system/$2.wants/
}
wanted ssh.service multi-user.target
for unit in cloud-init-local cloud-init cloud-config cloud-final; do
  wanted $unit.service cloud-init.target
done
for unit in systemd-udevd systemd-udev-trigger networking; do
  ln -sf /dev/null $root/etc/systemd/system/$unit.service
done
"""
# Empties what a reboot empties.
RESET = r"""
umount -R /run && mount -t tmpfs -o mode=755 tmpfs /run && mkdir -p /run/lock /run/sshd
umount -R /sys/fs/cgroup && mount -t cgroup2 cgroup2 /sys/fs/cgroup
"""
START_SYSTEMD = r"""
exec 3<&0
(cat <&3 >/dev/null; /bin/systemctl poweroff -ff) >/dev/null 2>&1 &
echo ready
export container=other
exec /lib/systemd/systemd --system --log-target=console >"$folder/console" 2>&1 </dev/null
"""

POWEROFF = """#!/bin/sh
# This machine's power switch: see tests/cloud/machines.py.
echo "$0 $*" >{fifo}
exec sleep 60
"""

NVIDIA_SMI = """#!/bin/sh
# Prints what nvidia-smi would print about these GPUs.
read -r count error memory name </etc/fake-gpus || { echo 'No devices were found'; exit 6; }
case "$*" in
  *utilization*) row=$(cat /run/fake-gpu-use 2>/dev/null || echo 0) ;;
  *driver_version*) row="580.95.05, $name, $memory" ;;
  *) echo "no such question: $*" >&2; exit 2 ;;
esac
while [ "$count" -gt 0 ]; do echo "$row"; count=$((count - 1)); done
"""

KEY_TEXTS = re.compile(r"(?:AAAA|b3Bl)[A-Za-z0-9+/=]+|^ *[A-Za-z0-9+/=]{20,70}$", re.M)


def key_texts(user_data):
    """Returns the texts of keys in the user data, in order. The same places hold the keys of similar user data."""
    return [text.strip() for text in KEY_TEXTS.findall(user_data)]


class Images:
    """Tars of the files that cloud-init has made, by user data."""

    def __init__(self):
        self.folder = None
        self.lock = threading.Lock()
        self.made = {}  # digest of user data without its keys -> (its keys, image)

    def place(self):
        if self.folder is None:
            self.folder = pathlib.Path(tempfile.mkdtemp(prefix="lockstep-machines-"))
            atexit.register(shutil.rmtree, self.folder, True)
        return self.folder

    def image(self, user_data):
        """Returns (image, {text in the image: its replacement})."""
        keys = key_texts(user_data)
        bare = KEY_TEXTS.sub("KEY", user_data)
        digest = hashlib.sha256(bare.encode()).hexdigest()[:16]
        with self.lock:
            if digest not in self.made:
                self.made[digest] = keys, self._make(user_data, digest)
            old, image = self.made[digest]
        if len(old) != len(keys) or any(len(one) != len(other) for one, other in zip(old, keys)):
            raise AssertionError("keys of other lengths in user data")
        return image, {one: other for one, other in zip(old, keys) if one != other}

    def _make(self, user_data, digest):
        seed = self.place() / digest
        seed.mkdir()
        (seed / "user-data").write_text(user_data)
        (seed / "meta-data").write_text(f"instance-id: {digest}\nlocal-hostname: {digest}\n")
        (seed / "config").write_text(CONFIG.replace("USER", USER))
        script = f"image=''\nseed='{seed}'\nip link set lo up\nhostname {digest}\n{ROOT}{BOOT}"
        made = subprocess.run(["unshare", "--net", "--uts", "--mount", "--ipc", "--pid", "--fork", "--kill-child",
                               "--mount-proc", "--propagation", "private", "sh", "-ec", script], capture_output=True,
                              text=True, stdin=subprocess.DEVNULL, timeout=300, cwd="/")
        log = (seed / "log").read_text(errors="replace") if (seed / "log").exists() else ""
        assert made.returncode == 0 and (seed / "result.json").exists(), f"{made.stderr}\n{log[-4000:]}"
        result = json.loads((seed / "result.json").read_text())["v1"]
        assert result["datasource"].startswith("DataSourceNoCloud"), (result, log[-4000:])
        # Ignore result["errors"]: modules that need a network, or parts that Debian's package lacks, may fail.
        (seed / "image.partial").rename(seed / "image.tar")
        return seed / "image.tar"


IMAGES = Images()


def fake_libcuda():
    """Returns the path of a fake libcuda, which is compiled once."""
    library = IMAGES.place() / "libcuda.so.1"
    with IMAGES.lock:
        if not library.exists():
            subprocess.run(["cc", "-shared", "-fPIC", "-O1", "-o", library, SUPPORT / "fake_libcuda.c"], check=True)
    return library


def nvidia_name(catalog, wanted):
    """Returns nvidia-smi's name of the GPUs of a fake cloud's machine, and their MiB; 0: unknown."""
    if wanted.face == "runpod":
        return wanted.type, catalog["runpod"]["gpus"][wanted.type]["memory"] * 1024
    if wanted.face == "lambda":
        name, gigabytes = re.fullmatch(r"(.+) \((\d+) GB.*\)", wanted.gpu).groups()
        return f"NVIDIA {name}", int(gigabytes) * 1024
    if wanted.face == "gce":
        return f"NVIDIA {wanted.gpu.removeprefix('nvidia-').removeprefix('tesla-').upper()}", 0
    return f"NVIDIA {wanted.gpu}", catalog["aws"]["types"][wanted.type]["gpu_mib"]


class Machine(Host):
    """One rented machine: a Host with start(), processes(), cut(), vanish()."""

    def __init__(self, hosts, number, user_data, gpus=None, container=None):
        super().__init__(hosts, number)
        self.container = container  # {"command", "env"}: a container, without cloud-init
        self.user = "root" if container else USER
        self.image, self.other_keys = ("", {}) if container else IMAGES.image(user_data)
        self.user_data = user_data
        self.on_poweroff = None
        self.said_off = []  # words that reached the power switch
        self._off = threading.Event()
        self.fifo = self.folder / "power"
        os.mkfifo(self.fifo)
        self.gpus = gpus
        self.shared = None
        self.sshd = self.metadata = None
        self._switch = threading.Thread(target=self._watch_switch, daemon=True)
        self._switch.start()

    def _begin(self):
        env = (self.container or {}).get("env", {})
        exports = [f"export {name}={shlex.quote(value)}" for name, value in env.items()]
        setup = [*exports, f"hostname {self.name}", "ip link set lo up", f"image='{self.image}'", ROOT,
                 f"mount --bind {self.hosts.hosts_file} $root/etc/hosts",
                 f"mount --bind {self.hosts.resolv_file} $root/etc/resolv.conf",
                 f"mkdir -p $root{self.folder} && mount --bind {self.folder} $root{self.folder}",
                 *([f"mkdir $root/shared && mount --bind {self.shared} $root/shared"] if self.shared else []),
                 "cd $root", "pivot_root . mnt", "umount -l /mnt"]
        self.holder = Holder("--net", "--uts", "--mount", "--ipc", "--pid", "--fork", "--kill-child", "--mount-proc",
                             "--propagation", "private", setup="\n".join(setup))

    def _finish(self):
        super()._finish()
        self._put_keys()
        switch = "/usr/local/bin/runpodctl" if self.container else "/usr/local/sbin/poweroff"
        self.put(switch, POWEROFF.format(fifo=self.fifo), 0o755)
        if self.gpus:
            self.give_gpus(*self.gpus)

    def _put_keys(self):
        """Puts the keys of this machine into files that cloud-init made from other user data."""
        if not self.other_keys:
            return
        for place in ("/etc/ssh", f"/home/{USER}/.ssh", "/root/.ssh", "/var/lib/cloud/instance",
                      "/var/lib/cloud/seed"):
            for path in self.path(place).rglob("*"):
                if not path.is_file() or path.is_symlink():
                    continue
                data = path.read_bytes()
                for old, new in self.other_keys.items():
                    data = data.replace(old.encode(), new.encode())
                if data != path.read_bytes():
                    path.write_bytes(data)

    def path(self, inside):
        """Returns the path, on this machine, of a file on the rented machine."""
        return pathlib.Path(f"/proc/{self.holder.pid}/root{inside}")

    def put(self, inside, text, mode=0o644):
        self.path(inside).write_text(text)
        self.path(inside).chmod(mode)

    def power_on(self):
        """Boots: cloud-init's bootcmd, then sshd, in systemd's order; or the command of a container."""
        if self.container:
            env = {"HOME": "/root", "TMPDIR": None, **self.container["env"]}
            self.sshd = self.start("-c", self.container["command"], program=("/bin/sh",), cwd="/", env=env)
            until(lambda: "Server listening" in self.sshd.err() or self.sshd.process.poll() is not None, 20, "sshd")
            assert self.sshd.process.poll() is None, self.sshd.err()
            return self
        self.command(CLOUD_INIT, "single", "--name", "bootcmd", "--frequency", "always")
        self.start_sshd()
        return self

    def command(self, *argv, timeout=60.0):
        """Runs a command as root to its end. Its children may stay."""
        ended = self.start(*argv[1:], program=(argv[0],), env={"HOME": "/root", "TMPDIR": None}, cwd="/").wait(timeout)
        assert ended.rc == 0, f"{argv}: {ended}"
        return ended.out

    def start_sshd(self):
        self.sshd = self.start("-D", "-e", program=(SSHD,), cwd="/", env={"HOME": "/root", "TMPDIR": None})
        until(lambda: "Server listening" in self.sshd.err() or self.sshd.process.poll() is not None, 20, "sshd listens")
        assert self.sshd.process.poll() is None, self.sshd.err()

    def give_gpus(self, count, error=0, name="NVIDIA A100-SXM4-80GB", memory_mib=81920):
        """Gives the machine stand-ins for GPUs. error: CUDA's error number for opening them."""
        self.put("/usr/local/bin/nvidia-smi", NVIDIA_SMI, 0o755)
        self.path("/usr/lib/libcuda.so.1").write_bytes(fake_libcuda().read_bytes())
        self.put("/etc/fake-gpus", f"{count} {error} {memory_mib} {name}\n")

    def use_gpus(self, percent):
        self.put("/run/fake-gpu-use", f"{percent}\n")

    def start_metadata(self, kind):
        """Starts the metadata service, "ec2" or "gce". metadata_service.tell(machine.says, ..) sets its answers."""
        self.says = self.folder / "metadata.json"
        service = self.folder / "metadata_service.py"
        service.write_text((HERE / "metadata_service.py").read_text())
        self.metadata = self.start(service, "--kind", kind, "--state", self.says, "--own-address",
                                   program=("/usr/bin/python3",), cwd="/")
        until(lambda: METADATA in self.metadata.out() or self.metadata.process.poll() is not None, 20, "metadata")
        assert self.metadata.process.poll() is None, self.metadata.err()

    def _watch_switch(self):
        """Ends the machine once a process writes into the power switch."""
        with open(self.fifo, encoding="utf-8") as fifo:  # blocks until a writer opens the FIFO
            words = fifo.readline().strip()
        if not words or not self.up:
            return
        self.said_off.append(words)
        self.off()
        self._off.set()
        if self.on_poweroff:
            self.on_poweroff(self)

    def off(self):
        super().off()
        self._off.set()

    def is_off(self):
        return self._off.is_set()

    def powered_off(self, deadline):
        """Waits until the machine has powered itself off."""
        until(lambda: self.is_off() and self.said_off, deadline, f"{self.name} powers off")

    def unplug(self):
        """Ends the machine and its thread at the power switch, at the end of a test."""
        self.off()
        try:
            os.close(os.open(self.fifo, os.O_WRONLY | os.O_NONBLOCK))
        except OSError:  # the reader has ended
            pass
        self._switch.join(10)


class SystemdMachine(Machine):
    """A machine with systemd as process 1, which runs cloud-init, timers, sshd and the shutdown. It boots in 10 s."""

    def __init__(self, hosts, number, user_data, gpus=None):
        Host.__init__(self, hosts, number)
        self.container, self.other_keys, self.user = None, {}, USER
        self.user_data, self.gpus = user_data, gpus
        self.on_poweroff, self.metadata, self.said_off = None, None, []
        self._off = threading.Event()
        self.seed = self.folder / "seed"
        self.seed.mkdir()
        (self.seed / "user-data").write_text(user_data)
        (self.seed / "meta-data").write_text(f"instance-id: {self.name}\nlocal-hostname: {self.name}\n")
        (self.seed / "config").write_text(CONFIG.replace("USER", USER))

    def _begin(self):
        setup = [f"hostname {self.name}", "image=''", f"seed='{self.seed}'", f"folder='{self.folder}'", ROOT,
                 f"mount --bind {self.hosts.hosts_file} $root/etc/hosts",
                 f"mkdir -p $root{self.folder} && mount --bind {self.folder} $root{self.folder}", SYSTEMD,
                 "cd $root", "pivot_root . mnt", "umount -l /mnt", START_SYSTEMD]
        self.holder = Holder("--net", "--uts", "--mount", "--ipc", "--pid", "--cgroup", "--fork", "--kill-child",
                             "--mount-proc", "--propagation", "private", setup="\n".join(setup))

    def _finish(self):
        Host._finish(self)
        self._switch = threading.Thread(target=self._watch_end, args=(self.holder,), daemon=True)
        self._switch.start()
        if self.gpus:
            self.give_gpus(*self.gpus)

    def _watch_end(self, holder):
        holder.process.wait()
        if not self.up or holder is not self.holder:
            return
        self.said_off.append("systemd")
        self.off()
        if self.on_poweroff:
            self.on_poweroff(self)

    def power_on(self):
        until(lambda: self.systemctl("is-active", "ssh.service") == "active", 60, "sshd runs")
        return self

    def reboot(self):
        """Presses the reset button: disk and network address stay, all else starts anew."""
        kinds = {"mount": "mnt", "net": "net", "uts": "uts", "ipc": "ipc"}
        with contextlib.ExitStack() as open_files:
            spaces = {name: open_files.enter_context(open(f"/proc/{self.holder.pid}/ns/{kind}"))
                      for name, kind in kinds.items()}
            before, self.holder = self.holder, None
            before.kill()
            self._switch.join(10)
            setup = [f"folder='{self.folder}'", RESET, START_SYSTEMD]
            self.holder = Holder("--mount", "--pid", "--cgroup", "--fork", "--kill-child", "--mount-proc",
                                 "--propagation", "private", setup="\n".join(setup),
                                 enter=[f"--{name}=/proc/{os.getpid()}/fd/{file.fileno()}"
                                        for name, file in spaces.items()]).ready()
        self._switch = threading.Thread(target=self._watch_end, args=(self.holder,), daemon=True)
        self._switch.start()
        return self.power_on()

    def systemctl(self, *words):
        said = subprocess.run(["nsenter", "--target", str(self.holder.pid), "--all", "systemctl", *words],
                              capture_output=True, text=True)
        return said.stdout.strip()

    def unplug(self):
        self.off()
        self._switch.join(10)


class Machines:
    """All machines of a test."""

    def __init__(self, hosts):
        self.hosts = hosts
        self.all = []
        self.lock = threading.Lock()
        self.by_id = {}  # provider's id -> machine
        self.shared = None  # a folder that all machines see as /shared, in place of an object store

    def launch(self, user_data, gpus=None, boot=True, container=None, systemd=False):
        if not container and not systemd:
            IMAGES.image(user_data)  # without the lock: this takes seconds
        with self.lock:
            if self.hosts.switch is None:
                self.hosts(0)
            number = len(self.hosts.all)
            machine = (SystemdMachine(self.hosts, number, user_data, gpus) if systemd else
                       Machine(self.hosts, number, user_data, gpus, container))
            machine.shared = self.shared
            self.hosts.all.append(machine)
            self.all.append(machine)
            lines = ["127.0.0.1 localhost", *(f"{host.addr} {host.name}" for host in self.hosts.all)]
            self.hosts.hosts_file.write_text("\n".join(lines) + "\n")
            machine._begin()
            machine._finish()
        return machine.power_on() if boot else machine

    def plug(self, fake, cuda_error=lambda wanted: 0, boot=Machine.power_on):
        """Makes a machine for each launch of a FakeCloud, with the GPUs of its type. cuda_error(machine of the fake):
        the error of opening the GPUs. A power-off tells the fake; a termination by the fake cuts the power; a notice
        appears in the machine's metadata service. If boot(machine) returns before sshd runs, the provider says
        "running" that much earlier. self.by_id: provider's id -> machine."""
        world = fake.world

        def launched(wanted):
            container = None
            if wanted.face == "runpod":
                container = {"command": wanted.user_data, "env": {**wanted.env, "RUNPOD_POD_ID": wanted.id}}
            gpus = (wanted.gpus, cuda_error(wanted), *nvidia_name(world.catalog, wanted)) if wanted.gpus else None
            machine = self.launch(wanted.user_data, gpus, boot=False, container=container)
            self.by_id[wanted.id] = machine
            if not container:
                machine.start_metadata("gce" if wanted.face == "gce" else "ec2")
            machine.on_poweroff = lambda _: (world.end(wanted, "removed by itself") if container
                                             else world.power_off(wanted))
            boot(machine)
            keys = [] if container else [path.read_text() for path in machine.path("/etc/ssh").glob("ssh_host_*.pub")]
            return {"address": machine.addr, "private_address": machine.addr, "port": 22, "host_keys": keys}

        def ended(wanted):
            machine = self.by_id.get(wanted.id)
            if machine is not None and machine.up:
                machine.vanish()

        def noticed(wanted, seconds):
            machine = self.by_id.get(wanted.id)
            if machine is None or machine.metadata is None:
                return
            at = time.strftime("%Y-%m-%dT%H:%M:%SZ", time.gmtime(world.wall() + seconds))
            news = {"preempted": True} if wanted.face == "gce" else {
                "instance_action": {"action": "terminate", "time": at}}
            metadata_service.tell(machine.says, **news)
        world.on_launch, world.on_end, world.on_notice = launched, ended, noticed

    def close(self):
        """Switches all machines off and removes them."""
        for machine in self.all:
            machine.unplug()
