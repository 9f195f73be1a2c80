#include "setup/wheel_build.h"

#include "base/text.h"
#include "codec/json_members.h"
#include "host/identity.h"
#include "io/digest.h"
#include "io/fd.h"
#include "io/own_folders.h"
#include "io/replace_file.h"
#include "setup/cpu_level.h"
#include "setup/lock_file.h"
#include "setup/spec.h"
#include "setup/tool.h"
#include "setup/wheel_file.h"
#include "setup/wheel_scratch.h"

#include <fmt/core.h>

#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <unistd.h>

#include <algorithm>
#include <chrono>
#include <filesystem>
#include <system_error>
#include <utility>

namespace lockstep::setup {
namespace {

namespace fs = std::filesystem;
using nlohmann::ordered_json;

constexpr std::size_t kMostManifest = 4UL << 20;
constexpr std::size_t kForeignKeyDigits = 32;  // a wheel that was built here has 16

// null: the variable is not set.
ordered_json variable(const char* name) {
  const char* value = getenv(name);
  return value == nullptr || *value == 0 ? ordered_json(nullptr) : ordered_json(value);
}

std::string manifest_of(const std::string& wheel) {
  return wheel + ".json";
}

std::string wheel_in(const std::string& folder) {
  std::error_code trouble;
  for (fs::directory_iterator at(folder, trouble), end; !trouble && at != end;
       at.increment(trouble))
    if (at->path().extension() == ".whl") return at->path().string();
  return {};
}

// Recognizes "x.cpp:2:10: fatal error: ...", nvcc's "nvcc fatal   : Unsupported gpu architecture",
// and the "ModuleNotFoundError: No module named 'x'" of a setup.py.
bool is_telling_error(std::string_view line) {
  const std::string_view text = strip(line);
  const std::size_t colon = text.find(':');
  if (colon != std::string_view::npos && text.substr(0, colon).ends_with("Error") &&
      text.find(' ') > colon)
    return true;
  const bool located = line.find(": error: ") != std::string_view::npos ||
                       line.find(": fatal error: ") != std::string_view::npos;
  return located || line.find("nvcc fatal") != std::string_view::npos;
}

// nullopt: no wheel is there, or its content has changed since.
std::optional<BuiltWheel> kept_wheel(const std::string& folder) {
  const std::string path = wheel_in(folder);
  if (path.empty()) return std::nullopt;
  BuiltWheel wheel{.path = path, .cached = true};
  wheel.manifest =
      codec::parse_ordered_json(io::read_file(manifest_of(path), kMostManifest).value_or(""));
  // A half-written or edited wheel must not be used: compare digests.
  const auto sha = io::sha256_of_file(path);
  if (!wheel.manifest.is_object() || !wheel.manifest.contains("sha256") || !sha ||
      wheel.manifest["sha256"] != *sha)
    return std::nullopt;
  return wheel;
}

std::string text_in(const ordered_json& manifest, const char* name) {
  const auto found = manifest.find(name);
  return found != manifest.end() && found->is_string() ? found->get<std::string>() : "";
}

bool is_plain_hex(std::string_view text) {
  return !text.empty() && text.size() <= 64 &&
         text.find_first_not_of("0123456789abcdef") == std::string_view::npos;
}

// Renames a complete draft to its place, so that readers never see a partial wheel.
Status put_in_place(const std::string& draft, const std::string& folder) {
  std::error_code trouble;
  fs::remove_all(folder, trouble);
  fs::rename(draft, folder, trouble);
  return trouble ? Status(fail_sys("make " + folder, trouble.value())) : Status();
}

class Build {
 public:
  Build(PreparedWheel prepared, const SayLine& say)
      : prepared_(std::move(prepared)), plan_(prepared_.plan), say_(say) {}
  // A build can leave gigabytes of object files behind, also after a failure.
  ~Build() { remove_scratch(prepared_.scratch); }
  Build(const Build&) = delete;
  Build& operator=(const Build&) = delete;

  Result<BuiltWheel> run(bool force) {
    const std::string top = io::cache_folder() + "/wheel-builds";
    const std::string key = key_of_wheel(plan_);
    folder_ = top + "/" + key;
    LOCKSTEP_TRY(io::make_folders(top));
    LOCKSTEP_TRY_ASSIGN(const io::Fd lock, lock_file(folder_ + ".lock", [&] {
                          say_("waiting: another lockstep builds this wheel");
                        }));
    if (!force)
      if (auto kept = kept_wheel(folder_)) return *std::move(kept);
    for (const std::string& note : prepared_.notes)
      say_("warning: " + note);
    if (prepared_.scratch.empty()) {
      LOCKSTEP_TRY_ASSIGN(prepared_.scratch, make_scratch());
    }
    LOCKSTEP_TRY(compile());
    LOCKSTEP_TRY(check());
    return keep(key);
  }

 private:
  std::string scratch(std::string_view name) const {
    return fmt::format("{}/{}", prepared_.scratch, name);
  }

  Status compile() {
    // prepare_wheel() has fetched the source only if no version names its content.
    if (prepared_.place.empty()) {
      LOCKSTEP_TRY_ASSIGN(const FetchedSource fetched,
                          fetch_source(plan_, prepared_.scratch, say_));
      prepared_.place = fetched.place;
    }
    std::string source = prepared_.place;
    // Build in a copy: setup.py writes into its own tree.
    if (plan_.source.kind == WheelSource::Kind::folder) {
      source = scratch("source/" + base_name(prepared_.place));
      LOCKSTEP_TRY(copy_source(prepared_.place, source));
    }
    variables_ = build_variables(plan_);
    std::vector<std::string> env = variables_;
    LOCKSTEP_TRY_ASSIGN(const auto compilers, compiler_variables(plan_, prepared_.scratch));
    for (const auto& more : {compilers, pip_variables()})
      env.insert(env.end(), more.begin(), more.end());
    // Outside of the scratch folder: the log must outlive a failed build.
    const std::string log_path = folder_ + ".log";
    // O_NOFOLLOW: a link with the log's name must not empty another file.
    constexpr int kLogFlags = O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC | O_NOFOLLOW;
    const io::Fd log(open(log_path.c_str(), kLogFlags, 0644));
    if (!log) return fail_sys("write " + log_path, errno);
    command_ = wheel_command(plan_, source, scratch("out"));
    say_(what_is_built(log_path));
    std::string first_error;  // later errors are only consequences
    const auto write_line = [&](std::string_view line) {
      if (first_error.empty() && is_telling_error(line)) first_error = strip(line);
      // A full disk must not fail the build for the sake of its log.
      (void)io::write_all(log.get(), std::string(line) + "\n", log_path);
    };
    // The first line lets a user repeat the build by hand.
    write_line("# " + join(variables_, " ") + " " + shell_join(command_));
    const auto began = std::chrono::steady_clock::now();
    LOCKSTEP_TRY_ASSIGN(const auto ended, run_tool({command_, env, prepared_.scratch}, write_line));
    seconds_ = std::chrono::duration<double>(std::chrono::steady_clock::now() - began).count();
    if (ended.code == 0) return {};
    return fail(
        Errc::unavailable,
        fmt::format("the build failed with code {}: {}", ended.code,
                    printable(first_error.empty() ? telling_line(ended.tail) : first_error)),
        "the full output is in " + log_path);
  }

  std::string what_is_built(const std::string& log) const {
    std::string text = fmt::format("building {}", printable(plan_.source.text));
    std::vector<std::string> names;
    for (const Op& op : plan_.ops)
      names.push_back(op.name);
    if (!names.empty()) text += " with " + join(names, ", ");
    if (!plan_.python.torch.empty()) text += " for PyTorch " + printable(plan_.python.torch);
    if (!plan_.archs.empty()) text += ", GPUs " + archs_text(plan_.archs);
    return text + fmt::format(", CPUs {}; its log is {}", isa_text(plan_.level), log);
  }

  // A build may succeed without building an op, for example because a variable did not reach
  // setup.py. Such a wheel must not count as built.
  Status check() {
    built_ = wheel_in(scratch("out"));
    if (built_.empty())
      return fail(Errc::unavailable, "the build made no wheel",
                  "the full output is in " + folder_ + ".log");
    LOCKSTEP_TRY_ASSIGN(file_, read_wheel(plan_.python.python, built_));
    if (plan_.ops.empty()) return {};
    const std::string log = "the full output is in " + folder_ + ".log";
    if (file_.pure || file_.libraries.empty())
      return fail(Errc::unavailable,
                  fmt::format("{} is pure Python: none of the ops was built", file_.file), log);
    for (const Op& op : plan_.ops)
      if (file_.knows_ops &&
          std::find(file_.ops.begin(), file_.ops.end(), op.name) == file_.ops.end())
        return fail(
            Errc::unavailable,
            fmt::format("{} was not built: the op reports itself incompatible with this node",
                        op.name),
            log);
    return {};
  }

  ordered_json manifest(const std::string& key, const std::string& sha) const {
    std::vector<std::string> ops;
    for (const Op& op : plan_.ops)
      ops.push_back(op.name);
    const auto release = [](const std::optional<Release>& each) {
      return each ? ordered_json(release_text(*each)) : ordered_json(nullptr);
    };
    const std::string changed = io::read_file(scratch("changed")).value_or("");
    std::error_code trouble;
    return {{"wheel", file_.file},
            {"sha256", sha},
            {"bytes", fs::file_size(built_, trouble)},
            {"key", key},
            {"name", file_.name},
            {"version", file_.version},
            {"modules", file_.modules},
            {"libraries", file_.libraries},
            {"ops", ops},
            {"ops_built", file_.ops},
            {"source", plan_.source.text},
            {"content", plan_.content},
            {"python", plan_.python.version},
            {"tag", plan_.python.tag},
            {"libc", plan_.python.libc},
            {"torch", plan_.python.torch},
            {"torch_cuda", plan_.python.torch_cuda},
            {"nvcc", release(plan_.tools.cuda)},
            {"gcc", release(plan_.tools.gcc_version)},
            {"arch", archs_text(plan_.archs)},
            {"isa", isa_text(plan_.level)},
            {"isa_changed", std::count(changed.begin(), changed.end(), '\n')},
            {"variables", variables_},
            {"given", plan_.given},
            {"command", command_},
            {"host", host::hostname()},
            {"slurm_job", variable("SLURM_JOB_ID")},
            {"slurm_partition", variable("SLURM_JOB_PARTITION")},
            {"seconds", seconds_}};
  }

  Result<BuiltWheel> keep(const std::string& key) {
    BuiltWheel wheel;
    LOCKSTEP_TRY_ASSIGN(const std::string sha, io::sha256_of_file(built_));
    wheel.manifest = manifest(key, sha);
    std::string draft = folder_ + ".new-XXXXXX";
    if (mkdtemp(draft.data()) == nullptr) return fail_sys("make " + draft, errno);
    // fs::copy_file instead of a rename: scratch may lie on another file system than the cache.
    const std::string path = draft + "/" + file_.file;
    std::error_code trouble;
    fs::copy_file(built_, path, trouble);
    // The log belongs to the wheel from now on.
    if (!trouble) fs::rename(folder_ + ".log", draft + "/build.log", trouble);
    if (trouble) {
      const int code = trouble.value();
      fs::remove_all(draft, trouble);
      return fail_sys("make " + path, code);
    }
    LOCKSTEP_TRY(io::write_file(manifest_of(path), codec::print_json(wheel.manifest) + "\n"));
    LOCKSTEP_TRY(put_in_place(draft, folder_));
    wheel.path = folder_ + "/" + file_.file;
    return wheel;
  }

  PreparedWheel prepared_;
  const WheelPlan& plan_;
  const SayLine& say_;
  std::string folder_;
  std::vector<std::string> variables_;
  std::vector<std::string> command_;
  double seconds_ = 0;
  std::string built_;
  WheelFile file_;
};

}  // namespace

Result<BuiltWheel> build_wheel(const WheelRequest& request, const SayLine& say) {
  LOCKSTEP_TRY_ASSIGN(PreparedWheel prepared, prepare_wheel(request, say));
  return Build(std::move(prepared), say).run(request.force);
}

Result<BuiltWheel> seen_wheel(const ordered_json& manifest) {
  const std::string path = text_in(manifest, "path");
  auto wheel = kept_wheel(fs::path(path).parent_path().string());
  if (!wheel || wheel->path != path || wheel->manifest["sha256"] != text_in(manifest, "sha256"))
    return fail(Errc::unavailable,
                fmt::format("the wheel is on {} at {}, a path that this node does not see",
                            printable(text_in(manifest, "host")), printable(path)),
                "set XDG_CACHE_HOME to a folder that all nodes see");
  wheel->cached = codec::flag_member(manifest, "cached");
  return *std::move(wheel);
}

Result<BuiltWheel> keep_foreign_wheel(ordered_json manifest, const std::string& bytes,
                                      const std::string& host) {
  const std::string name = text_in(manifest, "wheel");
  const std::string told = text_in(manifest, "key");
  // The host's names become paths here: they must not lead out of the cache.
  if (!name.ends_with(".whl") || name.starts_with('.') || name.find('/') != std::string::npos ||
      !is_plain_hex(told))
    return fail(Errc::corrupt,
                fmt::format("the description of the wheel from {} is unreadable", host));
  // The remote host chooses `told`. io::Digest it with the host's name, so that a host cannot
  // replace a wheel of another host or of this machine.
  io::Digest digest;
  digest.add(host);
  digest.add(told);
  const std::string key = digest.hex().substr(0, kForeignKeyDigits);
  manifest["key"] = key;
  const std::string top = io::cache_folder() + "/wheel-builds";
  LOCKSTEP_TRY(io::make_folders(top));
  std::string draft = fmt::format("{}/{}.new-XXXXXX", top, key);
  if (mkdtemp(draft.data()) == nullptr) return fail_sys("make " + draft, errno);
  std::error_code trouble;
  // Paths on the other host mean nothing here.
  manifest.erase("path");
  manifest["built_on"] = host;
  const auto fill = [&]() -> Status {
    LOCKSTEP_TRY(io::write_file(draft + "/" + name, bytes));
    LOCKSTEP_TRY_ASSIGN(const std::string sha, io::sha256_of_file(draft + "/" + name));
    if (sha != text_in(manifest, "sha256"))
      return fail(Errc::corrupt, fmt::format("the wheel from {} is damaged", host),
                  "build it again");
    LOCKSTEP_TRY(
        io::write_file(manifest_of(draft + "/" + name), codec::print_json(manifest) + "\n"));
    return put_in_place(draft, top + "/" + key);
  };
  if (const Status filled = fill(); !filled) {
    fs::remove_all(draft, trouble);
    return Failure(filled.error());
  }
  const bool cached = codec::flag_member(manifest, "cached");
  return BuiltWheel{top + "/" + key + "/" + name, cached, std::move(manifest)};
}

Result<std::string> copy_wheel(const BuiltWheel& wheel, const std::string& folder) {
  std::error_code trouble;
  fs::create_directories(folder, trouble);
  // Keep the file's name: pip reads version and tags from it.
  const std::string path = (fs::path(folder) / base_name(wheel.path)).string();
  for (const auto& [from, to] :
       {std::pair{wheel.path, path}, std::pair{manifest_of(wheel.path), manifest_of(path)}}) {
    fs::copy_file(from, to, fs::copy_options::overwrite_existing, trouble);
    if (trouble) return fail_sys("write " + to, trouble.value());
  }
  return path;
}

}  // namespace lockstep::setup
