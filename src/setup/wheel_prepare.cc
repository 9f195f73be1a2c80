// Prepares the build of a wheel: chooses source, ops, Python, architectures and level, and refuses
// what cannot work before anything is compiled.

#include "base/environment.h"
#include "base/text.h"
#include "host/facts.h"
#include "host/sysfs.h"
#include "io/digest.h"
#include "io/fd.h"
#include "setup/cpu_level.h"
#include "setup/inputs.h"
#include "setup/node_ability.h"
#include "setup/places.h"
#include "setup/tool.h"
#include "setup/toolchain_probe.h"
#include "setup/wheel_build.h"
#include "setup/wheel_scratch.h"

#include <fmt/core.h>

#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <filesystem>
#include <optional>
#include <system_error>
#include <utility>

namespace lockstep::setup {
namespace {

namespace fs = std::filesystem;

constexpr std::size_t kMostOpFiles = 500;
constexpr int kUsualLevel = 3;  // CPUs of nodes used for training have at least this level

bool is_there(const std::string& path) {
  return access(path.c_str(), F_OK) == 0;
}

class Preparation {
 public:
  Preparation(const WheelRequest& request, const SayLine& say) : request_(request), say_(say) {}

  Result<PreparedWheel> run() {
    LOCKSTEP_TRY_ASSIGN(plan().source, read_wheel_source(request_.source));
    if (plan().source.kind == WheelSource::Kind::folder) LOCKSTEP_TRY(find_folder());
    LOCKSTEP_TRY(choose_the_ops());
    LOCKSTEP_TRY_ASSIGN(const std::string python, choose_python(request_.python));
    LOCKSTEP_TRY_ASSIGN(plan().python, ask_python(python));
    plan().tools = probe_toolchain(plan().python);
    leave_out_utils();
    LOCKSTEP_TRY(check_python());
    LOCKSTEP_TRY(check_tools());
    LOCKSTEP_TRY(choose_archs());
    LOCKSTEP_TRY(choose_level());
    // All variables that builds read become part of the cache key.
    for (char** entry = environ; *entry != nullptr; ++entry) {
      const std::string each(*entry);
      if (concerns_builds(each.substr(0, each.find('=')))) plan().given.push_back(each);
    }
    plan().ninja = find_program("ninja");
    // Under a cgroup limit the host's free memory says too much.
    const host::Facts here = host::gather_facts("", [](const auto&) { return std::nullopt; });
    const std::int64_t memory = here.memory_limit > 0
                                    ? std::min(here.memory_limit, here.memory_available)
                                    : here.memory_available;
    // --jobs wins over MAX_JOBS; without both, as many compilers as fit.
    plan().jobs = static_cast<int>(parse_int(env_text("MAX_JOBS")).value_or(0));
    if (request_.jobs > 0) plan().jobs = request_.jobs;
    if (plan().jobs < 1) plan().jobs = build_jobs(here.cpus, memory);
    LOCKSTEP_TRY(choose_content());
    return std::move(prepared_);
  }

 private:
  WheelPlan& plan() { return prepared_.plan; }

  Status find_folder() {
    prepared_.place = plain_folder(plan().source.place);
    struct stat info {};
    if (stat(prepared_.place.c_str(), &info) != 0 || !S_ISDIR(info.st_mode))
      return fail(Errc::invalid_input,
                  fmt::format("there is no folder {}", printable(prepared_.place)),
                  "write a folder, deepspeed, deepspeed==0.16.5, deepspeed@DIR or deepspeed@URL");
    if (!is_there(prepared_.place + "/setup.py") && !is_there(prepared_.place + "/pyproject.toml"))
      return fail(
          Errc::invalid_input,
          fmt::format("{} has neither setup.py nor pyproject.toml", printable(prepared_.place)),
          "give the top folder of a Python project");
    return {};
  }

  // A folder's op_builder defines which ops it has.
  Status choose_the_ops() {
    if (request_.ops.empty()) return {};
    std::vector<Op> known;
    if (prepared_.place.empty()) {
      known = deepspeed_ops();
    } else {
      known = ops_of_folder(prepared_.place + "/op_builder");
      if (known.empty())
        return fail(Errc::invalid_input,
                    fmt::format("{} has no op_builder folder with DeepSpeed's build variables",
                                printable(prepared_.place)),
                    "leave out --ops: other projects always build everything");
    }
    LOCKSTEP_TRY_ASSIGN(plan().ops, choose_ops(request_.ops, known));
    return {};
  }

  static std::vector<Op> ops_of_folder(const std::string& folder) {
    std::vector<Op> ops;
    std::size_t files = 0;
    std::error_code trouble;
    fs::recursive_directory_iterator at(folder, trouble);
    for (; !trouble && at != fs::recursive_directory_iterator() && files < kMostOpFiles;
         at.increment(trouble)) {
      if (at->path().extension() != ".py") continue;
      ++files;
      for (Op& op : ops_in(io::read_file(at->path().string()).value_or("")))
        if (std::find(ops.begin(), ops.end(), op) == ops.end()) ops.push_back(std::move(op));
    }
    return ops;
  }

  // DeepSpeed's list of ops for CPUs (op_builder/cpu) has no "utils", and its setup.py skips the op
  // silently.
  void leave_out_utils() {
    if (plan().python.torch.empty() || !plan().python.torch_cuda.empty() ||
        !plan().python.torch_hip.empty())
      return;
    // Say so instead of failing later because the op is missing.
    if (std::erase_if(plan().ops, [](const Op& op) { return op.name == "utils"; }) > 0)
      prepared_.notes.emplace_back(
          "the op utils is left out: this PyTorch has neither CUDA nor ROCm, and DeepSpeed does "
          "not "
          "build it there");
  }

  Status check_python() const {
    const PythonFacts& python = prepared_.plan.python;
    if (python.pip.empty())
      return fail(Errc::unavailable, python.python + " has no pip, which builds wheels",
                  "install pip there (python3-pip), or name another Python with --python PATH");
    if (python.setuptools.empty())
      return fail(Errc::unavailable, python.python + " has no setuptools",
                  "install setuptools and wheel there, or name another with --python PATH");
    return {};
  }

  // With ops, findings stop the build that are only a warning for doctor: every op needs PyTorch, a
  // compiler and Python.h.
  Status check_tools() {
    for (const Finding& each : findings_of(plan().tools)) {
      const bool stops =
          each.what == "no-torch" || each.what == "no-gcc" || each.what == "no-python-headers";
      if (each.trouble || (stops && !plan().ops.empty()))
        return fail(Errc::unavailable, each.text, each.cure);
      prepared_.notes.push_back(each.text + "; " + each.cure);
    }
    return {};
  }

  Status choose_archs() {
    const bool is_auto = request_.arch.empty() || request_.arch == "auto";
    const std::string given = is_auto ? env_text("TORCH_CUDA_ARCH_LIST") : request_.arch;
    std::vector<Arch> archs;
    if (!given.empty()) {
      LOCKSTEP_TRY_ASSIGN(archs, read_archs(given));
    }
    const Toolchain& tools = plan().tools;
    if (!tools.torch_cuda || !tools.cuda) {
      if (!given.empty())
        prepared_.notes.push_back(
            fmt::format("GPU architectures are ignored here: {}",
                        tools.torch_cuda ? "there is no nvcc" : "PyTorch is built without CUDA"));
      return {};
    }
    if (archs.empty()) {
      // Without --arch, build for this machine's GPUs.
      for (const int each : capabilities_here())
        archs.push_back({each});
    }
    if (archs.empty())
      return fail(Errc::invalid_input, "no GPU was found here to take the architecture from",
                  "give --arch with the nodes' architectures, as 8.0;9.0");
    LOCKSTEP_TRY(check_archs(archs, *tools.cuda));
    plan().archs = std::move(archs);
    return {};
  }

  Status choose_level() {
    LOCKSTEP_TRY_ASSIGN(const int wanted,
                        request_.isa.empty() ? Result<int>(kUsualLevel) : read_isa(request_.isa));
    const std::string cpus = io::read_file("/proc/cpuinfo", 64UL << 20).value_or("");
    const int here = cpu_level_in(cpus);
    plan().level = wanted == kNative || here == kNative ? kNative : std::min(wanted, here);
    if (plan().level == kNative) {
      // Identifies this kind of CPU in the cache key.
      const std::size_t at = cpus.find("flags");
      plan().cpu = io::digest_of(at == std::string::npos
                                     ? std::string_view(cpus)
                                     : std::string_view(cpus).substr(at, cpus.find('\n', at) - at));
    }
    if (wanted != kNative && here == kNative && !request_.isa.empty())
      prepared_.notes.emplace_back("--isa is ignored here: this CPU is not x86-64");
    return {};
  }

  // A version never changes its content. Other names and URLs must be fetched to know today's
  // content.
  Status choose_content() {
    const WheelSource& source = plan().source;
    if (source.kind == WheelSource::Kind::folder) {
      LOCKSTEP_TRY_ASSIGN(plan().content, digest_of_path(prepared_.place));
      return {};
    }
    if (!source.version.empty()) {
      plan().content = source.name + "==" + source.version;
      return {};
    }
    LOCKSTEP_TRY_ASSIGN(prepared_.scratch, make_scratch());
    auto fetched = fetch_source(plan(), prepared_.scratch, say_);
    if (!fetched) {
      remove_scratch(prepared_.scratch);
      return Failure(fetched.error());
    }
    prepared_.place = std::move(fetched->place);
    // Use the commit as content: pip packs a repository anew with new file times, so the archive's
    // digest changes each time.
    if (!fetched->commit.empty()) {
      plan().content = source.place + " " + fetched->commit;
      return {};
    }
    io::Digest digest;
    LOCKSTEP_TRY(digest.add_file(prepared_.place));
    plan().content = digest.hex();
    return {};
  }

  const WheelRequest& request_;
  const SayLine& say_;
  PreparedWheel prepared_;
};

}  // namespace

Result<PreparedWheel> prepare_wheel(const WheelRequest& request, const SayLine& say) {
  return Preparation(request, say).run();
}

std::vector<std::string> shown_command(const PreparedWheel& prepared) {
  const std::string place = prepared.place.empty() ? prepared.plan.source.text : prepared.place;
  return wheel_command(prepared.plan, place, "OUT");
}

}  // namespace lockstep::setup
