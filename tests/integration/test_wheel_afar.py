"""lockstep wheel --slurm and --on: builds on a node of a Slurm cluster or on a host over SSH, for the abilities that
all nodes share. The wheel comes back to the local cache. pip fetches from the fake package index."""
import hashlib
import json
import pathlib
import re
import subprocess

import pytest

from harness import BINARY, PYTHON, until
from package_index import small_source_files, write_sdist
from slurm_cluster import SlurmCluster
from ssh_hosts import SshWorld

pytest.importorskip("torch")

SMALL = small_source_files("tiny", "1.0", "V = 1\n")


@pytest.fixture
def cluster(hosts):
    made = SlurmCluster(hosts, 3, cred_expire=60)
    # Slurm brings the program to the nodes; without its debugging symbols it is a tenth of the size.
    subprocess.run(["strip", "-o", made.work / "lockstep", BINARY], check=True)
    yield made
    made.close()


def project(folder, files=None):
    folder.mkdir()
    for name, text in (files or SMALL).items():
        (folder / name).write_text(text)
    return folder


def wheel(cluster, *words, **options):
    return cluster.run("wheel", "--python", PYTHON, *words, program=(cluster.work / "lockstep",), **options)


def test_in_a_job_for_what_the_nodes_have_in_common(cluster):
    project(cluster.work / "tiny")
    ended = wheel(cluster, "./tiny", "--slurm", "--json", "-p", "gpu", "-t", "5", "--gpus=1",
                  "-o", cluster.work / "dist")
    assert ended.rc == 0, ended
    manifest = json.loads(ended.out)
    assert manifest["host"] in {node.name for node in cluster.nodes}, manifest
    assert manifest["slurm_partition"] == "gpu" and manifest["slurm_job"], manifest
    assert re.search(r"3 of 3 nodes have answered: their CPUs have (x86-64\S*) in common", ended.err), ended
    common = re.search(r"CPUs have (\S+) in common", ended.err)[1]
    assert manifest["isa"] == common and "GPUs of these types are not known: fake" in ended.err, ended
    assert pathlib.Path(manifest["path"]) == cluster.work / "dist" / manifest["wheel"]
    kept = cluster.home / ".cache/lockstep/wheel-builds" / manifest["key"] / manifest["wheel"]
    assert kept.read_bytes() == pathlib.Path(manifest["path"]).read_bytes()
    # No copy of the program stays, and the same again comes from the cache.
    for node in cluster.nodes:
        assert "lockstep" not in node.run("/tmp", program=("/bin/ls",)).out
    again = wheel(cluster, "./tiny", "--slurm", "--json", "-p", "gpu")
    assert json.loads(again.out)["cached"] and json.loads(again.out)["sha256"] == manifest["sha256"], again


def test_a_node_that_is_busy_is_not_taken_for_granted(cluster):
    project(cluster.work / "tiny")
    busy = cluster.nodes[2].name
    cluster.slurm("sbatch", "--parsable", "-w", busy, "--exclusive", "-t5", "--wrap", "sleep 300")
    until(lambda: cluster.node_states().get(busy) == "allocated", 60, f"{busy} is busy")
    ended = wheel(cluster, "./tiny", "--slurm", "--json")
    assert ended.rc == 0, ended
    assert "2 of 3 nodes have answered" in ended.err, ended
    assert json.loads(ended.out)["isa"] in ("x86-64", "x86-64-v2", "x86-64-v3")


def test_what_can_not_be_built_there_is_said(cluster):
    project(cluster.work / "bad", {**SMALL, "backend.py": "raise RuntimeError('no such backend')\n"})
    ended = wheel(cluster, "./bad", "--slurm", "--isa=x86-64-v2", "--arch=8.0")
    assert ended.rc == 1 and ended.out == "" and "the build job exited with code 1" in ended.err, ended
    assert "RuntimeError: no such backend" in ended.err and "nodes have answered" not in ended.err, ended
    for words, rc, text in ((("./bad", "--slurm", "-p", "nowhere"), 2, "no suitable node for the build"),
                            (("./bad", "--slurm", "--on", "x"), 2, "--slurm and --on exclude each other"),
                            (("./bad", "--slurm", "--print"), 2, "--print shows the plan for this machine only"),
                            (("./bad", "--slurm", "--nodez=2"), 2, "nodez"),
                            (("./bad", "-p", "gpu"), 2, "-p")):
        ended = wheel(cluster, *words)
        assert ended.rc == rc and text in ended.err, ended


def test_on_a_cluster_of_slurms(cluster):
    """That this machine is the login host of."""
    assert cluster.run("cluster", "add", "hpc", "--slurm").rc == 0
    project(cluster.work / "tiny")
    ended = wheel(cluster, "./tiny", "--on", "hpc", "--json", "-w", cluster.nodes[1].name)
    assert ended.rc == 0 and json.loads(ended.out)["host"] == cluster.nodes[1].name, ended
    assert "3 of 3 nodes have answered" in ended.err, ended
    # The nodes only have overlays of jobs.
    ended = cluster.run("install", "hpc", "wheel:./x.whl", "--overlay")
    assert ended.rc == 2 and "nodes get wheels with a job; write lockstep submit --wheel" in ended.err, ended


def test_on_a_host_over_ssh(hosts):
    """The first host builds, of a copy of the folder, for the CPUs of both."""
    world = SshWorld(hosts)
    try:
        client, *servers = world(2)
        words = [word for server in servers for word in ("--host", f"me@{server.addr}")]
        assert client.run("cluster", "add", "gpus", *words).rc == 0
        project(client.folder / "tiny")
        ended = client.run("wheel", "--python", PYTHON, "./tiny", "--on", "gpus", "--json", cwd=client.folder,
                           timeout=300)
        assert ended.rc == 0, ended
        manifest = json.loads(ended.out)
        assert manifest["built_on"] == "gpus-0" and manifest["host"] == servers[0].host.name, manifest
        assert "2 of 2 nodes have answered" in ended.err, ended
        path = pathlib.Path(manifest["path"])
        assert path.name == "tiny-1.0-py3-none-any.whl", manifest
        assert hashlib.sha256(path.read_bytes()).hexdigest() == manifest["sha256"]
        assert list((servers[0].homes["me"] / ".cache/lockstep/wheel-builds").glob("*/*.whl"))
        assert not (servers[1].homes["me"] / ".cache/lockstep/wheel-builds").exists()
        # A second folder of that name takes nothing from the first, and none of the options of `wheel` is needed.
        (client.folder / "two").mkdir()
        project(client.folder / "two/tiny", small_source_files("tiny", "2.0", "V = 2\n"))
        ended = client.run("wheel", "--python", PYTHON, "./tiny", "--on", "gpus", cwd=client.folder / "two",
                           timeout=300)
        assert ended.rc == 0 and "tiny-2.0-py3-none-any.whl" in ended.out, ended
        (client.folder / "tiny/backend.py").write_text("raise RuntimeError('no such backend')\n")
        ended = client.run("wheel", "--python", PYTHON, "./tiny", "--on", "gpus", cwd=client.folder, timeout=300)
        assert ended.rc == 1 and "cannot build the wheel on gpus-0" in ended.err, ended
        assert "no such backend" in ended.err, ended
        ended = client.run("wheel", "./tiny", "--on", "gpus", "-p", "gpu", cwd=client.folder)
        assert ended.rc == 2, ended
        assert "--partition is an option of sbatch, and gpus is not a Slurm cluster" in ended.err, ended
    finally:
        left = world.close()
    assert not left, f"left running on hosts: {left}"


@pytest.fixture
def served(tmp_path):
    """Makes an index with one source named DeepSpeed, and files beside it."""
    top = tmp_path / "index"
    write_sdist(top / "simple/deepspeed", "deepspeed", "9.9", "V = 9\n")
    with open(top / "endless.tar.gz", "wb") as file:
        file.truncate((512 << 20) + 1)
    server = subprocess.Popen([PYTHON, "-u", "-m", "http.server", "0", "--bind", "127.0.0.1", "--directory", top],
                              stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True)
    port = re.search(r"port (\d+)", server.stdout.readline())[1]
    yield f"http://127.0.0.1:{port}", top
    server.kill()
    server.wait()


def test_pip_fetches_versions_and_urls(served, tmp_path):
    url, top = served
    env = {"HOME": str(tmp_path), "PATH": "/usr/bin:/bin", "PIP_INDEX_URL": f"{url}/simple", "PIP_RETRIES": "0"}

    def build(source):
        return subprocess.run([BINARY, "wheel", "--json", "--python", PYTHON, source], env=env, cwd=tmp_path,
                              capture_output=True, text=True, timeout=300)

    ended = build("deepspeed==9.9")
    assert ended.returncode == 0 and json.loads(ended.stdout)["wheel"] == "deepspeed-9.9-py3-none-any.whl", ended
    ended = build("deepspeed==9.8")
    assert ended.returncode == 1 and "deepspeed==9.8 can't be fetched" in ended.stderr, ended
    sdist = f"{url}/simple/deepspeed/deepspeed-9.9.tar.gz"
    digest = hashlib.sha256((top / "simple/deepspeed/deepspeed-9.9.tar.gz").read_bytes()).hexdigest()
    ended = build(f"deepspeed@{sdist}#sha256={digest}")
    assert ended.returncode == 0 and json.loads(ended.stdout)["version"] == "9.9", ended
    ended = build(f"deepspeed@{sdist}#sha256={'0' * 64}")
    assert ended.returncode == 1 and "can't be fetched" in ended.stderr, ended
    ended = build(f"deepspeed@{url}/endless.tar.gz")
    assert ended.returncode == 1 and "File too large" in ended.stderr, ended
    assert not list(pathlib.Path("/tmp").glob("lockstep-wheel-*/sdist/endless*"))


def test_a_repository_is_built_once_for_each_commit(tmp_path):
    """A URL of git as SOURCE. pip packs the same commit into another archive each time."""
    repository = tmp_path / "tiny"
    project(repository)

    def git(*words):
        subprocess.run(["git", "-c", "user.name=a", "-c", "user.email=a@b", "-C", repository, *words], check=True,
                       capture_output=True)

    def build():
        ended = subprocess.run([BINARY, "wheel", "--json", "--python", PYTHON, f"git+file://{repository}@main"],
                               env={"HOME": str(tmp_path), "PATH": "/usr/bin:/bin"}, cwd=tmp_path,
                               capture_output=True, text=True, timeout=300)
        assert ended.returncode == 0, ended
        return json.loads(ended.stdout)

    git("init", "-q", "-b", "main")
    git("add", ".")
    git("commit", "-qm", "first")
    first, again = build(), build()
    assert first["wheel"] == "tiny-1.0-py3-none-any.whl" and not first["cached"], first
    assert again["cached"] and again["sha256"] == first["sha256"], again
    git("commit", "-qm", "second", "--allow-empty")
    assert not build()["cached"]
