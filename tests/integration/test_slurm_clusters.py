"""lockstep cluster add --slurm, show and check: the facts that Slurm tells about a cluster, on real Slurm."""
import json
import time

import pytest

from harness import BINARY
from slurm_cluster import SlurmCluster


@pytest.fixture
def cluster(hosts):
    made = SlurmCluster(hosts, 2, extra=["PartitionName=old Nodes=node2 MaxTime=60 State=DOWN"])
    yield made
    made.close()


def ours(cluster, *args):
    return cluster.run("cluster", *args, env={"XDG_STATE_HOME": cluster.folder / "ours"})


def refused(ended, code, *words):
    assert ended.rc == code and ended.out == "", ended
    (line,) = ended.err.splitlines()
    assert all(word in line for word in words), ended


def test_a_cluster_of_slurms_is_added_shown_and_checked(cluster):
    refused(ours(cluster, "add", "hpc", "--slurm", "--host", "a"), 2, "--slurm and --host")
    refused(ours(cluster, "add", "hpc", "--login", "a"), 2, "--login is for Slurm clusters")
    added = ours(cluster, "add", "hpc", "--slurm")
    assert added.rc == 0 and added.out.startswith("hpc: Slurm ") and added.out.endswith(", 3 partitions\n"), added
    assert ours(cluster, "list").out.splitlines()[1].split()[::4] == ["hpc", "slurm"]
    assert ours(cluster, "list").out.splitlines()[1].split()[1] == "-"

    cluster.slurm("scontrol", "update", "node=node1", "state=drain", "reason=bad gpu")
    ran = cluster.run("run", "--on", "hpc", "--sync", "none", "--no-python", "/bin/hostname",
                      env={"XDG_STATE_HOME": cluster.folder / "ours"})
    assert ran.rc == 0 and cluster.login.name in ran.out, ran
    assert "hpc is a Slurm cluster, and this job runs on its login host; lockstep submit --on hpc" in ran.err, ran
    shown = ours(cluster, "show", "hpc").out
    assert "cluster testbed, on this machine" in shown and "out of service: node1 (drained since 20" in shown, shown
    (gpu,) = [line.split() for line in shown.splitlines() if line.startswith("gpu*")]
    assert gpu[1:6] == ["2", "8", "fake", "8", "4000"] and "1 drained" in shown and "1 idle" in shown, shown
    facts = json.loads(ours(cluster, "show", "hpc", "--json").out)
    partitions = {each["name"]: each for each in facts["slurm"]["partitions"]}
    assert partitions["gpu"]["gpus"] == [{"type": "fake", "count": 8}] and partitions["gpu"]["in_service"] == 1
    assert partitions["old"]["state"] == "DOWN" and partitions["old"]["max_seconds"] == 3600
    assert facts["slurm"]["accounting"] is False and facts["left_out"] == []

    checked = ours(cluster, "check", "hpc")
    assert checked.rc == 0 and checked.out.endswith("nothing stands in the way of a job\n"), checked
    for words in ("warning: partition old is down", "warning: the cluster keeps no accounts", "node1 is drained"):
        assert words in checked.out, checked
    cluster.slurm("scontrol", "update", "node=node2", "state=drain", "reason=x")
    stopped = ours(cluster, "check", "hpc", "--json")
    weights = {each["what"]: each["weight"] for each in json.loads(stopped.out)["findings"]}
    assert stopped.rc == 1 and weights["no-partition"] == "trouble", stopped
    cluster.stop_controller()
    gone = ours(cluster, "check", "hpc")
    assert gone.rc == 1 and gone.out.startswith("trouble: its settings: Slurm does not answer"), gone
    assert "is DOWN" in gone.out
    refused(ours(cluster, "show", "hpc"), 1, "Slurm does not answer")


def test_nodes_that_failed_lately_are_shown_and_forgotten(cluster):
    assert ours(cluster, "add", "hpc", "--slurm").rc == 0
    folder = cluster.folder / "ours/lockstep"
    now = int(time.time())
    (folder / "bad-nodes").write_text(f"{now}\t1.000\ttestbed\tnode2\tpower cut\n"
                                      f"{now}\t1.000\tanother\tnode1\tpower cut\n"
                                      f"{now - 3 * 86400}\t1.000\ttestbed\tnode1\tlong ago\n")
    shown = ours(cluster, "show", "hpc").out
    assert "left out: node2 until 20" in shown and ": power cut (" in shown and shown.count("left out") == 1, shown
    (bad,) = json.loads(ours(cluster, "show", "hpc", "--json").out)["left_out"]
    assert bad["node"] == "node2" and 86000 < bad["back_at"] - now < 87000
    refused(ours(cluster, "show", "hpc", "--forget-node", "node1"), 1, "node1 is not left out")
    forgotten = ours(cluster, "show", "hpc", "--forget-node", "node2")
    assert forgotten.rc == 0 and "left out" not in forgotten.out, forgotten
    assert "another" in (folder / "bad-nodes").read_text()


def test_without_slurms_commands_the_login_host_is_asked_for(lockstep):
    (lockstep.folder / "empty").mkdir()
    env = {"XDG_STATE_HOME": lockstep.folder / "ours", "PATH": lockstep.folder / "empty"}
    refused(lockstep.run("cluster", "add", "hpc", "--slurm", env=env, program=(BINARY,)), 1, "scontrol", "--login")
    assert lockstep.run("cluster", "show", "hpc", env=env, program=(BINARY,)).rc == 1
