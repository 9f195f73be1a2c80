#include "setup/environment_maker.h"

#include "base/exit_codes.h"
#include "base/text.h"
#include "codec/json.h"
#include "io/own_folders.h"
#include "io/replace_file.h"
#include "setup/lock_file.h"
#include "setup/places.h"
#include "setup/venv_config.h"

#include <fmt/core.h>

#include <unistd.h>

#include <algorithm>
#include <cstdlib>
#include <filesystem>
#include <system_error>
#include <utility>

namespace lockstep::setup {
namespace {

namespace fs = std::filesystem;
using Kind = Environment::Kind;
using Choice = SetupRequest::Choice;

constexpr int kBadInput = 2;

bool runs(const std::string& program) {
  return access(program.c_str(), X_OK) == 0;
}

bool is_venv(const std::string& prefix) {
  return access((prefix + "/pyvenv.cfg").c_str(), F_OK) == 0 && runs(prefix + "/bin/python");
}

bool is_empty_or_absent(const std::string& folder) {
  std::error_code trouble;
  const bool empty = fs::is_empty(folder, trouble);
  // A dangling link counts as occupied.
  return trouble ? !fs::exists(fs::symlink_status(folder, trouble)) : empty;
}

// Returns "3.11" of "3.11.2". Environments can share packages if this part is the same.
std::string minor_version(const std::string& version) {
  return version.substr(0, version.find('.', version.find('.') + 1));
}

// Name of the .pth file that lets Python import from the host's package folders, too. If the host's
// python3 is itself a virtual environment, include-system-site-packages does not reach its
// packages.
constexpr const char* kPathFile = "lockstep-host.pth";
std::string path_file(const std::vector<std::string>& folders) {
  std::string text;
  for (const std::string& each : folders)
    // Python's site module executes lines of a .pth file that begin with "import".
    text += "import site; site.addsitedir(" + codec::print_json(nlohmann::json(each)) + ")\n";
  return text;
}

std::string absolute(const std::string& path, const std::string& folder) {
  std::string full = path;
  if (path == "~" || path.starts_with("~/")) full = io::home_folder() + path.substr(1);
  if (!full.starts_with('/')) full = folder + "/" + full;
  return plain_folder(full);
}

}  // namespace

tl::unexpected<Trouble> trouble(int code, std::string message, std::string hint) {
  return tl::make_unexpected(
      Trouble{{Errc::unavailable, std::move(message), std::move(hint), 0}, code, {}});
}

EnvironmentFiles::EnvironmentFiles(const std::string& place)
    : base_(io::state_folder() + "/environments/" + key_of(place)) {}

Status EnvironmentFiles::make() const {
  return io::make_folders(base_.substr(0, base_.rfind('/')));
}

// Two projects may install into one shared environment at once.
Result<io::Fd> hold(const EnvironmentFiles& files, const std::string& shown, const Say& say) {
  return lock_file(files.lock(),
                   [&] { say(fmt::format("waiting: another install works on {}", shown)); });
}

EnvironmentMaker::EnvironmentMaker(const SetupRequest& request, const std::vector<Spec>& specs,
                                   std::string folder, std::string uv, Say say)
    : request_(request),
      specs_(specs),
      folder_(std::move(folder)),
      uv_(std::move(uv)),
      say_(std::move(say)) {}

bool EnvironmentMaker::asks_for_conda() const {
  return std::any_of(specs_.begin(), specs_.end(),
                     [](const Spec& each) { return each.kind == Spec::Kind::conda; });
}

std::string EnvironmentMaker::own_prefix(const char* kind) const {
  return io::data_folder() + "/" + kind + "/" + key_of(folder_);
}

// Without a choice in the request the project keeps its environment. A conda: spec moves the
// project into conda.
Attempt<Environment> EnvironmentMaker::choose() {
  const auto kept = find_environment(folder_);
  if (!kept) return tl::make_unexpected(Trouble{kept.error()});
  const Environment before = kept->value_or(Environment{});
  Attempt<Environment> chosen = before;
  if (request_.choice == Choice::venv) {
    chosen = choose_venv(request_.place);
  } else if (request_.choice == Choice::conda) {
    chosen = choose_conda(request_.place);
  } else if (request_.choice == Choice::system ||
             (before.kind == Kind::system && !asks_for_conda())) {
    const auto python = base_python();
    if (!python) return tl::make_unexpected(python.error());
    chosen = Environment{.kind = Kind::system, .python = *python};
  } else if (asks_for_conda() || before.kind == Kind::conda) {
    chosen =
        choose_conda(before.kind == Kind::conda ? before.prefix : std::string(SetupRequest::kOwn));
  } else if (before.kind == Kind::none) {
    chosen = choose_venv(std::string(SetupRequest::kOwn));
  }
  if (!chosen) return chosen;
  if (asks_for_conda() && chosen->kind != Kind::conda)
    return trouble(kBadInput, "a conda: file can't go into another kind of environment",
                   "give --conda NAME, or neither --venv nor --system");
  chosen->local = before.local;
  return chosen;
}

Attempt<Environment> EnvironmentMaker::choose_venv(const std::string& place) const {
  const std::string prefix =
      place == SetupRequest::kOwn ? own_prefix("venvs") : absolute(place, folder_);
  return Environment{.kind = Kind::venv, .prefix = prefix, .python = prefix + "/bin/python"};
}

Attempt<Environment> EnvironmentMaker::choose_conda(const std::string& place) {
  // Shells in which conda is active have CONDA_EXE.
  const char* given = std::getenv("CONDA_EXE");
  conda_ = given != nullptr && runs(given) ? given : "";
  // A command over ssh lacks the PATH that conda sets in interactive shells, so look in the usual
  // places, too.
  for (const char* name : {"conda", "mamba"})
    if (conda_.empty())
      conda_ = find_program(
          name, {"miniconda3/bin/conda", "miniforge3/bin/conda", "mambaforge/bin/conda",
                 "anaconda3/bin/conda", "/opt/conda/bin/conda", "/opt/miniconda3/bin/conda"});
  if (conda_.empty())
    return trouble(kExitNotFound, "conda is not on this host",
                   "install conda there (miniforge needs no root), or leave conda out");
  std::string prefix;
  if (place == SetupRequest::kOwn) {
    prefix = own_prefix("conda");
  } else if (place.find('/') != std::string::npos) {
    prefix = absolute(place, folder_);
  } else {
    auto found = conda_prefix(place);
    if (!found) return tl::make_unexpected(found.error());
    prefix = *found;
  }
  if (!asks_for_conda() && !runs(prefix + "/bin/python"))
    return trouble(1, fmt::format("the conda environment {} has no Python", prefix),
                   "add python to the environment, or make the environment with a conda:FILE spec");
  return Environment{.kind = Kind::conda, .prefix = prefix, .python = prefix + "/bin/python"};
}

// Returns the prefix of the conda environment `name`, or the prefix where conda would make it.
Attempt<std::string> EnvironmentMaker::conda_prefix(const std::string& name) {
  std::string text;
  const auto ended = run_tool({{conda_, "info", "--json"}},
                              [&](std::string_view line) { text.append(line).append("\n"); });
  if (!ended) return tl::make_unexpected(Trouble{ended.error()});
  if (ended->code != 0)
    return tl::make_unexpected(
        Trouble{{Errc::unavailable, "conda info failed: " + telling_line(ended->tail), {}, 0},
                ended->code,
                ended->tail});
  const auto info =
      // run_tool() mixes stderr in, so warnings may stand before the JSON.
      codec::parse_json(std::string_view(text).substr(std::min(text.find('{'), text.size())));
  const auto root =
      info.is_object() ? info.value("root_prefix", nlohmann::json()) : nlohmann::json();
  // conda calls its root environment "base".
  if (name == "base" && root.is_string()) return root.get<std::string>();
  const auto envs = info.is_object() ? info.value("envs", nlohmann::json()) : nlohmann::json();
  for (const auto& each : envs)
    if (each.is_string() && base_name(each.get<std::string>()) == name && each != root)
      return each.get<std::string>();
  // envs_dirs lists the folders where conda makes environments, the preferred one first.
  const auto folders =
      info.is_object() ? info.value("envs_dirs", nlohmann::json()) : nlohmann::json();
  if (!asks_for_conda() || !folders.is_array() || folders.empty() || !folders[0].is_string())
    return trouble(1, fmt::format("there is no conda environment {}", printable(name)),
                   "make the environment with a conda:FILE spec");
  return folders[0].get<std::string>() + "/" + name;
}

Attempt<std::string> EnvironmentMaker::base_python() const {
  if (!request_.python.empty()) {
    const bool path = request_.python.find('/') != std::string::npos;
    const std::string given = path ? absolute(request_.python, folder_) : request_.python;
    // Keep the path as given. An environment's python is a link, and its target would be the base
    // Python.
    const std::string found =
        path && !request_.python.starts_with('~') && request_.python.starts_with('/')
            ? (runs(request_.python) ? request_.python : "")
            : find_program(given);
    if (found.empty())
      return trouble(kExitNotFound,
                     fmt::format("there is no Python {}", printable(request_.python)));
    return found;
  }
  for (const char* name : {"python3", "python"})
    if (const std::string found = find_program(name); !found.empty()) return found;
  return trouble(kExitNotFound, "Python is not on this host, and these packages need Python",
                 "install python3 there, or name a Python with --python PATH");
}

Attempt<void> EnvironmentMaker::make(const Environment& environment,
                                     const EnvironmentFiles& files) {
  if (environment.kind != Kind::venv) return {};
  const std::string& prefix = environment.prefix;
  std::error_code failed;
  // A previous install was cut off while making the environment: start over.
  if (access(files.making().c_str(), F_OK) == 0) fs::remove_all(prefix, failed);
  if (is_venv(prefix)) return show_host_torch(prefix, prefix == own_prefix("venvs"));
  if (!is_empty_or_absent(prefix)) {
    // Never remove a folder of the user's. Only the project's own environment may be made anew.
    if (prefix != own_prefix("venvs"))
      return trouble(1, prefix + " exists but is not a working virtual environment",
                     "move the folder away, or give --venv another place");
    say_(fmt::format("the Python of {} is gone: making the environment again", prefix));
    fs::remove_all(prefix, failed);
  }
  return make_venv(prefix, files);
}

Attempt<void> EnvironmentMaker::make_venv(const std::string& prefix,
                                          const EnvironmentFiles& files) {
  const auto python = base_python();
  if (!python) return tl::make_unexpected(python.error());
  VenvMaker maker{*python, uv_, ""};
  if (uv_.empty()) {
    // Debian's python3 lacks ensurepip unless python3-venv is installed, so "python3 -m venv" may
    // fail there.
    const auto asked = ask_interpreter(*python, "");
    if (!asked) return tl::make_unexpected(Trouble{asked.error()});
    if (!asked->makes_venvs)
      maker.virtualenv = find_program("virtualenv", {".local/bin/virtualenv"});
    if (!asked->makes_venvs && maker.virtualenv.empty())
      return trouble(
          1, fmt::format("{} (Python {}) can't make virtual environments", *python, asked->version),
          "install python3-venv there (as root: apt install python3-venv), or uv, or virtualenv; "
          "or use another environment with --venv, --conda or --system");
  }
  say_(fmt::format("making the virtual environment {}", prefix));
  if (auto made = io::make_folders(prefix.substr(0, prefix.rfind('/'))); !made)
    return tl::make_unexpected(Trouble{made.error()});
  // The marker tells the next install if this one is cut off.
  if (auto marked = io::write_file(files.making(), prefix + "\n"); !marked)
    return tl::make_unexpected(Trouble{marked.error()});
  const auto ended = run_tool({venv_plan(maker, prefix)}, [](std::string_view) {});
  std::error_code failed;
  // Leave nothing behind that looks like an environment.
  if (!ended || ended->code != 0) fs::remove_all(prefix, failed);
  unlink(files.making().c_str());
  if (!ended) return tl::make_unexpected(Trouble{ended.error()});
  if (ended->code != 0)
    return tl::make_unexpected(
        Trouble{{Errc::unavailable,
                 fmt::format("{} can't be made: {}", prefix, printable(telling_line(ended->tail))),
                 {},
                 0},
                ended->code,
                ended->tail});
  return show_host_torch(prefix, true);
}

// Lets the environment import the packages of the host's Python if PyTorch is among them. GPU
// images bring a PyTorch that fits their driver, and a project's requirements often leave PyTorch
// out. may_change: false for an environment that the user has made: then the message says how to
// change it.
Attempt<void> EnvironmentMaker::show_host_torch(const std::string& prefix, bool may_change) const {
  const std::string path = prefix + "/pyvenv.cfg";
  const auto config = io::read_file(path);
  const auto python = base_python();
  if (!config || sees_base_packages(*config) || !python) return {};
  const auto host = ask_interpreter(*python, "");
  if (!host || !host->has_torch) return {};
  const auto own = ask_interpreter(prefix + "/bin/python", "");
  // Compiled packages only load in the same minor version of Python.
  if (!own || own->has_torch || minor_version(own->version) != minor_version(host->version))
    return {};
  if (!may_change) {
    say_(
        fmt::format("{} does not see the PyTorch of {}: install torch there, or set "
                    "include-system-site-packages = true in {}",
                    prefix, *python, path));
    return {};
  }
  // pyvenv.cfg reaches the packages of a base Python, the .pth file those of a virtual environment.
  const auto written =
      host->venv_sites.empty()
          ? io::replace_file(path, with_base_packages(*config))
          : io::replace_file(fmt::format("{}/lib/python{}/site-packages/{}", prefix,
                                         minor_version(own->version), kPathFile),
                             path_file(host->venv_sites));
  if (!written) return tl::make_unexpected(Trouble{written.error()});
  // Tell the user only after a check.
  const auto now = ask_interpreter(prefix + "/bin/python", "");
  if (now && now->has_torch)
    say_(fmt::format("{} sees the packages of {}, PyTorch among them", prefix, *python));
  return {};
}

}  // namespace lockstep::setup
