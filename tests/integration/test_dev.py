"""./dev itself: what it changes on the machine of a person who only wants to see a demo."""
import importlib.util
import os
import pathlib
import re
import shutil
import subprocess
import sys

import pytest

from harness import BUILD, REPOSITORY

sys.path += [str(REPOSITORY / "tests/cloud"), str(REPOSITORY / "tools")]

import line_coverage  # noqa: E402
import machines  # noqa: E402
import quick_tests  # noqa: E402

CONTROL = """Package: lockstep-probe
Version: 1
Architecture: all
Maintainer: nobody <nobody@example.org>
Description: a service
"""
UNIT = """[Service]
ExecStart=/bin/true
[Install]
WantedBy=multi-user.target
"""
INIT = """#!/bin/sh
### BEGIN INIT INFO
# Provides: lockstep-probe
# Required-Start:
# Required-Stop:
# Default-Start: 2 3 4 5
# Default-Stop: 0 1 6
### END INIT INFO
"""
# In place of asking systemd, which does not run in that root, to start something.
SYSTEMCTL = """#!/bin/sh
case " $* " in
  *' start '*) touch /started ;;
  *' is-enabled '*) echo enabled ;;
  *) exec /real-systemctl "$@" ;;
esac
"""
# As debhelper writes it.
POSTINST = """#!/bin/sh
set -e
deb-systemd-helper unmask lockstep-probe.service >/dev/null || true
if deb-systemd-helper --quiet was-enabled lockstep-probe.service; then
  deb-systemd-helper enable lockstep-probe.service >/dev/null || true
fi
update-rc.d lockstep-probe defaults >/dev/null
if [ -d /run/systemd/system ]; then
  deb-systemd-invoke start lockstep-probe.service
else
  invoke-rc.d lockstep-probe start
fi
touch /configured
"""


@pytest.fixture
def package(tmp_path):
    """A Debian package with a service, which its installation enables and starts."""
    root = tmp_path / "probe"
    for name, text in {"DEBIAN/control": CONTROL, "DEBIAN/postinst": POSTINST, "etc/init.d/lockstep-probe": INIT,
                       "lib/systemd/system/lockstep-probe.service": UNIT}.items():
        path = root / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text)
        path.chmod(0o755 if "control" not in name and "systemd" not in name else 0o644)
    subprocess.run(["dpkg-deb", "--build", "-Zgzip", root, tmp_path / "probe.deb"], check=True, capture_output=True)
    return tmp_path / "probe.deb"


def left_by(how, package, functions="", install="dpkg -i /probe.deb"):
    """Installs in a root over this machine's, and returns what is there afterwards."""
    (package.parent / "systemctl").write_text(SYSTEMCTL)
    (package.parent / "systemctl").chmod(0o755)
    script = rf"""
image=
{machines.ROOT}
rm -f $root/usr/sbin/policy-rc.d  # containers have one
cp {package} $root/probe.deb
cp -L /bin/systemctl $root/real-systemctl
mount --bind {package.parent}/systemctl $root/bin/systemctl
mkdir -p $root/run/systemd/system
cat >$root/functions
cd $root
pivot_root . mnt
umount -l /mnt
exec bash -ec '. /functions; {how} {install} >/log 2>&1 || {{ cat /log; exit 1; }}
  ls -d /configured /started /etc/systemd/system/*/lockstep-probe.service /etc/rc2.d/*lockstep-probe \
    /usr/sbin/policy-rc.d 2>/dev/null || true'
"""
    ended = subprocess.run(["unshare", "--mount", "--pid", "--fork", "--mount-proc", "--propagation", "private", "sh",
                            "-ec", script], input=functions, capture_output=True, text=True)
    assert ended.returncode == 0, ended
    return {re.sub("^S[0-9]+", "", pathlib.PurePath(line).name) + " in " + str(pathlib.PurePath(line).parent)
            for line in ended.stdout.split()}


def functions(*names):
    """Functions of ./dev, as text."""
    text = (REPOSITORY / "dev").read_text()
    return "\n".join(re.search(rf"^{name}\(\) {{.*?^}}", text, re.M | re.S)[0] for name in names)


def test_packages_start_nothing_and_enable_nothing(package):
    plain = left_by("", package)
    assert plain == {"configured in /", "started in /", "lockstep-probe in /etc/rc2.d",
                     "lockstep-probe.service in /etc/systemd/system/multi-user.target.wants"}, plain
    quietly = functions("as_root", "quietly")
    assert left_by("quietly", package, quietly) == {"configured in /"}
    # Where nothing may be mounted, as in a chroot.
    no_mounts = "unshare() { return 1; }; as_root() { \"$@\"; }; quietly"
    assert left_by(no_mounts, package, quietly) == {"configured in /"}
    assert left_by(no_mounts, package, quietly, "apt-get install -y /probe.deb") == {"configured in /"}


def test_what_comes_is_said_before_it_is_installed(tmp_path):
    """One line with apt's words; nothing is installed."""
    fake = tmp_path / "bin"
    fake.mkdir()
    (fake / "apt-get").write_text("""#!/bin/sh
echo "$@" >>$(dirname "$0")/calls
echo '3 upgraded, 129 newly installed, 0 to remove and 5 not upgraded.'
echo 'Need to get 1,181 MB/1,250 MB of archives.'
echo 'After this operation, 3,900 MB of additional disk space will be used.'
exit 1
""")
    (fake / "apt-get").chmod(0o755)
    script = f"set -euo pipefail; as_root() {{ \"$@\"; }}\n{functions('say_what_comes')}\nsay_what_comes slurm-wlm"
    ended = subprocess.run(["bash", "-c", script], capture_output=True, text=True,
                           env={"PATH": f"{fake}:/usr/bin:/bin"})
    assert ended.stdout == ("132 packages come: 1181 MB to download, 3,900 MB on disk, 7 min as a rule.\n"
                            "Services among them are neither started nor enabled.\n"), ended
    assert "--assume-no" in (fake / "calls").read_text() and "-y" not in (fake / "calls").read_text().split()


def fake(folder, name, text):
    """Writes a stand-in for a program, first in PATH."""
    folder.mkdir(exist_ok=True)
    (folder / name).write_text(text)
    (folder / name).chmod(0o755)


def bash(script, *words, path="", **env):
    """Runs a script that begins with functions of ./dev, and returns the result."""
    environment = {"PATH": f"{path}:/usr/sbin:/usr/bin:/sbin:/bin", "HOME": "/root", **env}
    return subprocess.run(["bash", "-c", f"set -euo pipefail\n{script}", "bash", *words], env=environment, text=True,
                          capture_output=True)


@pytest.mark.parametrize("demo, wanted, foreign", [
    ("", {"procps", "python3-torch"}, {"openssh-server", "slurm-wlm", "cloud-init", "nftables"}),
    ("ssh", {"openssh-server", "nftables"}, {"slurm-wlm", "munge", "cloud-init"}),
    ("slurm", {"slurm-wlm", "munge", "nftables"}, {"openssh-server", "cloud-init"}),
    ("cloud", {"cloud-init", "openssh-server"}, {"slurm-wlm", "munge"})])
def test_a_demo_installs_what_it_needs_and_says_so_first(tmp_path, demo, wanted, foreign):
    """With stand-ins for apt and dpkg, on a machine that has no package: nothing is installed."""
    fake(tmp_path / "bin", "dpkg-query", "#!/bin/sh\nexit 1\n")
    fake(tmp_path / "bin", "apt-get", f"""#!/bin/sh
echo "$@" >>{tmp_path}/calls
case "$*" in
  update*) ;;
  *--assume-no*)
    echo '0 upgraded, 129 newly installed, 0 to remove and 0 not upgraded.'
    echo 'Need to get 100 MB of archives.'
    echo 'After this operation, 390 MB of additional disk space will be used.' ;;
  *) echo 'apt installs'; exit 42 ;;
esac
""")
    (tmp_path / "checkout").mkdir()
    shutil.copy(REPOSITORY / "dev", tmp_path / "checkout")
    # An /etc of its own: the cloud's demo keeps cloud-init from touching the machine.
    ended = subprocess.run(["unshare", "--mount", "--propagation", "private", "sh", "-ec", f"""
mkdir {tmp_path}/etc {tmp_path}/work
mount -t overlay overlay -o lowerdir=/etc,upperdir={tmp_path}/etc,workdir={tmp_path}/work /etc
PATH={tmp_path}/bin:$PATH exec {tmp_path}/checkout/dev demo {demo}"""], capture_output=True, text=True)
    assert ended.returncode == 42, ended
    assert ended.stdout.index("129 packages come: 100 MB") < ended.stdout.index("apt installs"), ended
    install = [line.split() for line in (tmp_path / "calls").read_text().splitlines() if " -y " in line]
    assert len(install) == 1 and wanted <= set(install[0]), install
    laboratory = {"etcd-server", "redis-server", "debootstrap", "awscli", "zsh", "strace", "python3-pytest", "systemd"}
    assert not set(install[0]) & (foreign | laboratory), install
    assert (tmp_path / "etc/cloud/cloud-init.disabled").exists() == (demo == "cloud")


def test_the_demo_kills_a_worker_and_recovers(tmp_path):
    """With what is built and installed here."""
    (tmp_path / "build").mkdir()
    (tmp_path / "build/release").symlink_to(BUILD)
    (tmp_path / "examples").symlink_to(REPOSITORY / "examples")
    ended = bash(f"need() {{ :; }}; build() {{ :; }}; cd {tmp_path}\n"
                 f"{functions('say', 'say_how_long', 'worker_of_rank', 'demo')}\ndemo")
    assert ended.returncode == 0, ended
    assert re.search(r"== demo: kill -KILL \d+ \(the worker of rank 1\)", ended.stdout), ended
    assert float(re.search(r"== test accuracy ([0-9.]+) %", ended.stdout)[1]) >= 95, ended


def test_a_demo_shows_words_and_output_in_their_order(tmp_path):
    """Into a pipe, too: titles, commands, and both streams of what runs."""
    program = f"""
import subprocess, sys
sys.path[:0] = [{str(REPOSITORY / "tests/integration")!r}, {str(REPOSITORY / "tests")!r}]
from demo_screen import Shown, say, type_out
from harness import Lockstep
import pathlib
made = Lockstep(pathlib.Path({str(tmp_path)!r}))
def start(*words, **options):
    return made.start("-c", words[-1], program=("/bin/sh",), **options)
say("first")
type_out(start, "exec", "echo out 1; echo err 1 >&2; echo out 2")
subprocess.run(["echo", "from outside"], check=True)
say("second")
follower = Shown(start, ("logs", "echo begun; read go; echo over >&2"), stdin=subprocess.PIPE)
follower.until_said("begun")
say("third")
follower.run.process.stdin.write(b"go\\n")
follower.run.process.stdin.close()
follower.end()
made.close()
"""
    ended = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True,
                           env={"PATH": os.environ["PATH"], "PYTHONDONTWRITEBYTECODE": "1"})
    assert ended.returncode == 0, ended
    lines = [line for line in ended.stdout.splitlines() if line and not line.startswith("$")]
    assert lines == ["== first", "out 1", "err 1", "out 2", "from outside", "== second", "begun", "== third", "over"]


def test_warnings_are_errors_for_developers_only(tmp_path):
    fake(tmp_path / "bin", "cmake", "#!/bin/sh\necho \"$*\"\n")
    build = f"jobs=1; cd {tmp_path}\n{functions('cmake_build')}\nverb=$1; cmake_build release"
    for verb, ci, strict in (("build", "", False), ("demo", "", False), ("package", "", False), ("build", "true", True),
                             ("test", "", True), ("in-lane", "", True), ("lint", "", True)):
        log = tmp_path / "log"
        ended = bash(build.replace(">/dev/null", f">>{log}"), verb, path=tmp_path / "bin", CI=ci)
        assert ended.returncode == 0 and ("LOCKSTEP_WERROR=ON" in log.read_text()) == strict, (verb, ci, ended)
        log.unlink()


def test_another_checkout_finds_what_one_has_compiled(tmp_path):
    """With the plain lines of CONTRIBUTING.md: a file of the product, and one with a precompiled header."""
    counts = []
    env = {**{name: value for name, value in os.environ.items() if not name.startswith("CCACHE_")},
           "CCACHE_DIR": tmp_path / "cache"}
    for name in ("one", "other"):
        checkout = tmp_path / name
        checkout.mkdir()
        for part in ("CMakeLists.txt", "CMakePresets.json", "src", "cmake", "bench", "tests", "python"):
            copy = shutil.copytree if (REPOSITORY / part).is_dir() else shutil.copy
            copy(REPOSITORY / part, checkout / part)
        objects = ("lockstep_base.dir/error.cc.o", "base_test.dir/fnv_test.cc.o")
        for words in (["cmake", "--preset", "debug"],
                      ["ninja", "-C", "build/debug", *(f"src/base/CMakeFiles/{part}" for part in objects)],
                      ["ccache", "--print-stats"]):
            done = subprocess.run(words, cwd=checkout, env=env, capture_output=True, text=True)
            assert done.returncode == 0, done
        counts.append({line.split()[0]: int(line.split()[1]) for line in done.stdout.splitlines()})
    hits = [count["direct_cache_hit"] + count["preprocessed_cache_hit"] for count in counts]
    assert hits == [0, 3] and counts[1]["cache_miss"] == 3, counts  # the third one is the precompiled header


def test_lint_reads_all_files_of_the_commits_that_came_together(tmp_path):
    """On the main branch, as in CI, which does not know the last checked commit; also files that are not committed."""
    names = ("old", "first", "second", "last")
    hours = (-5, -3, -1, 0)

    def git(*words, hour=0):
        date = f"@{1_800_000_000 + hour * 3600} +0000"
        done = subprocess.run(["git", "-c", "user.name=A", "-c", "user.email=a@example.org", *words], cwd=tmp_path,
                              capture_output=True, text=True, env={**os.environ, "GIT_COMMITTER_DATE": date})
        assert done.returncode == 0, done
        return done.stdout.strip()

    def changed():
        parts = functions("base_of_change", "changed_files", "changed_sources")
        ended = bash(f"cd {tmp_path}\n{parts}\nchanged_sources '*.cc'")
        assert ended.returncode == 0, ended
        return ended.stdout.split()
    (tmp_path / "tools").mkdir()
    shutil.copy(REPOSITORY / "tools/changed_code.py", tmp_path / "tools")
    git("init", "-q", "-b", "main")
    for name, hour in zip(names, hours):
        (tmp_path / f"{name}.cc").touch()
        git("add", ".")
        git("commit", "-qm", name, hour=hour)
        if hour == -5:
            assert changed() == ["old.cc"]  # there is no older commit
    assert changed() == ["first.cc", "last.cc", "second.cc"]
    git("update-ref", "refs/remotes/origin/main", "HEAD")  # as in a clone of it
    (tmp_path / "new.cc").touch()
    assert changed() == ["first.cc", "last.cc", "new.cc", "second.cc"]
    git("update-ref", "refs/remotes/origin/main", "HEAD~1")  # on a branch
    assert changed() == ["last.cc", "new.cc"]
    (tmp_path / "old.cc").write_text("// says more\n")  # comments are not for clang-tidy
    assert changed() == ["last.cc", "new.cc"]
    (tmp_path / "old.cc").write_text("int more;\n")
    assert changed() == ["last.cc", "new.cc", "old.cc"]


def test_only_a_change_of_code_counts_as_one():
    """The ' in 86'400 begins no character literal, so changed_code.py ignores a comment behind the number."""
    spec = importlib.util.spec_from_file_location("changed_code", REPOSITORY / "tools/changed_code.py")
    tool = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(tool)
    for code in ("int day = 86'400;{}", "auto x = 0xFF'FFu + 1'000.5;{} int y = 1'0;",
                 "char c = u8'\\'';{} int x86 = 'a';"):
        assert tool.code_of(code.format(""), False) == tool.code_of(code.format(" // a day's seconds\n"), False), code
    assert tool.code_of("int day = 86'400;", False) != tool.code_of("int day = 86'401;", False)
    words = "char c = '\"'; f(\"%s\");%s"
    assert tool.code_of(words % ("a", ""), False) == tool.code_of(words % ("b", "  // it's \"b\""), False)


# Stands for ctest: notes its arguments, and says that FAILS black-box tests failed.
CTEST = """#!/bin/sh
echo "$*" >>calls
case "$*" in
  *blackbox*) echo "100% tests passed, ${FAILS:-0} tests failed out of 2" ;;
  *) echo '100% tests passed, 0 tests failed out of 5' ;;
esac
"""
COUNTING = functions("say", "phase", "read_cpu", "check", "run_ctest", "failed_tests", "counts", "totals")
QUICK = COUNTING + "\n" + functions("quick_tests", "choose_files", "changed_files", "base_of_change")


@pytest.fixture
def small_repository(tmp_path):
    """Two rooms, one inside the other, and black-box files; run() is `./dev test quick` there, from unit tests on."""
    made = tmp_path / "made"
    shutil.copytree(REPOSITORY / "tools", made / "tools", ignore=shutil.ignore_patterns("__pycache__"))
    texts = {"src/a/x.cc": 'say("one");\n', "src/a/x_test.cc": "int old;\n", "src/a/inner/y.cc": "int old;\n",
             "tests/integration/test_long.py": "", "README.md": "old", ".gitignore": "build\n__pycache__\ncalls\n",
             "tests/integration/rooms.txt": "# words: all\nsrc/a: first alone slow\nsrc/a/inner: second first long\n",
             "tests/CMakeLists.txt": "".join(f"lockstep_blackbox({words})\n" for words in (
                 "first 40", "second 40", "alone 40 SERIAL", "slow 9999", "long 9000")),
             "build/release/Testing/Temporary/CTestCostData.txt": "blackbox.slow 3 250.5\nblackbox.alone 1 119\n"}
    for name, text in texts.items():
        (made / name).parent.mkdir(parents=True, exist_ok=True)
        (made / name).write_text(text)
    git = "git -c user.name=A -c user.email=a@example.org"
    subprocess.run(f"git init -q -b main && git add . && {git} commit -qm made", cwd=made, check=True, shell=True)
    fake(tmp_path / "bin", "ctest", CTEST)

    def run(fails="0", used=0, takes=1000):
        """used: seconds before the choice. takes: seconds of each turn of black-box files."""
        (made / "calls").unlink(missing_ok=True)
        ended = bash(f"""cd {made}
jobs=2 again=4 passed=0 failed=0 cpu=0 failures=() unsteady=() phases=() SECONDS={used}
prepare_tests() {{ :; }}
{QUICK}
eval "$(declare -f run_ctest | sed '1s/.*/ctest_itself ()/')"
run_ctest() {{ ctest_itself "$@"; [ "$2" = unit ] || SECONDS=$((SECONDS + {takes})); }}
quick_tests HEAD""", path=tmp_path / "bin", FAILS=fails)
        first, *others = (made / "calls").read_text().splitlines()
        assert "-L ^unit$" in first, first
        turns = [re.search(r"-L \^blackbox\$ .* -R \^blackbox\\\.\((.*)\)\$", call)[1].split("|") for call in others]
        run.turns = [set(turn) for turn in turns]
        assert len(set().union(*turns)) == sum(map(len, turns)), turns  # none runs twice
        return ended, set().union(*turns)
    run.folder = made
    return run


def test_a_quick_test_runs_the_files_of_what_changed(small_repository):
    made = small_repository.folder
    (made / "src/a/x.cc").write_text('say("one");  // says more\n')
    (made / "src/a/x_test.cc").write_text("int other;\n")
    (made / "README.md").write_text("new")
    ended, chosen = small_repository()
    assert (ended.returncode, chosen) == (0, set()), ended  # comments, unit tests and pages are not in the binary
    assert "changed, chooses no black-box file: README.md src/a/x_test.cc\n" in ended.stdout, ended
    assert ended.stdout.endswith("\n6 passed, 0 failed\n"), ended  # five unit tests and the choice
    (made / "src/a/x.cc").write_text('say("o ne");\n')  # only a message
    ended, chosen = small_repository()
    assert (ended.returncode, chosen) == (0, {"first", "alone", "slow"}), ended
    # Five unit tests, two files as the stand-in says, and two choices.
    assert "SUBSET" not in ended.stdout and ended.stdout.endswith("\n9 passed, 0 failed\n"), ended
    assert "changed: src/a (1 file)\nchanged, " in ended.stdout, ended
    assert "runs: test_slow.py (about 250 s): src/a\n" in ended.stdout, ended
    (made / "src/a/new.cc").touch()
    (made / "src/a/x.cc").write_text('say("one");\n')
    ended, chosen = small_repository(fails="1")
    assert (ended.returncode, chosen) == (1, {"first", "alone", "slow"}), ended
    assert ended.stdout.endswith("\n8 passed, 1 failed\n"), ended


# Stands for ctest with a test that fails, until it runs alone.
UNSTEADY = """#!/bin/sh
case "$*" in
  *--rerun-failed*) echo '100% tests passed, 0 tests failed out of 1' ;;
  *) printf '%s\\n' 'src/a/x_test.cc:3: Failure' 'Expected equality of these values:' '  1' '  2' \
       '80% tests passed, 1 tests failed out of 5' 'The following tests FAILED:' '	  3 - room.Case (Failed)  unit' ;;
esac
"""


@pytest.mark.parametrize("label", ["unit", "blackbox"])
def test_a_failed_test_is_tried_again_alone_and_named(tmp_path, label):
    fake(tmp_path / "bin", "ctest", UNSTEADY)
    (tmp_path / "build/release/Testing/Temporary").mkdir(parents=True)
    (tmp_path / "build/release/Testing/Temporary/LastTestsFailed.log").write_text("3:room.Case\n")
    ended = bash(f"""cd {tmp_path}
again=0 passed=0 failed=0 failures=() unsteady=() phases=()
no_lane() {{ :; }}
keep_totals() {{ :; }}
{COUNTING}
run_ctest release {label}
totals all""", path=tmp_path / "bin")
    assert ended.returncode == 0 and ended.stdout.endswith("\n5 passed, 0 failed\n"), ended
    assert "needed a second try, alone: room.Case: 0 failed alone; at first: " in ended.stdout, ended
    assert "src/a/x_test.cc:3: Failure Expected equality of these values: 1" in ended.stdout.splitlines()[-2], ended


def test_a_quick_test_says_what_has_no_time(small_repository):
    made = small_repository.folder
    (made / "src/a/x.cc").write_text("int more;\n")
    (made / "src/a/inner/y.cc").write_text("int more;\n")
    ended, chosen = small_repository(used=100)
    assert chosen == {"first", "second", "alone"}, ended
    assert "A SUBSET: 2 of 5 files do not fit into the time; `./dev test` runs them: long slow\n" in ended.stdout, ended
    assert "runs: test_first.py (about 10 s): src/a/inner, src/a\n" in ended.stdout, ended
    ended, chosen = small_repository(used=190)  # five files at a time, of which a file that runs alone takes the place
    assert chosen == {"first", "second"}, ended
    (made / "tests/integration/test_long.py").write_text("# new\n")
    ended, chosen = small_repository(used=1000)  # it runs whatever it takes, and leaves no time for others
    assert chosen == {"long"} and "runs: test_long.py (about 2250 s): changed itself\n" in ended.stdout, ended
    assert "A SUBSET: 4 of 5 files" in ended.stdout, ended
    assert "TOO LONG: test_long.py alone takes about 2250 s, more than 120 s\n" in ended.stdout, ended
    (made / "tests/integration/test_first.py").write_text("# new\n")
    ended, chosen = small_repository(used=180)  # the shortest changed file comes first, and the other has no time
    assert chosen == {"first", "second"} and "TOO LONG" not in ended.stdout, ended
    assert re.search("A SUBSET: 3 of 5 files .*: long ", ended.stdout), ended


def test_a_quick_test_goes_on_choosing_while_there_is_time(small_repository):
    (small_repository.folder / "src/a/inner/y.cc").write_text("int more;\n")
    (small_repository.folder / "src/a/x.cc").write_text("int more;\n")
    ended, _ = small_repository(used=190, takes=0)
    assert small_repository.turns == [{"first", "second"}, {"alone"}], ended
    assert ended.stdout.count("changed: ") == 2 and ended.stdout.count("A SUBSET: 2 of 5 files") == 1, ended


def test_each_room_and_each_file_has_a_row():
    rows = quick_tests.read_rows((REPOSITORY / "tests/integration/rooms.txt").read_text())
    assert not list(quick_tests.complaints(rows, REPOSITORY))
    rows["src/hosts"] = []
    del rows["src/jobs/here"], rows["examples"]
    rows["src/gone"] = ["cli", "gone"]
    assert list(quick_tests.complaints(rows, REPOSITORY)) == [
        "no row names test_examples.py", "no such file: test_gone.py", "no row for src/hosts",
        "no row for src/jobs/here", "no such path: src/gone"]


def test_words_that_dev_test_does_not_know():
    for words, said in ((["slow"], "no such part of the tests: slow"),
                        (["quick", "nowhere"], "no such commit: nowhere")):
        ended = subprocess.run([REPOSITORY / "dev", "test", *words], capture_output=True, text=True)
        assert (ended.returncode, ended.stdout) == (2, "") and said in ended.stderr, ended


def test_coverage_counts_each_line_of_the_product_once():
    def unit(name, *lines):
        return {"files": [{"file": name, "lines": [{"line_number": at, "count": count} for at, count in lines]}]}
    files = {}
    line_coverage.merge(unit("./src/a/x.cc", (1, 0), (2, 7), (3, 0)), files)
    line_coverage.merge(unit("src/a/x.cc", (1, 2), (2, 0), (3, 0)), files)  # another instance of a template
    line_coverage.merge(unit("src/a/in/y.cc", (1, 0)), files)
    for other in ("src/a/x_test.cc", "src/a/x_testing.cc", "src/a/x.h", "/usr/include/c++/12/vector", "tests/b.cc"):
        line_coverage.merge(unit(other, (1, 1)), files)
    assert [line.split() for line in line_coverage.table("src/a", files)] == [
        ["src/a", "1", "3", "2", "66.7", "%"], ["src/a/in", "1", "1", "0", "0.0", "%"],
        ["src/a", "and", "below", "2", "4", "2", "50.0", "%"]]
    assert [line_coverage.too_low("src/a", files, least) for least in (0, 50, 51)] == [False, False, True]
    assert line_coverage.too_low("src/none", files, 1)


@pytest.mark.parametrize("verb", ["test", "lint"])
def test_other_systems_are_told_at_once_that_tests_run_on_debian_12(tmp_path, verb):
    (tmp_path / "os-release").write_text('ID=debian\nVERSION_ID="13"\n')
    fake(tmp_path / "bin", "dpkg-query", "#!/bin/sh\nexit 1\n")
    fake(tmp_path / "bin", "apt-get", "#!/bin/sh\nexit 42\n")
    shutil.copy(REPOSITORY / "dev", tmp_path)
    ended = subprocess.run(["unshare", "--mount", "--propagation", "private", "sh", "-ec", f"""
mount --bind {tmp_path}/os-release /etc/os-release
PATH={tmp_path}/bin:$PATH exec {tmp_path}/dev {verb}"""], capture_output=True, text=True)
    assert (ended.returncode, ended.stdout) == (2, ""), ended
    assert ended.stderr.startswith(f"./dev {verb}: ") and len(ended.stderr.splitlines()) == 1, ended
