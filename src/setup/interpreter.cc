#include "setup/interpreter.h"

#include "codec/json_fields.h"
#include "io/digest.h"
#include "io/fd.h"
#include "io/replace_file.h"
#include "setup/tool.h"

#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <filesystem>
#include <system_error>
#include <utility>

namespace lockstep::setup {
namespace {

namespace fs = std::filesystem;

constexpr std::size_t kMostSites = 100;

// Works from Python 3.6 on. The marker separates our line from anything that a sitecustomize
// prints.
constexpr const char* kQuestion = R"(import importlib.util as u, json, os, site, sys, sysconfig as s
def has(n):
    try:
        found = u.find_spec(n)
    except Exception:
        return None
    return found if found and found.origin else None  # a folder of that name is none
pip = has('pip')
ends = ('site-packages', 'dist-packages')
path = [p for p in sys.path if os.path.basename(p) in ends]
sites = path + [s.get_path('purelib'), s.get_path('platlib'), site.getusersitepackages()]
print('lockstep:' + json.dumps({
    'version': '.'.join(map(str, sys.version_info[:3])),
    'pip': list(pip.submodule_search_locations)[0] if pip else '',
    'venv': bool(has('venv') and has('ensurepip')),
    'virtualenv': bool(has('virtualenv')),
    'torch': bool(has('torch')),
    'venv_sites': path if sys.prefix != sys.base_prefix else [],
    'sites': sorted(set(sites))})))";
constexpr std::string_view kMarker = "lockstep:";

}  // namespace

static void fields(codec::JsonFields& io, Interpreter& found) {
  io("version", found.version);
  io("pip", found.pip);
  io("venv", found.makes_venvs);
  io("virtualenv", found.has_virtualenv);
  io("torch", found.has_torch);
  io("sites", found.sites);
  io("venv_sites", found.venv_sites);
}

namespace {

Result<Interpreter> read_reply(const std::string& python, std::string_view text) {
  const nlohmann::json reply = codec::parse_json(text);
  Interpreter found{.python = python};
  if (!codec::read_fields(reply, found))
    return fail(Errc::corrupt, python + " gave no readable answer about itself");
  if (found.sites.size() > kMostSites)
    return fail(Errc::corrupt, python + " has too many folders for packages");
  return found;
}

std::string stamp(const struct stat& info) {
  return std::to_string(info.st_ino) + " " + std::to_string(info.st_size) + " " +
         std::to_string(info.st_mtim.tv_sec) + "." + std::to_string(info.st_mtim.tv_nsec);
}

// Installers write these files with every package, so their times tell of each change without a
// look at every file.
bool describes_a_package(const std::string& name) {
  return name.ends_with(".dist-info") || name.ends_with(".egg-info") || name.ends_with(".pth") ||
         name.ends_with(".egg-link") || name.ends_with(".egg");
}

void add_folder(io::Digest& digest, const std::string& folder, bool all) {
  std::vector<std::string> lines;
  std::error_code trouble;
  for (fs::directory_iterator entry(folder, trouble); !trouble && entry != fs::directory_iterator();
       entry.increment(trouble)) {
    const std::string name = entry->path().filename().string();
    struct stat info {};
    if ((all || describes_a_package(name)) && stat(entry->path().c_str(), &info) == 0)
      lines.push_back(name + " " + stamp(info));
  }
  std::sort(lines.begin(), lines.end());
  digest.add(folder);
  for (const std::string& line : lines)
    digest.add(line);
}

}  // namespace

std::string identity_of(const std::string& python) {
  io::Digest digest;
  std::error_code trouble;
  const std::string real = fs::canonical(python, trouble).string();
  struct stat info {};
  digest.add(python);
  digest.add(real);
  digest.add(stat(python.c_str(), &info) == 0 ? stamp(info) : "");
  // The settings of a virtual environment decide which packages it imports.
  const std::string bin = python.substr(0, python.rfind('/') + 1);
  digest.add(io::read_file(bin + "../pyvenv.cfg").value_or(""));
  return digest.hex();
}

Result<Interpreter> ask_interpreter(const std::string& python, const std::string& kept) {
  // The first line of the cached answer is the identity of the interpreter.
  const std::string head = identity_of(python) + "\n";
  if (!kept.empty()) {
    const auto known = io::read_file(kept);
    if (known && known->starts_with(head)) {
      auto found = read_reply(python, std::string_view(*known).substr(head.size()));
      // Ask again if pip's folder is gone or was missing: a tool may have moved or installed pip
      // since.
      if (found && !found->pip.empty() && access(found->pip.c_str(), F_OK) == 0) return found;
    }
  }
  std::string reply;
  // A new Python takes time to start and imports the hooks of the site, so the answer is kept.
  const auto ended = run_tool({{python, "-c", kQuestion}}, [&](std::string_view line) {
    if (line.starts_with(kMarker)) reply = line.substr(kMarker.size());
  });
  if (!ended) return Failure(ended.error());
  if (ended->code != 0)
    return fail(Errc::unavailable, python + " does not run: " + telling_line(ended->tail));
  auto found = read_reply(python, reply);
  // Without a cache the next install only takes longer.
  if (found && !kept.empty()) (void)io::replace_file(kept, head + reply);
  return found;
}

std::string state_of_packages(const Interpreter& interpreter, const std::string& prefix) {
  io::Digest digest;
  for (const std::string& site : interpreter.sites)
    add_folder(digest, site, false);
  // conda keeps one file per package in conda-meta.
  add_folder(digest, prefix + "/conda-meta", true);
  return digest.hex();
}

}  // namespace lockstep::setup
