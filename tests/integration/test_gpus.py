"""GPUs in Lockstep's output: a machine with an invented driver, nvidia-smi and kernel log."""
import json
import os
import pathlib
import re
import shutil
import signal
import subprocess
import time

import pytest

from harness import BINARY, alive, report_of, skip, until

DRIVER = """
# The driver's files, in mounts of this process alone. $1: a folder with dev/, kmsg, driver/ and perhaps sys/.
# $2: device files, made of plain ones.
folder=$1; devices=$2; shift 2
mount -t tmpfs tmpfs "$folder/dev"
mkdir "$folder/dev/pts" "$folder/dev/shm"
mount --rbind /dev/shm "$folder/dev/shm"
mount --rbind /dev/pts "$folder/dev/pts"
for name in null zero full random urandom tty ptmx; do
  [ -e "/dev/$name" ] || continue
  touch "$folder/dev/$name"
  mount --bind "/dev/$name" "$folder/dev/$name"
done
mkdir "$folder/dev/dri"
for name in $devices kmsg; do touch "$folder/dev/$name"; done
mount --bind "$folder/kmsg" "$folder/dev/kmsg"
mount --rbind "$folder/dev" /dev
mount --rbind "$folder/driver" /proc/driver
[ ! -e "$folder/sys" ] || mount --rbind "$folder/sys" /sys
exec "$@"
"""
# Both lines in one write. Figures that are not renewed go stale.
TWO_GPUS = """
while :; do
  echo '0, GPU-aa, 97, 71680, 81920, 320.5, 61
1, GPU-bb, 3, 1024, 81920, [N/A], 33, Reset'
  sleep 1
done
"""
BUS = {0: "0000:c1:00.0", 1: "0000:c2:00.0"}


class Machine:
    def __init__(self, lockstep):
        self.lockstep = lockstep
        self.folder = lockstep.folder / "gpus"
        self.kmsg = self.folder / "kmsg"
        self.starts = self.folder / "starts"
        (self.folder / "dev").mkdir(parents=True)
        (self.folder / "bin").mkdir()
        self.kmsg.write_text("3,1,1,-;NVRM: Xid (PCI:0000:c1:00): 48, before the job\n")
        (self.folder / "driver").mkdir()
        self.devices = ""

    def put_nvidia(self):
        self.devices = "nvidia0 nvidia1"
        for minor, bus in BUS.items():
            gpu = self.folder / "driver/nvidia/gpus" / bus
            gpu.mkdir(parents=True)
            (gpu / "information").write_text(f"Model: \t\t NVIDIA H100\nGPU UUID: \t GPU-{'ab'[minor] * 2}\n"
                                             f"Device Minor: \t {minor}\n")

    def put_amd(self):
        self.devices = "kfd dri/renderD128"
        files = {"class/kfd/kfd/topology/nodes/0/properties": "simd_count 0\n",
                 "class/kfd/kfd/topology/nodes/1/properties":
                     "simd_count 4\ndrm_render_minor 128\ndomain 0\nlocation_id 49408\nunique_id 7\n",
                 "bus/pci/devices/0000:c1:00.0/gpu_busy_percent": "87\n",
                 "bus/pci/devices/0000:c1:00.0/mem_info_vram_used": f"{32 << 30}\n",
                 "bus/pci/devices/0000:c1:00.0/mem_info_vram_total": f"{64 << 30}\n"}
        for name, text in files.items():
            path = self.folder / "sys" / name
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_text(text)

    def nvidia_smi(self, body):
        program = self.folder / "bin/nvidia-smi"
        program.write_text(f"#!/bin/sh\necho $$ >>{self.starts}\n{body}")
        program.chmod(0o755)

    def env(self):
        return {"PATH": f"{self.folder}/bin:{os.environ['PATH']}"}

    def start(self, *options, actions, nproc=2, env=None):
        program = ["unshare", "--mount", "--propagation", "private", "sh", "-ec", DRIVER, "sh", self.folder,
                   self.devices, BINARY, "run"]
        job = self.lockstep.start_worker("--nproc-per-node", nproc, "--log-dir", self.lockstep.logs, *options,
                                         actions=[f"touch={self.lockstep.facts}", *actions],
                                         env={**self.env(), **(env or {})},
                                         program=program)
        self.lockstep.ready(nproc, 30)
        return job

    def pids(self):
        return [int(pid) for pid in self.starts.read_text().split()] if self.starts.exists() else []

    def fault(self, line):
        with open(self.kmsg, "a") as log:
            log.write(line + "\n")


@pytest.fixture
def machine(lockstep):
    if os.getuid() != 0:
        pytest.skip("mounts need root")
    return Machine(lockstep)


def ask(lockstep, verb, job, *options):
    ended = subprocess.run([BINARY, verb, f"pid-{job.pid}", *options], env=lockstep.environment(),
                           capture_output=True, text=True, timeout=60)
    assert ended.returncode == 0, ended
    return ended.stdout


def rows(lockstep, job):
    nodes = json.loads(ask(lockstep, "top", job, "--json"))["nodes"]
    return {row["rank"]: row for node in nodes for row in node["rows"]}


def figures(lockstep, job):
    """Waits until the GPUs of all ranks are known. A command waits 3 s for a slow nvidia-smi at most."""
    def known():
        seen = rows(lockstep, job)
        return all(row["gpu_share"] is not None for row in seen.values()) and seen
    return until(known, 30, "figures")


def test_dcgms_exporter_learns_the_job(machine, lockstep, tmp_path):
    machine.put_nvidia()
    machine.nvidia_smi(TWO_GPUS)
    folder = tmp_path / "jobs"
    assert "no such folder" in lockstep.run_worker("--dcgm-job-dir", folder, actions=["exit=0"]).err
    folder.mkdir()
    (folder / "0").write_text("1234\n")
    job = machine.start("--dcgm-job-dir", folder, actions=["await"])
    (name,) = until(lambda: (folder / "1").exists() and (folder / "1").read_text().split(), 30, "GPU 1 has a name")
    assert (folder / "0").read_text() == f"1234\n{name}\n"
    job.signal(signal.SIGTERM)
    job.wait(30)
    assert {path.name: path.read_text() for path in folder.iterdir()} == {"0": "1234\n"}


@pytest.mark.parametrize("name", [{"LOCKSTEP_JOB_ID": "3f0a9c1e"}, {"SLURM_JOB_ID": "77"}],
                         ids=["ours", "slurm"])
def test_rows_of_a_sweep_that_share_a_gpu_have_a_line_each(machine, tmp_path, name):
    machine.put_nvidia()
    machine.nvidia_smi(TWO_GPUS)
    folder = tmp_path / "jobs"
    folder.mkdir()
    rows = [machine.start("--dcgm-job-dir", folder, nproc=1, actions=["await"],
                          env={**name, "LOCKSTEP_SWEEP_ROW": row}) for row in "01"]
    gpu = folder / "0"
    (job,) = name.values()
    until(lambda: gpu.exists() and sorted(gpu.read_text().split()) == [f"{job}[0]", f"{job}[1]"], 30,
          "both rows have a line")
    rows[0].signal(signal.SIGTERM)
    rows[0].wait(30)
    assert gpu.read_text() == f"{job}[1]\n"
    rows[1].signal(signal.SIGTERM)
    rows[1].wait(30)
    assert not list(folder.iterdir())


def test_a_folder_of_another_user_is_refused(lockstep, open_folder):
    """Root may write everywhere, so another user asks."""
    if os.getuid() != 0:
        skip("another user needs root")
    shutil.copy(BINARY, open_folder / "lockstep")
    ended = lockstep.run("--dcgm-job-dir", open_folder, "--no-python", "true", env={"HOME": "/nonexistent"},
                         program=["setpriv", "--reuid=12345", "--regid=12345", "--clear-groups", "--inh-caps=-all",
                                  "--bounding-set=-all", open_folder / "lockstep", "run"])
    assert ended.rc == 1 and f"--dcgm-job-dir {open_folder}: this user may not write there" in ended.err, ended


def test_use_and_faults_are_shown(machine, lockstep):
    machine.put_nvidia()
    machine.nvidia_smi(TWO_GPUS)
    job = machine.start(actions=["await"])
    seen = figures(lockstep, job)
    assert (seen[0]["gpu"], seen[0]["gpu_share"], seen[0]["gpu_watts"]) == (0, 0.97, 320.5), seen
    assert (seen[0]["gpu_memory_bytes"], seen[0]["gpu_memory_total_bytes"]) == (70 << 30, 80 << 30), seen
    assert (seen[1]["gpu"], seen[1]["gpu_share"], seen[1]["gpu_watts"]) == (1, 0.03, None), seen
    table = ask(lockstep, "top", job, "--sort", "gpu")
    assert re.search(r"^RANK .* GPU GPUMEM\b", table, re.M), table
    assert "  GPU     0 (a guess): 97 %, 70G of 80G, 320 W" in ask(lockstep, "top", job, "--rank", "0"), "one rank"
    machine.fault("12,2,2,-;NVRM: Xid (PCI:0000:c2:00): 62, a program has written this")
    machine.fault("6,3,3,-;NVRM: Xid (PCI:0000:99:00): 79, not of this job")
    for number in (4, 5):
        machine.fault(f"3,{number},4,-;NVRM: Xid (PCI:0000:C2:00): 79, pid=1, fallen off the bus.\n SUBSYSTEM=x")
    words = "XID 79 on GPU 1 (0000:c2:00): the GPU has fallen off the bus"
    until(lambda: words in job.err(), 30, "the fault is told")
    why = ask(lockstep, "why", job)
    for line in ("rank 0, GPU 0: 97 %, 70 of 80 GiB, 320 W, 61 C",
                 "rank 1, GPU 1: 3 %, 1 of 80 GiB, 33 C, the driver asks for: Reset", words):
        assert f"  {line}\n" in why, why
    told = ask(lockstep, "events", job)
    assert told.count("gpu_fault") == 1 and words in told, told
    assert job.err().count("XID") == 1, job.err()
    (pid,) = machine.pids()
    job.signal(15)
    job.wait()
    job.none_left()
    until(lambda: not alive(pid), 10, "nvidia-smi has ended")


def test_the_evidence_of_a_hang_has_the_gpus(machine, lockstep):
    machine.put_nvidia()
    machine.nvidia_smi(TWO_GPUS)
    job = machine.start("--hang-after", 20, actions=["await"])
    figures(lockstep, job)
    until(lambda: "evidence: " in job.err(), 60, "the hang is told")
    assert "rank 0, GPU 0: 97 %, 70 of 80 GiB, 320 W, 61 C\n" in (lockstep.attempt(0) / "hang-1.txt").read_text()
    job.signal(15)
    job.wait()


@pytest.mark.parametrize("body, words", [("trap '' TERM HUP INT\nsleep 1000 & wait\n", ""),
                                         ("exit 9\n", "has ended with code 9; run it by hand"),
                                         ("exec yes\n", "prints too much; run it by hand"),
                                         ("exec tr '\\0' x </dev/zero\n", "prints too much; run it by hand"),
                                         ("", "does not start: find nvidia-smi in PATH: No such file or directory")],
                         ids=["hang", "die", "lines", "line", "none"])
def test_a_broken_nvidia_smi_costs_nothing(machine, lockstep, body, words):
    machine.put_nvidia()
    if body:
        machine.nvidia_smi(body)
    job = machine.start(actions=["await"])
    began = time.monotonic()
    seen = rows(lockstep, job)
    assert [(seen[rank]["gpu"], seen[rank]["gpu_share"]) for rank in (0, 1)] == [(0, None), (1, None)], seen
    assert " GPU" not in ask(lockstep, "top", job)
    if words:
        until(lambda: f"  GPUs: nvidia-smi {words}\n" in ask(lockstep, "why", job), 30, words)
    assert len(machine.pids()) <= 1 + (time.monotonic() - began) // 5, "tries have pauses"
    job.signal(15)
    ended = job.wait()
    job.none_left()
    assert "nvidia" not in ended.err, ended


def test_the_report_of_a_failure_names_the_fault(machine, lockstep):
    machine.put_nvidia()
    machine.nvidia_smi(TWO_GPUS)
    go = lockstep.facts / "go"
    job = machine.start(actions=[f"wait={go}", "@1", "exit=3", "@0", "await"])
    machine.fault("3,2,2,-;NVRM: Xid (PCI:0000:c2:00): 94, pid=7, Contained: SM (0x1)")
    go.touch()
    ended = job.wait()
    words = "  note      : XID 94 on GPU 1 (0000:c2:00): an ECC error that hit one program only"
    assert words in report_of(ended.err), ended


def test_gpus_of_amd_are_read_by_a_child(machine, lockstep):
    machine.put_amd()
    job = machine.start(actions=["await"])
    seen = figures(lockstep, job)
    assert (seen[0]["gpu"], seen[0]["gpu_share"], seen[0]["gpu_memory_bytes"]) == (0, 0.87, 32 << 30), seen
    assert seen[1]["gpu"] == 0, "the only one that rank 1 sees"
    job.signal(15)
    job.wait()
    job.none_left()


def test_without_a_driver_nothing_is_started(machine, lockstep):
    machine.nvidia_smi(TWO_GPUS)
    if os.path.exists("/proc/driver/nvidia/gpus") or os.path.exists("/dev/nvidia0") or os.path.exists("/dev/kfd"):
        pytest.skip("this machine has GPUs")
    job = lockstep.start_worker(actions=[f"touch={lockstep.facts}", "await"], env=machine.env())
    lockstep.ready(1)
    assert rows(lockstep, job)[0]["gpu"] is None and not machine.pids()
    assert "GPU" not in ask(lockstep, "top", job)
    job.signal(15)
    job.wait()
