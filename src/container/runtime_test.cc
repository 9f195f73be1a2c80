#include "container/runtime.h"

#include "base/error_testing.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <map>
#include <set>

namespace lockstep::container {
namespace {

const Runtime& row(std::string_view name) {
  for (const Runtime& runtime : runtimes())
    if (runtime.name == name) return runtime;
  abort();
}

Request request() {
  return {.program = "/bin/it",
          .image = "IMG",
          .name = "lockstep-1",
          .mounts = {{.from = "/data", .to = "/d", .read_only = true},
                     {.from = "/w", .to = "/w", .read_only = false}},
          .named = {"TOKEN"},
          .variables = {"HOME", "PATH", "TOKEN", "BASH_FUNC_x%%", "CUDA_HOME"},
          .of_image = {"CUDA_HOME", "TOKEN"},
          .devices = {},
          .user = 1000,
          .group = 100,
          .binary = "/opt/lockstep",
          .command = {"/run/lockstep/lockstep", "run", "train.py"},
          .script = "/t/rc",
          .list = {}};
}

bool has(const Words& words, const Words& part) {
  return std::search(words.begin(), words.end(), part.begin(), part.end()) != words.end();
}

TEST(Runtime, PodmanKeepsWhatTheHostHas) {
  Request asked = request();
  const Words words = row("podman").start(asked);
  EXPECT_EQ(words, (Words{"/bin/it",
                          "run",
                          "--rm",
                          "--name",
                          "lockstep-1",
                          "--pull=never",
                          "--pid=host",
                          "--network=host",
                          "--uts=host",
                          "--sig-proxy=false",
                          "--no-healthcheck",
                          "--user=1000:100",
                          "--security-opt=label=disable",
                          "--security-opt=seccomp=unconfined",
                          "--volume=/dev/shm:/dev/shm",
                          "--volume=/data:/d:ro",
                          "--volume=/w:/w",
                          "--volume=/opt/lockstep:/run/lockstep/lockstep:ro",
                          "--log-driver=none",
                          "--env=HOME",
                          "--env=TOKEN",
                          "--userns=keep-id",
                          "--entrypoint=/run/lockstep/lockstep",
                          "IMG",
                          "run",
                          "train.py"}));
  asked.user = 0;
  EXPECT_FALSE(has(row("podman").start(asked), {"--userns=keep-id"}));
}

TEST(Runtime, DevicesGoInByEachRuntimesOwnWay) {
  Request asked = request();
  asked.list = [](const std::string&) { return std::vector<Entry>{}; };
  asked.devices = {.nvidia = true, .nvidia_cdi = true, .infiniband = true};
  EXPECT_TRUE(has(row("podman").start(asked), {"--device=nvidia.com/gpu=all"}));
  EXPECT_TRUE(has(row("podman").start(asked), {"--device=/dev/infiniband"}));
  EXPECT_TRUE(has(row("docker").start(asked), {"--gpus=all"}));
  EXPECT_TRUE(has(row("apptainer").start(asked), {"--nv"}));
  EXPECT_TRUE(has(row("bubblewrap").start(asked), {"--dev-bind", "/dev", "/dev"}));
}

TEST(Runtime, DockerGetsNamesOfVariablesOnly) {
  const Words words = row("docker").start(request());
  // The image has its own PATH and CUDA_HOME, and a function of bash has no name that docker takes.
  EXPECT_TRUE(has(words, {"--env=HOME", "--env=TOKEN", "--entrypoint=/run/lockstep/lockstep", "IMG",
                          "run", "train.py"}));
  Request asked = request();
  asked.named = {"PATH"};
  EXPECT_TRUE(has(row("docker").start(asked), {"--env=HOME", "--env=PATH"}));
}

TEST(Runtime, ApptainerAndEnroot) {
  EXPECT_EQ(row("apptainer").start(request()),
            (Words{"/bin/it", "exec", "--no-home", "--bind", "/data:/d:ro", "--bind", "/w:/w",
                   "--bind", "/opt/lockstep:/run/lockstep/lockstep:ro", "IMG",
                   "/run/lockstep/lockstep", "run", "train.py"}));
  EXPECT_EQ(
      row("enroot").start(request()),
      (Words{"/bin/it", "start", "--rc", "/t/rc", "--mount", "/data:/d:none:x-create=auto,rbind,ro",
             "--mount", "/w:/w:none:x-create=auto,rbind", "--mount",
             "/opt/lockstep:/run/lockstep/lockstep:none:x-create=auto,rbind,ro", "--env", "HOME",
             "--env", "TOKEN", "IMG", "/run/lockstep/lockstep", "run", "train.py"}));
}

TEST(Runtime, BubblewrapMakesFoldersAboveAMountAnew) {
  Request asked = request();
  asked.image = "/img";
  asked.mounts = {{.from = "/home/u/p", .to = "/home/u/p", .read_only = false}};
  std::map<std::string, std::vector<Entry>> folders = {
      {"/img",
       {{.name = "bin", .folder = false, .link = "usr/bin"},
        {.name = "dev", .folder = true, .link = {}},
        {.name = "home", .folder = true, .link = {}},
        {.name = "init", .folder = false, .link = {}},
        {.name = "usr", .folder = true, .link = {}}}},
      {"/img/home",
       {{.name = "u", .folder = true, .link = {}}, {.name = "v", .folder = true, .link = {}}}},
      {"/img/home/u",
       {{.name = "p", .folder = true, .link = {}}, {.name = "x", .folder = false, .link = {}}}}};
  asked.list = [&](const std::string& folder) { return folders.at(folder); };
  const Words words = row("bubblewrap").start(asked);
  EXPECT_TRUE(has(
      words, {"/bin/it",     "--symlink", "usr/bin",   "/bin",          "--dir",     "/home",
              "--dir",       "/home/u",   "--ro-bind", "/img/home/u/x", "/home/u/x", "--ro-bind",
              "/img/home/v", "/home/v",   "--ro-bind", "/img/init",     "/init",     "--ro-bind",
              "/img/usr",    "/usr",      "--dev-bind"}));
  EXPECT_TRUE(has(words, {"--bind", "/home/u/p", "/home/u/p", "--ro-bind", "/opt/lockstep",
                          "/run/lockstep/lockstep", "--", "/run/lockstep/lockstep", "run"}));
}

// bubblewrap follows a link above a mount out of the image, and would make folders on this machine.
TEST(Runtime, BubblewrapGetsNoLinkAboveAMount) {
  Request asked = request();
  asked.image = "/img";
  asked.mounts = {{.from = "/home/u/p", .to = "/home/u/p", .read_only = false}};
  const Entry home{.name = "home", .folder = false, .link = "../oldroot/etc"};
  const Entry run{.name = "run", .folder = false, .link = "/etc"};
  asked.list = [&](const std::string& /*folder*/) { return std::vector<Entry>{home, run}; };
  const Words words = row("bubblewrap").start(asked);
  EXPECT_FALSE(has(words, {"--symlink"}));
  EXPECT_TRUE(has(words, {"--bind", "/home/u/p", "/home/u/p"}));
}

// /bin is a link to usr/bin in most images: without it, the image has no shell.
TEST(Runtime, BubblewrapMountsBehindTheImagesLinks) {
  Request asked = request();
  asked.image = "/img";
  asked.mounts = {};
  for (const char* to :
       {"/bin/x", "/home/u/p", "/lib/d", "/loop/x", "/none/x", "/out/x", "/root/x"})
    asked.mounts.push_back({.from = "/f", .to = to, .read_only = false});
  const auto folder = [](std::string name) { return Entry{std::move(name), true, {}}; };
  const auto link = [](std::string name, std::string to) {
    return Entry{std::move(name), false, std::move(to)};
  };
  std::map<std::string, std::vector<Entry>> folders = {
      {"/img",
       {link("bin", "usr/bin"), link("home", "/var/home"), link("lib", "bin/../lib"),
        link("loop", "loop"), link("none", "gone"), link("out", "usr/../../oldroot"),
        folder("proc"), link("root", "proc/1/root"), folder("usr"), folder("var")}},
      {"/img/usr", {folder("bin"), folder("lib")}},
      {"/img/usr/bin", {link("sh", "busybox"), link("x", "busybox")}},
      {"/img/usr/lib", {}},
      {"/img/var", {link("home", "../usr/lib")}}};
  asked.list = [&](const std::string& path) { return folders.at(path); };
  const Words words = row("bubblewrap").start(asked);
  for (const auto& [at, to] :
       {std::pair("/bin", "usr/bin"), std::pair("/home", "/var/home"),
        std::pair("/lib", "bin/../lib"), std::pair("/usr/bin/sh", "busybox")})
    EXPECT_TRUE(has(words, {"--symlink", to, at})) << at;
  for (const char* gone : {"loop", "gone", "usr/../../oldroot", "proc/1/root"})
    EXPECT_FALSE(has(words, {"--symlink", gone})) << gone;
  for (const char* place :
       {"/usr/bin/x", "/usr/lib/u/p", "/usr/lib/d", "/loop/x", "/none/x", "/out/x", "/root/x"})
    EXPECT_TRUE(has(words, {"--bind", "/f", place})) << place;
  EXPECT_FALSE(has(words, {"busybox", "/usr/bin/x"}));
}

TEST(Runtime, IsChosenByImageAndPath) {
  const auto choose = [](ImageKind kind, std::set<std::string, std::less<>> programs) {
    return choose_runtime({.kind = kind, .text = "X", .place = "X"}, [&](std::string_view name) {
      return programs.contains(name) ? "/bin/" + std::string(name) : std::string();
    });
  };
  const auto podman = choose(ImageKind::registry, {"podman", "docker", "bwrap"});
  ASSERT_TRUE(podman);
  EXPECT_EQ(podman->runtime->name, "podman");
  EXPECT_EQ(podman->program, "/bin/podman");
  EXPECT_EQ(
      podman->why,
      "rule: podman runs an image of a registry, and there is no enroot, apptainer, singularity");
  EXPECT_EQ(choose(ImageKind::registry, {"enroot", "apptainer"})->runtime->name, "enroot");
  EXPECT_EQ(choose(ImageKind::registry, {"apptainer", "podman"})->runtime->name, "apptainer");
  EXPECT_EQ(choose(ImageKind::folder, {"bwrap"})->why, "rule: bubblewrap runs a folder");
  EXPECT_EQ(choose(ImageKind::squashfs, {"enroot"})->runtime->name, "enroot");
  const Image digest{.kind = ImageKind::registry, .text = "D", .place = "docker.io/a@sha256:1"};
  const auto all = choose_runtime(digest, [](std::string_view name) { return std::string(name); });
  EXPECT_EQ(all->runtime->name, "apptainer") << "enroot takes what is before '@' for a user";
  EXPECT_EQ(programs_for(digest).front(), "apptainer");
  EXPECT_EQ(choose(ImageKind::archive, {"apptainer", "podman"})->runtime->name, "apptainer");
  EXPECT_EQ(choose(ImageKind::folder, {"singularity"})->runtime->name, "singularity");
  const auto none = choose(ImageKind::archive, {"bwrap", "enroot"});
  ASSERT_FALSE(none);
  EXPECT_EQ(code_of(none), Errc::not_found);
  EXPECT_EQ(none.error().message,
            "--container X is an archive and needs apptainer or singularity or podman or docker, "
            "and PATH has none");
}

TEST(Runtime, FetchesOnce) {
  FetchRequest asked{.program = "/bin/it",
                     .image = {.kind = ImageKind::archive, .text = "a.tar", .place = "/w/a.tar"},
                     .key = "lockstep-1",
                     .file = "/cache/lockstep-1.sif",
                     .scratch = "/cache/lockstep-1.n.sqsh",
                     .known = {}};
  Fetch fetch = row("podman").fetch(asked);
  EXPECT_TRUE(fetch.have.empty());
  EXPECT_EQ(fetch.image, "");
  EXPECT_EQ(fetch.get, (Words{"/bin/it", "load", "--input", "/w/a.tar"}));
  asked.known = "sha256:1";
  fetch = row("podman").fetch(asked);
  EXPECT_EQ(fetch.have, (Words{"/bin/it", "image", "exists", "sha256:1"}));
  EXPECT_EQ(fetch.image, "sha256:1");
  fetch = row("apptainer").fetch(asked);
  EXPECT_EQ(fetch.get, (Words{"/bin/it", "build", "--force", "/cache/lockstep-1.sif.part",
                              "oci-archive:/w/a.tar"}));
  EXPECT_EQ(fetch.image, "/cache/lockstep-1.sif");
  asked.docker_archive = true;
  EXPECT_EQ(row("apptainer").fetch(asked).get.back(), "docker-archive:/w/a.tar");

  asked.image = {.kind = ImageKind::registry, .text = "docker://a/b", .place = "a/b"};
  EXPECT_EQ(row("podman").fetch(asked).get, (Words{"/bin/it", "pull", "a/b"}));
  EXPECT_EQ(row("podman").fetch(asked).have, (Words{"/bin/it", "image", "exists", "a/b"}));
  fetch = row("apptainer").fetch(asked);
  EXPECT_EQ(fetch.get,
            (Words{"/bin/it", "pull", "--force", "/cache/lockstep-1.sif.part", "docker://a/b"}));
  EXPECT_EQ(fetch.part, "/cache/lockstep-1.sif.part");
  EXPECT_EQ(fetch.image, "/cache/lockstep-1.sif");

  asked.image = {.kind = ImageKind::local_name, .text = "a", .place = "a"};
  EXPECT_TRUE(row("podman").fetch(asked).get.empty());
  EXPECT_EQ(row("podman").fetch(asked).have, (Words{"/bin/it", "image", "exists", "a"}));
  asked.image = {.kind = ImageKind::squashfs, .text = "a.sqsh", .place = "/w/a.sqsh"};
  fetch = row("enroot").fetch(asked);
  EXPECT_EQ(fetch.get, (Words{"/bin/it", "create", "--name", "lockstep-1", "/w/a.sqsh"}));
  EXPECT_EQ(fetch.have, (Words{"/bin/it", "list"}));
  EXPECT_EQ(fetch.line, "lockstep-1");
  asked.known = "";
  EXPECT_TRUE(row("enroot").fetch(asked).have.empty());
  EXPECT_TRUE(row("enroot").fetch(asked).import.empty());
  asked.image = {.kind = ImageKind::registry, .text = "docker://a", .place = "docker.io/library/a"};
  fetch = row("enroot").fetch(asked);
  EXPECT_EQ(fetch.import, (Words{"/bin/it", "import", "--output", "/cache/lockstep-1.n.sqsh",
                                 "docker://library/a"}));
  EXPECT_EQ(fetch.get,
            (Words{"/bin/it", "create", "--name", "lockstep-1", "/cache/lockstep-1.n.sqsh"}));
  asked.image.place = "nvcr.io/nvidia/pytorch:1";
  EXPECT_EQ(row("enroot").fetch(asked).import.back(), "docker://nvcr.io#nvidia/pytorch:1");

  asked.image = {.kind = ImageKind::sif, .text = "a.sif", .place = "/w/a.sif"};
  EXPECT_TRUE(row("apptainer").fetch(asked).get.empty());
  EXPECT_EQ(row("apptainer").fetch(asked).image, "/w/a.sif");
  asked.image = {.kind = ImageKind::folder, .text = "root", .place = "/w/root"};
  EXPECT_TRUE(row("apptainer").fetch(asked).get.empty());
  EXPECT_EQ(row("apptainer").fetch(asked).image, "/w/root");
}

TEST(Runtime, TellsWhenAFileCannotFit) {
  constexpr std::uint64_t kGib = 1UL << 30;
  EXPECT_EQ(no_room(kGib, kGib, "/s"), "");
  EXPECT_EQ(no_room(3 * kGib, kGib / 2, "/s"), "/s has 0.5 GiB left, and the file has 3.0 GiB");
  for (const char* name : {"podman", "docker"})
    EXPECT_EQ(row(name).storage("/bin/it").front(), "/bin/it");
}

TEST(Runtime, ReadsTheNameOfALoadedImage) {
  EXPECT_EQ(loaded_name("Getting blob\nLoaded image: localhost/x:1\n"), "localhost/x:1");
  EXPECT_EQ(loaded_name("Loaded image ID: sha256:12\n"), "sha256:12");
  EXPECT_EQ(loaded_name("nothing\n"), "");
}

}  // namespace
}  // namespace lockstep::container
