#include "container/runtime.h"

#include "base/text.h"

#include <fmt/core.h>

#include <algorithm>
#include <array>
#include <cctype>
#include <iterator>
#include <optional>

namespace lockstep::container {
namespace {

void add(Words& words, std::initializer_list<std::string> more) {
  words.insert(words.end(), more);
}

void add_command(const Request& request, Words& words) {
  words.insert(words.end(), request.command.begin(), request.command.end());
}

// ---- bubblewrap: the folder becomes the root, read-only ----

constexpr int kMostLinks = 40;  // the kernel's own limit (MAXSYMLINKS)

std::optional<Entry> look(const Request& request, const std::string& folder,
                          const std::string& name) {
  for (Entry& entry : request.list(request.image + folder))
    if (entry.name == name) return std::move(entry);
  return std::nullopt;
}

// Returns the folder of the image that a path leads to from the folder `at`, free of links. The
// image's root is "". nullopt: out of the root, to no folder of the image, or into a mount, whose
// links are not the image's (/proc/1/root leads out).
std::optional<std::string> leads_to(const Request& request, const std::vector<std::string>& mounts,
                                    std::string at, const std::string& path, int& links) {
  if (path.starts_with('/')) at.clear();
  for (const std::string& part : split(path, '/')) {
    if (part.empty() || part == ".") continue;
    const std::string folder = at;
    if (part == "..") {
      if (at.empty()) return std::nullopt;
      at.erase(at.rfind('/'));
      continue;
    }
    at += "/" + part;
    if (std::find(mounts.begin(), mounts.end(), at) != mounts.end()) return std::nullopt;
    const auto entry = look(request, folder, part);
    if (!entry) return std::nullopt;
    if (!entry->link.empty()) {
      if (--links < 0) return std::nullopt;
      auto target = leads_to(request, mounts, folder, entry->link, links);
      if (!target) return std::nullopt;
      at = std::move(*target);
    } else if (!entry->folder) {
      return std::nullopt;
    }
  }
  return at;
}

// Returns where a mount lies once the image's links above it are followed. The last part is not
// followed: the mount takes the place of a link there.
std::string behind_links(const Request& request, const std::vector<std::string>& mounts,
                         const std::string& place) {
  std::string at;
  std::size_t from = 0;
  for (std::size_t end = 0; (end = place.find('/', from + 1)) != place.npos; from = end) {
    int links = kMostLinks;
    auto next = leads_to(request, mounts, at, place.substr(from + 1, end - from - 1), links);
    if (!next) break;
    at = std::move(*next);
  }
  return at + place.substr(from);
}

// Binds the parts of a folder of the image. bubblewrap can make no place for a mount in a read-only
// folder, so folders above a mount are made anew and get the image's entries one by one. The places
// lie behind the image's links, so a link above a place is one that behind_links() has not
// followed. That link is left out: bubblewrap would follow it, and make folders of this machine.
void bind_level(const Request& request, const std::vector<std::string>& places,
                const std::string& inside, Words& words) {
  for (const Entry& entry : request.list(request.image + inside)) {
    const std::string path = fmt::format("{}/{}", inside, entry.name);
    const auto is_place = [&path](const std::string& place) { return place == path; };
    const auto is_above = [&path](const std::string& place) {
      return place.starts_with(path + "/");
    };
    if (std::any_of(places.begin(), places.end(), is_place)) continue;
    const bool above = std::any_of(places.begin(), places.end(), is_above);
    if (!entry.link.empty()) {
      if (!above) add(words, {"--symlink", entry.link, path});
    } else if (entry.folder && above) {
      add(words, {"--dir", path});
      bind_level(request, places, path, words);
    } else {
      add(words, {"--ro-bind", request.image + path, path});
    }
  }
}

Words start_bubblewrap(const Request& request) {
  // Host names are looked up as on this machine.
  const std::array<std::string, 2> names = {"/etc/hosts", "/etc/resolv.conf"};
  std::vector<std::string> wanted = {"/dev", "/proc", "/sys", request.command.front()};
  wanted.insert(wanted.end(), names.begin(), names.end());
  for (const Mount& mount : request.mounts)
    wanted.push_back(mount.to);
  const auto place = [&](const std::string& to) { return behind_links(request, wanted, to); };
  std::vector<std::string> places;
  std::transform(wanted.begin(), wanted.end(), std::back_inserter(places), place);
  std::vector<Mount> mounts = request.mounts;
  for (Mount& mount : mounts)
    mount.to = place(mount.to);
  // Parents before children, which they would hide.
  std::stable_sort(mounts.begin(), mounts.end(),
                   [](const Mount& a, const Mount& b) { return a.to < b.to; });
  Words words = {request.program};
  bind_level(request, places, "", words);
  add(words, {"--dev-bind", "/dev", "/dev", "--dev-bind", "/proc", "/proc"});
  add(words, {"--ro-bind", "/sys", "/sys"});
  for (const std::string& file : names)
    add(words, {"--ro-bind-try", file, place(file)});
  for (const Mount& mount : mounts)
    add(words, {mount.read_only ? "--ro-bind" : "--bind", mount.from, mount.to});
  add(words, {"--ro-bind", request.binary, place(request.command.front()), "--"});
  add_command(request, words);
  return words;
}

Fetch fetch_nothing(const FetchRequest& request) {
  return {.image = request.image.place};
}

// ---- podman and docker ----

std::string volume(const Mount& mount) {
  return fmt::format("{}:{}{}", mount.from, mount.to, mount.read_only ? ":ro" : "");
}

// have: asks whether an image is there. The image becomes the last word.
Fetch fetch_stored(const FetchRequest& request, Words have) {
  Fetch fetch{.image = request.image.place};
  if (request.image.kind == ImageKind::archive) {
    // Another archive may have the same name, so the image is known by its id.
    fetch.image = request.known;
    fetch.file = request.image.place;
    fetch.get = {request.program, "load", "--input", fetch.file};
    fetch.id = {request.program, "image", "inspect", "--format", "{{.Id}}"};
  } else if (request.image.kind == ImageKind::registry) {
    // Never pull a local name: a mistyped folder would become a stranger's image.
    fetch.get = {request.program, "pull", request.image.place};
  }
  if (fetch.image.empty()) return fetch;
  fetch.have = std::move(have);
  fetch.have.push_back(fetch.image);
  return fetch;
}

Fetch fetch_podman(const FetchRequest& request) {
  return fetch_stored(request, {request.program, "image", "exists"});
}

Fetch fetch_docker(const FetchRequest& request) {
  return fetch_stored(request, {request.program, "image", "inspect", "--format", "{{.Id}}"});
}

// Returns the names of the variables that the job takes along. The image's own values win.
std::vector<std::string> passed_names(const Request& request) {
  constexpr std::array<std::string_view, 6> kImages = {"PATH",   "HOSTNAME", "PWD",
                                                       "OLDPWD", "SHLVL",    "_"};
  std::vector<std::string> names;
  const auto is_among = [](const auto& list, const std::string& name) {
    return std::find(list.begin(), list.end(), name) != list.end();
  };
  for (const std::string& name : request.variables)
    // bash exports functions under names that runtimes refuse.
    if (is_variable_name(name) && !is_among(kImages, name) && !is_among(request.of_image, name))
      names.push_back(name);
  for (const std::string& name : request.named)
    if (!is_among(names, name)) names.push_back(name);
  return names;
}

// Returns the words that podman and docker share. The network, pids and name are those of this
// machine, and NCCL and PyTorch's loaders use the host's /dev/shm.
Words start_stored(const Request& request) {
  Words words = {request.program, "run", "--rm", "--name", request.name, "--pull=never"};
  add(words,
      {"--pid=host", "--network=host", "--uts=host", "--sig-proxy=false", "--no-healthcheck"});
  add(words, {fmt::format("--user={}:{}", request.user, request.group)});
  // Labels would keep the container out of the mounted folders, and the default filter refuses
  // NUMA policies.
  add(words, {"--security-opt=label=disable", "--security-opt=seccomp=unconfined"});
  add(words, {"--volume=/dev/shm:/dev/shm"});
  for (const Mount& mount : request.mounts)
    add(words, {"--volume=" + volume(mount)});
  add(words, {fmt::format("--volume={}:{}:ro", request.binary, request.command.front())});
  if (request.devices.infiniband) add(words, {"--device=/dev/infiniband"});
  add(words, {"--log-driver=none"});
  for (const std::string& name : passed_names(request))
    add(words, {"--env=" + name});
  return words;
}

void add_image(const Request& request, Words& words) {
  // The entrypoint is an option, and its arguments follow the image.
  add(words, {fmt::format("--entrypoint={}", request.command.front()), request.image});
  words.insert(words.end(), request.command.begin() + 1, request.command.end());
}

Words start_podman(const Request& request) {
  Words words = start_stored(request);
  // Without root, keep-id makes files of the container belong to the caller.
  if (request.user != 0) add(words, {"--userns=keep-id"});
  if (request.devices.nvidia_cdi) add(words, {"--device=nvidia.com/gpu=all"});
  add_image(request, words);
  return words;
}

Words ask_variables(const std::string& program, const std::string& image) {
  return {program, "image", "inspect", "--format", "{{range .Config.Env}}{{println .}}{{end}}",
          image};
}

Words storage_podman(const std::string& program) {
  return {program, "info", "--format", "{{.Store.GraphRoot}}"};
}

Words storage_docker(const std::string& program) {
  return {program, "info", "--format", "{{.DockerRootDir}}"};
}

Words start_docker(const Request& request) {
  Words words = start_stored(request);
  // InfiniBand pins memory. podman keeps the caller's limit, and docker's daemon has its own.
  if (request.devices.infiniband) add(words, {"--ulimit=memlock=-1"});
  if (request.devices.nvidia) add(words, {"--gpus=all"});
  add_image(request, words);
  return words;
}

// ---- apptainer ----

Fetch fetch_apptainer(const FetchRequest& request) {
  const Image& image = request.image;
  const bool is_archive = image.kind == ImageKind::archive;
  if (!is_archive && image.kind != ImageKind::registry) return fetch_nothing(request);
  Fetch fetch{.image = request.file};
  fetch.part = request.file + ".part";
  // `pull` would keep a second copy of an archive in the runtime's own cache.
  fetch.get = {request.program, is_archive ? "build" : "pull", "--force", fetch.part, image.text};
  if (is_archive)
    fetch.get.back() = (request.docker_archive ? "docker-archive:" : "oci-archive:") + image.place;
  return fetch;
}

Words start_apptainer(const Request& request) {
  Words words = {request.program, "exec", "--no-home"};
  if (request.devices.nvidia) add(words, {"--nv"});
  for (const Mount& mount : request.mounts)
    add(words, {"--bind", volume(mount)});
  add(words,
      {"--bind", fmt::format("{}:{}:ro", request.binary, request.command.front()), request.image});
  add_command(request, words);
  return words;
}

// ---- enroot ----

// Returns docker://[HOST#]NAME. Without '#', enroot takes the host for a folder of docker's
// registry. Source: enroot's import command.
std::string enroot_uri(std::string_view place) {
  constexpr std::string_view kDocker = "docker.io/";
  std::string name(place);
  if (name.starts_with(kDocker))
    name.erase(0, kDocker.size());
  else
    name[name.find('/')] = '#';
  return "docker://" + name;
}

// The root is unpacked once a node, under a name, and started by that name. The usual storage of
// enroot is in the home, which nodes may share. With one name for all, a node would remove the root
// that another node uses.
Fetch fetch_enroot(const FetchRequest& request) {
  Fetch fetch{.image = request.key, .line = request.key};
  // A root without a record of ours is the rest of an interrupted `create`.
  if (!request.known.empty()) fetch.have = {request.program, "list"};
  fetch.drop = {request.program, "remove", "--force", request.key};
  const bool is_file = request.image.kind == ImageKind::squashfs;
  if (!is_file)
    fetch.import = {request.program, "import", "--output", request.scratch,
                    enroot_uri(request.image.place)};
  fetch.file = is_file ? request.image.place : request.scratch;
  fetch.get = {request.program, "create", "--name", request.key, fetch.file};
  return fetch;
}

// No command of enroot's tells ENROOT_DATA_PATH. A line of its file has the name and a value with
// the shell's substitutions; the variable wins. Source: enroot's configuration page.
Words storage_enroot(const std::string& /*program*/) {
  return {"/bin/sh", "-c",
          ": ${XDG_DATA_HOME:=$HOME/.local/share} ${ENROOT_SYSCONF_PATH:=/etc/enroot}\n"
          "of_file='$XDG_DATA_HOME/enroot'\n"
          "while read -r name value; do [ \"$name\" != ENROOT_DATA_PATH ] || of_file=$value; done"
          " 2>/dev/null < $ENROOT_SYSCONF_PATH/enroot.conf\n"
          "if [ -n \"$ENROOT_DATA_PATH\" ]; then printf %s \"$ENROOT_DATA_PATH\"; "
          "else eval \"echo $of_file\"; fi"};
}

Words start_enroot(const Request& request) {
  Words words = {request.program, "start", "--rc", request.script};
  const auto mount = [&words](const std::string& from, std::string_view to, bool read_only) {
    add(words, {"--mount",
                fmt::format("{}:{}:none:x-create=auto,rbind{}", from, to, read_only ? ",ro" : "")});
  };
  for (const Mount& one : request.mounts)
    mount(one.from, one.to, one.read_only);
  mount(request.binary, request.command.front(), true);
  for (const std::string& name : passed_names(request))
    add(words, {"--env", name});
  add(words, {request.image});
  add_command(request, words);
  return words;
}

constexpr std::array kFolders = {ImageKind::folder};
constexpr std::array kApptainers = {ImageKind::sif, ImageKind::registry, ImageKind::archive,
                                    ImageKind::folder};
constexpr std::array kEnroots = {ImageKind::squashfs, ImageKind::registry};
constexpr std::array kStored = {ImageKind::registry, ImageKind::archive, ImageKind::local_name};

constexpr std::array kRuntimes = {
    Runtime{"bubblewrap", "bwrap", kFolders, fetch_nothing, start_bubblewrap},
    Runtime{"enroot", "enroot", kEnroots, fetch_enroot, start_enroot, nullptr, "", storage_enroot},
    Runtime{"apptainer", "apptainer", kApptainers, fetch_apptainer, start_apptainer, nullptr,
            "APPTAINERENV_", nullptr, true},
    Runtime{"singularity", "singularity", kApptainers, fetch_apptainer, start_apptainer, nullptr,
            "SINGULARITYENV_", nullptr, true},
    Runtime{"podman", "podman", kStored, fetch_podman, start_podman, ask_variables, "",
            storage_podman},
    Runtime{"docker", "docker", kStored, fetch_docker, start_docker, ask_variables, "",
            storage_docker},
};

bool takes(const Runtime& runtime, const Image& image) {
  // enroot reads the text before '@' as a user name, so it cannot import an image by its digest.
  if (runtime.name == "enroot" && image.kind == ImageKind::registry &&
      image.place.find('@') != std::string::npos)
    return false;
  return std::find(runtime.takes.begin(), runtime.takes.end(), image.kind) != runtime.takes.end();
}

}  // namespace

std::span<const Runtime> runtimes() {
  return kRuntimes;
}

std::vector<std::string> programs_for(const Image& image) {
  std::vector<std::string> programs;
  for (const Runtime& runtime : runtimes())
    if (takes(runtime, image)) programs.emplace_back(runtime.program);
  return programs;
}

Result<Chosen> choose_runtime(const Image& image,
                              const std::function<std::string(std::string_view)>& find) {
  std::vector<std::string> asked;
  for (const Runtime& runtime : runtimes()) {
    if (!takes(runtime, image)) continue;
    std::string program = find(runtime.program);
    asked.emplace_back(runtime.program);
    if (program.empty()) continue;
    std::string why = fmt::format("rule: {} runs {}", runtime.name, kind_words(image.kind));
    if (asked.size() > 1) {
      asked.pop_back();
      why += fmt::format(", and there is no {}", join(asked, ", "));
    }
    return Chosen{&runtime, std::move(program), std::move(why)};
  }
  return fail(Errc::not_found,
              fmt::format("--container {} is {} and needs {}, and PATH has none",
                          printable(image.text), kind_words(image.kind), join(asked, " or ")),
              "install it, or give the image in another form (docs/containers.md)");
}

std::string no_room(std::uint64_t size, std::uint64_t free, std::string_view folder) {
  constexpr double kGib = 1UL << 30;
  if (free >= size) return {};
  return fmt::format("{} has {:.1f} GiB left, and the file has {:.1f} GiB",
                     printable(std::string(folder)), static_cast<double>(free) / kGib,
                     static_cast<double>(size) / kGib);
}

std::string loaded_name(std::string_view output) {
  std::string name;
  for (const std::string& line : split(output, '\n'))
    if (line.starts_with("Loaded image"))
      if (const std::size_t at = line.find(": "); at != line.npos)
        name = strip(std::string_view(line).substr(at + 2));
  return name;
}

bool is_variable_name(std::string_view name) {
  return !name.empty() && std::isdigit(static_cast<unsigned char>(name.front())) == 0 &&
         std::all_of(name.begin(), name.end(), [](char c) {
           return std::isalnum(static_cast<unsigned char>(c)) != 0 || c == '_';
         });
}

bool stays_outside(std::string_view variable) {
  constexpr std::array<std::string_view, 4> kNames = {"LD_LIBRARY_PATH", "LD_PRELOAD", "PYTHONHOME",
                                                      "VIRTUAL_ENV"};
  return std::find(kNames.begin(), kNames.end(), variable) != kNames.end();
}

}  // namespace lockstep::container
