#include "setup/overlay.h"

#include "base/text.h"
#include "codec/json_members.h"
#include "io/digest.h"
#include "io/fd.h"
#include "io/own_folders.h"
#include "io/replace_file.h"
#include "setup/interpreter.h"
#include "setup/lock_file.h"
#include "setup/spec.h"
#include "setup/tool.h"
#include "setup/wheel_file.h"

#include <fmt/core.h>

#include <errno.h>
#include <stdlib.h>
#include <unistd.h>

#include <algorithm>
#include <cstdlib>
#include <filesystem>
#include <optional>
#include <system_error>
#include <utility>

namespace lockstep::setup {
namespace {

namespace fs = std::filesystem;
using nlohmann::json;
using Say = std::function<void(std::string_view)>;

constexpr std::size_t kKeyDigits = 12;
constexpr std::size_t kMostRecord = 1UL << 20;
constexpr const char* kRecord = ".lockstep-overlay.json";
constexpr std::string_view kMarker = "lockstep:";

// Imports the wheel's modules and checks that Python found them in the overlay. Imports PyTorch
// first: compiled modules need its libraries. Compares the versions that DeepSpeed's ops were built
// for, as DeepSpeed does itself when an op is first used.
constexpr const char* kVerify = R"(import importlib, json, os, sys
folder = os.path.realpath(sys.argv[1])
wanted = json.loads(sys.argv[2])
try:
    import torch
except ImportError:
    torch = None
done = []
for name in wanted:
    try:
        module = importlib.import_module(name)
    except BaseException as error:
        sys.exit('error: import %s: %s: %s' % (name, type(error).__name__, error))
    places = [module.__file__] if getattr(module, '__file__', None) else list(module.__path__)
    if not all(os.path.realpath(place).startswith(folder + os.sep) for place in places):
        sys.exit('error: import %s finds %s and not the overlay' % (name, places[0]))
    done.append(name)
for name in wanted:
    path = os.path.join(folder, name, 'git_version_info_installed.py')
    if '.' in name or not os.path.exists(path) or torch is None:
        continue
    have = {}
    with open(path) as file:
        exec(compile(file.read(), path, 'exec'), have)
    pair = have.get('torch_info') or {}
    if not any((have.get('installed_ops') or {}).values()) or not pair.get('version'):
        continue
    here = '.'.join(torch.__version__.split('.')[:2])
    cuda = '.'.join((torch.version.cuda or '0.0').split('.')[:2])
    if pair['version'] != here or str(pair.get('cuda_version', '0.0')) != cuda:
        sys.exit('error: the ops of %s are built for PyTorch %s and CUDA %s; here are PyTorch %s and CUDA %s'
                 % (name, pair['version'], pair.get('cuda_version', '0.0'), here, cuda))
print('lockstep:' + json.dumps(done)))";

// Returns the modules to import: the top-level ones, then the compiled ones, which may not fit this
// node.
std::vector<std::string> modules_of(const WheelFile& wheel) {
  std::vector<std::string> modules = wheel.modules;
  for (const std::string& path : wheel.libraries) {
    const std::string name = base_name(path);
    const bool is_module =
        name.find(".cpython-") != std::string::npos || name.find(".abi3.") != std::string::npos;
    if (!is_module || path.find(".data/") != std::string::npos) continue;
    std::string module = path.substr(0, path.size() - name.size()) + name.substr(0, name.find('.'));
    std::replace(module.begin(), module.end(), '/', '.');
    if (std::find(modules.begin(), modules.end(), module) == modules.end())
      modules.push_back(std::move(module));
  }
  return modules;
}

class Maker {
 public:
  Maker(const OverlayRequest& request, const Say& say) : request_(request), say_(say) {}

  Result<Overlay> run() {
    LOCKSTEP_TRY_ASSIGN(sha_, io::sha256_of_file(request_.wheel));
    if (!request_.sha256.empty() && to_lower(request_.sha256) != sha_)
      return fail(Errc::corrupt,
                  fmt::format("{} was damaged on the way: the SHA-256 is {}, not {}",
                              base_name(request_.wheel), sha_, printable(request_.sha256)),
                  "send it again");
    find_place();
    LOCKSTEP_TRY(io::make_folders(folder_));
    // One lock per overlay: other overlays can be made meanwhile.
    LOCKSTEP_TRY_ASSIGN(const io::Fd lock,
                        lock_file(fmt::format("{}/.{}.lock", folder_, overlay_.key),
                                  [&] { say_("waiting: another install makes this overlay"); }));
    if (is_kept()) return std::move(overlay_);
    LOCKSTEP_TRY_ASSIGN(wheel_, read_wheel(request_.python, request_.wheel));
    std::error_code trouble;
    if (!is_whole()) fs::remove_all(overlay_.path, trouble);
    // The overlay may be complete, but imported only by another Python so far.
    if (fs::exists(overlay_.path, trouble)) {
      LOCKSTEP_TRY(verify(overlay_.path));
      LOCKSTEP_TRY(keep_record(overlay_.path));
      return std::move(overlay_);
    }
    LOCKSTEP_TRY(make());
    overlay_.made = true;
    return std::move(overlay_);
  }

  std::optional<Overlay> kept() {
    sha_ = to_lower(request_.sha256);
    find_place();
    if (!is_kept()) return std::nullopt;
    return std::move(overlay_);
  }

 private:
  void find_place() {
    folder_ = request_.folder.empty() ? overlays_folder() : request_.folder;
    overlay_.key = overlay_key(request_.wheel, sha_);
    overlay_.path = folder_ + "/" + overlay_.key;
  }

  static json record_in(const std::string& folder) {
    return codec::parse_json(io::read_file(folder + "/" + kRecord, kMostRecord).value_or(""));
  }

  // Counts the overlay's files. Sweepers of temporary folders may have removed files of an old
  // overlay. Python's own .pyc caches do not count.
  static std::uint64_t files_of(const std::string& folder) {
    std::uint64_t count = 0;
    std::error_code trouble;
    for (fs::recursive_directory_iterator at(folder, trouble), end; !trouble && at != end;
         at.increment(trouble))
      if (at->path().extension() != ".pyc" && at->path().filename() != kRecord &&
          !at->is_directory(trouble))
        ++count;
    return count;
  }
  bool is_whole() const {
    const json kept = record_in(overlay_.path);
    return kept.is_object() && kept.contains("files") && kept["files"].is_number_unsigned() &&
           kept["files"] == files_of(overlay_.path);
  }

  // Returns true if this Python has imported the overlay before.
  bool is_kept() {
    const json kept = record_in(overlay_.path);
    const auto pythons = kept.is_object() ? kept.find("pythons") : kept.end();
    const auto modules = kept.is_object() ? kept.find("imported") : kept.end();
    if (pythons == kept.end() || modules == kept.end() || !pythons->is_array() ||
        !modules->is_array() || codec::text_member(kept, "sha256") != sha_ || !is_whole())
      return false;
    if (std::find(pythons->begin(), pythons->end(), identity()) == pythons->end()) return false;
    for (const json& each : *modules)
      if (each.is_string()) overlay_.imported.push_back(each.get<std::string>());
    return true;
  }

  // Identifies the Python and its packages: after an upgrade of torch the overlay must be verified
  // again.
  std::string identity() const {
    io::Digest digest;
    digest.add(identity_of(request_.python));
    const auto interpreter = ask_interpreter(request_.python, "");
    if (interpreter) digest.add(state_of_packages(*interpreter, ""));
    return digest.hex();
  }

  Status make() {
    // Build next to the final place, then rename: rename() is atomic within a file system, so no
    // job sees half an overlay.
    std::string draft = fmt::format("{}/.{}.new-XXXXXX", folder_, overlay_.key);
    if (mkdtemp(draft.data()) == nullptr) return fail_sys("make " + draft, errno);
    Status done = fill(draft);
    std::error_code trouble;
    if (!done) {
      fs::remove_all(draft, trouble);
      return done;
    }
    fs::rename(draft, overlay_.path, trouble);
    return trouble ? Status(fail_sys("make " + overlay_.path, trouble.value())) : Status();
  }

  Status fill(const std::string& draft) {
    LOCKSTEP_TRY(unpack(draft));
    // Verify before the rename, so that jobs see only overlays with a passed check.
    LOCKSTEP_TRY(verify(draft));
    return keep_record(draft);
  }

  Status unpack(const std::string& draft) {
    const auto interpreter = ask_interpreter(request_.python, "");
    if (!interpreter) return Failure(interpreter.error());
    const std::string uv =
        interpreter->pip.empty() ? find_program("uv", {".local/bin/uv", ".cargo/bin/uv"}) : "";
    // Offline and without dependencies: an overlay holds this wheel and nothing else.
    Argv argv = {request_.python, interpreter->pip, "install", "--no-index"};
    if (!uv.empty())
      argv = {uv, "pip", "install", "--python", request_.python, "--offline"};
    else if (interpreter->pip.empty())
      return fail(Errc::unavailable, request_.python + " has no pip, and uv is not installed",
                  "install pip or uv there");
    for (const std::string& word :
         {std::string("--no-deps"), std::string("--target"), draft, request_.wheel})
      argv.push_back(word);
    const auto ended = run_tool({argv,
                                 {"PIP_DISABLE_PIP_VERSION_CHECK=1", "PIP_NO_INPUT=1",
                                  "PIP_ROOT_USER_ACTION=ignore", "PYTHONPATH="}},
                                [](std::string_view) {});
    if (!ended) return Failure(ended.error());
    if (ended->code == 0) return {};
    return fail(Errc::unavailable,
                fmt::format("{} can't be installed: {}", base_name(request_.wheel),
                            printable(telling_line(ended->tail))),
                "build the wheel for this Python and system: lockstep wheel");
  }

  Status verify(const std::string& folder) {
    // The overlay comes first on the path, as in a job.
    std::string path = folder;
    for (const std::string& each : request_.local)
      path += ":" + each;
    std::string reply;
    const std::string wanted = codec::print_json(json(modules_of(wheel_)));
    const auto ended =
        run_tool({{request_.python, "-c", kVerify, folder, wanted}, {"PYTHONPATH=" + path}},
                 [&](std::string_view line) {
                   if (line.starts_with(kMarker)) reply = line.substr(kMarker.size());
                 });
    if (!ended) return Failure(ended.error());
    const json done = codec::parse_json(reply);
    if (ended->code != 0 || !done.is_array()) {
      // A signal leaves no line to show. 132 is 128 + SIGILL.
      const std::string how = ended->code == 132
                                  ? "illegal instruction: the wheel is compiled for another CPU"
                                  : printable(telling_line(ended->tail), 500);
      return fail(
          Errc::unavailable,
          fmt::format("{} does not work with {}: {}", base_name(request_.wheel), request_.python,
                      how.empty() ? fmt::format("code {}", ended->code) : how),
          "nothing was kept; build the wheel for this node: lockstep wheel");
    }
    for (const json& each : done)
      if (each.is_string()) overlay_.imported.push_back(each.get<std::string>());
    return {};
  }

  Status keep_record(const std::string& folder) const {
    json record = record_in(folder);
    if (!record.is_object()) record = json{{"pythons", json::array()}};
    record["wheel"] = base_name(request_.wheel);
    record["sha256"] = sha_;
    record["imported"] = overlay_.imported;
    record["files"] = files_of(folder);
    record["pythons"].push_back(identity());
    return io::keep_record(folder + "/" + kRecord, codec::print_json(record) + "\n");
  }

  const OverlayRequest& request_;
  const Say say_;
  std::string sha_;
  std::string folder_;  // where overlays lie
  WheelFile wheel_;
  Overlay overlay_;
};

std::vector<std::string> keys_there() {
  // For the hint of an unknown key.
  std::vector<std::string> keys;
  std::error_code trouble;
  for (fs::directory_iterator at(overlays_folder(), trouble), end; !trouble && at != end;
       at.increment(trouble)) {
    std::string name = at->path().filename().string();
    if (!name.starts_with('.')) keys.push_back(std::move(name));
  }
  std::sort(keys.begin(), keys.end());
  return keys;
}

}  // namespace

std::optional<Overlay> kept_overlay(const OverlayRequest& request) {
  return Maker(request, [](std::string_view) {}).kept();
}

Result<Overlay> make_overlay(const OverlayRequest& request, const Say& say) {
  return Maker(request, say).run();
}

Result<std::string> drop_overlay(const std::string& key) {
  const auto keys = keys_there();
  if (std::find(keys.begin(), keys.end(), key) == keys.end())
    return fail(Errc::invalid_input, fmt::format("no overlay '{}' exists here", printable(key)),
                keys.empty() ? "there are no overlays" : "there are " + join(keys, ", "));
  const std::string path = overlays_folder() + "/" + key;
  // Rename first: a job starting now finds either the whole overlay or none.
  const std::string away = fmt::format("{}/.{}.dropped-{}", overlays_folder(), key, getpid());
  std::error_code trouble;
  fs::rename(path, away, trouble);
  if (trouble) return fail_sys("remove " + path, trouble.value());
  fs::remove_all(away, trouble);
  return path;
}

std::string overlays_folder() {
  return io::cache_folder() + "/overlays";
}

std::string overlay_key(std::string_view wheel, std::string_view sha256) {
  const auto parts = split(base_name(wheel), '-');
  std::string name = parts[0];
  if (parts.size() > 1) name += "-" + parts[1];
  std::replace_if(
      name.begin(), name.end(),
      [](char c) {
        const bool kept = (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') ||
                          (c >= '0' && c <= '9') || c == '_' || c == '-' || c == '.' || c == '+';
        return !kept;
      },
      '_');
  // keys_there() skips names with a leading dot.
  if (name.starts_with('.')) name.insert(0, "_");
  // Bounds the name: file systems take 255 bytes.
  return name.substr(0, 120) + "-" + std::string(sha256.substr(0, kKeyDigits));
}

bool same_package(std::string_view key, std::string_view other_key) {
  const auto name = [](std::string_view each) { return to_lower(each.substr(0, each.find('-'))); };
  return name(key) == name(other_key);
}

}  // namespace lockstep::setup
