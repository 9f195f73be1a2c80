#include "setup/wheel_plan.h"

#include "base/text.h"
#include "codec/json.h"
#include "io/digest.h"
#include "setup/cpu_level.h"

#include <fmt/core.h>

#include <algorithm>
#include <array>
#include <optional>
#include <utility>

namespace lockstep::setup {
namespace {

constexpr std::string_view kDeepSpeed = "deepspeed";
constexpr std::string_view kPrefix = "DS_BUILD_";
constexpr std::string_view kAllOps = "DS_BUILD_OPS";
constexpr int kFormat = 1;  // version of the cache's layout, part of every key
constexpr std::size_t kKeyDigits = 16;
constexpr std::size_t kMostOps = 500;
// Memory for one compiler on PyTorch's headers, in bytes.
constexpr std::int64_t kMemoryOfACompiler = std::int64_t{2} << 30;

// Ops whose variable is not DS_BUILD_ and the name in capitals.
constexpr std::array<std::pair<std::string_view, std::string_view>, 4> kOtherNames = {
    {{"async_io", "AIO"},
     {"dc", "DEEP_COMPILE"},
     {"deepspeed_ccl_comm", "CCL_COMM"},
     {"deepspeed_shm_comm", "SHM_COMM"}}};
constexpr std::array<std::string_view, 22> kOps = {"cpu_adagrad",
                                                   "cpu_adam",
                                                   "cpu_lion",
                                                   "evoformer_attn",
                                                   "fp_quantizer",
                                                   "fused_adam",
                                                   "fused_lamb",
                                                   "fused_lion",
                                                   "gds",
                                                   "pin_memory",
                                                   "inference_core_ops",
                                                   "quantizer",
                                                   "ragged_ops",
                                                   "ragged_device_ops",
                                                   "random_ltd",
                                                   "sparse_attn",
                                                   "spatial_inference",
                                                   "stochastic_transformer",
                                                   "transformer",
                                                   "utils",
                                                   "transformer_inference",
                                                   "cutlass_ops"};

// Accepts only the characters of a version, so that the text cannot be an option of pip.
bool is_version(std::string_view text) {
  return !text.empty() && text.front() >= '0' && text.front() <= '9' &&
         std::all_of(text.begin(), text.end(), [](char c) {
           return (c >= '0' && c <= '9') || (c >= 'a' && c <= 'z') || c == '.' || c == '+' ||
                  c == '!';
         });
}

bool is_url(std::string_view text) {
  for (const std::string_view scheme :
       {"https://", "http://", "git+https://", "git+ssh://", "git+file://", "file://"})
    if (text.starts_with(scheme) && text.size() > scheme.size()) return true;
  return false;
}

// Returns the text of `NAME = "x"`. Empty: the line is something else.
std::string value_of(std::string_view line, std::string_view name) {
  std::string_view rest = strip(line);
  if (!rest.starts_with(name)) return {};
  rest = strip(rest.substr(name.size()));
  if (!rest.starts_with('=')) return {};
  rest = strip(rest.substr(1));
  if (rest.size() < 2 || (rest.front() != '"' && rest.front() != '\'')) return {};
  const std::size_t end = rest.find(rest.front(), 1);
  return end == std::string_view::npos ? "" : std::string(rest.substr(1, end - 1));
}

bool is_called(const Op& op, const std::string& given) {
  const std::string word = to_upper(given);
  return given == op.name || word == op.variable || std::string(kPrefix) + word == op.variable;
}

// Returns true if build_variables() sets DS_BUILD_OPS and so overrides the environment.
bool decides_all_ops(const WheelPlan& plan) {
  return !plan.ops.empty() || plan.source.is_deepspeed();
}

}  // namespace

Result<WheelSource> read_wheel_source(std::string_view text) {
  WheelSource source{.text = std::string(text)};
  const auto refuse = [&](std::string_view why) {
    return fail(
        Errc::invalid_input, fmt::format("'{}' {}", printable(text), why),
        "write a folder, a URL, deepspeed, deepspeed==0.16.5, deepspeed@DIR or deepspeed@URL");
  };
  if (text.empty() || text.find('\0') != std::string_view::npos) return refuse("names nothing");
  if (is_url(text)) {
    source.kind = WheelSource::Kind::url;
    source.place = source.text;
    // A repository with the package's name, such as
    // "git+https://github.com/microsoft/DeepSpeed@v0.16.5".
    std::string last(text.substr(text.rfind('/') + 1));
    last = to_lower(last.substr(0, last.find_first_of("@#")));
    if (last == kDeepSpeed || last == "deepspeed.git") source.name = kDeepSpeed;
    return source;
  }
  // deepspeed/src is a path; deepspeed@/src is the package from a path.
  if (!text.starts_with(kDeepSpeed) || text.find('/') < text.find_first_of("@=")) {
    source.place = source.text;
    return source;
  }
  const std::string_view rest = text.substr(kDeepSpeed.size());
  source.name = kDeepSpeed;
  if (rest.empty()) {
    source.kind = WheelSource::Kind::index;
  } else if (rest.starts_with("==")) {
    source.kind = WheelSource::Kind::index;
    source.version = rest.substr(2);
    if (!is_version(source.version)) return refuse("has no version behind ==");
  } else if (rest.starts_with('@')) {
    source.place = rest.substr(1);
    if (source.place.empty()) return refuse("has nothing behind @");
    source.kind = is_url(source.place) ? WheelSource::Kind::url : WheelSource::Kind::folder;
    if (source.kind == WheelSource::Kind::folder && source.place.find("://") != std::string::npos)
      return refuse("is not a URL for pip");
    // A folder whose name only begins like the package, such as deepspeed-fork.
  } else {
    source.name.clear();
    source.place = source.text;
  }
  return source;
}

std::vector<Op> deepspeed_ops() {
  std::vector<Op> ops;
  ops.reserve(kOtherNames.size() + kOps.size());
  for (const auto& [name, variable] : kOtherNames)
    ops.push_back({std::string(name), std::string(kPrefix) + std::string(variable)});
  for (const std::string_view name : kOps)
    ops.push_back({std::string(name), std::string(kPrefix) + to_upper(name)});
  return ops;
}

std::vector<Op> ops_in(std::string_view python_source) {
  std::vector<Op> ops;
  Op op;
  for (const std::string& line : split(python_source, '\n')) {
    // An op is a class, with NAME and BUILD_VAR in either order.
    if (line.starts_with("class ")) op = {};
    if (std::string found = value_of(line, "BUILD_VAR"); !found.empty())
      op.variable = std::move(found);
    if (std::string found = value_of(line, "NAME"); !found.empty()) op.name = std::move(found);
    if (op.name.empty() || !op.variable.starts_with(kPrefix) || ops.size() == kMostOps) continue;
    // Classes without a build variable are helpers, not ops.
    ops.push_back(std::exchange(op, {}));
  }
  return ops;
}

Result<std::vector<Op>> choose_ops(std::string_view given, const std::vector<Op>& known) {
  std::vector<Op> chosen;
  std::vector<std::string> names;
  names.reserve(known.size());
  for (const Op& each : known)
    names.push_back(each.name);
  std::sort(names.begin(), names.end());
  names.erase(std::unique(names.begin(), names.end()), names.end());
  for (const std::string& word : split(given, ',')) {
    const std::string name(strip(word));
    if (name.empty()) continue;
    const auto found =
        std::find_if(known.begin(), known.end(), [&](const Op& op) { return is_called(op, name); });
    if (found == known.end()) {
      const auto near = did_you_mean(to_lower(name), names);
      return fail(Errc::invalid_input,
                  fmt::format("there is no op '{}'{}", printable(name),
                              near ? fmt::format("; did you mean {}?", *near) : ""),
                  "there is " + join(names, ", "));
    }
    if (std::find(chosen.begin(), chosen.end(), *found) == chosen.end()) chosen.push_back(*found);
  }
  if (chosen.empty())
    return fail(Errc::invalid_input, "--ops names no op", "there is " + join(names, ", "));
  std::sort(chosen.begin(), chosen.end(), [](const Op& a, const Op& b) { return a.name < b.name; });
  return chosen;
}

bool concerns_builds(std::string_view name) {
  for (const std::string_view each :
       {"CC", "CXX", "CFLAGS", "CXXFLAGS", "CPPFLAGS", "LDFLAGS", "CUDA_HOME", "CUDA_PATH",
        "CUTLASS_PATH", "NVCC_PREPEND_FLAGS", "NVCC_APPEND_FLAGS", "PYTORCH_ROCM_ARCH", "CPATH",
        "LIBRARY_PATH"})
    if (name == each) return true;
  return name.starts_with("DS_");
}

std::vector<std::string> ops_of_environment(const WheelPlan& plan) {
  std::vector<std::string> asked;
  for (const std::string& each : plan.given) {
    const std::string name = each.substr(0, each.find('='));
    const bool chosen = std::any_of(plan.ops.begin(), plan.ops.end(),
                                    [&](const Op& op) { return op.variable == name; });
    if (!name.starts_with(kPrefix) || chosen || (name == kAllOps && decides_all_ops(plan)))
      continue;
    // DeepSpeed reads a number ("1", "2"). DS_BUILD_STRING is text, a part of the version.
    if (each.size() > name.size() && parse_int(each.substr(name.size() + 1)).value_or(0) != 0)
      asked.push_back(each);
  }
  std::sort(asked.begin(), asked.end());
  return asked;
}

std::vector<std::string> build_variables(const WheelPlan& plan) {
  std::vector<std::string> variables;
  const auto is_given = [&](std::string_view name) {
    return std::any_of(plan.given.begin(), plan.given.end(), [&](const std::string& each) {
      return each.size() > name.size() && each.starts_with(name) && each[name.size()] == '=';
    });
  };
  // DS_BUILD_OPS=0 turns off all ops except those with a variable of their own.
  if (decides_all_ops(plan)) variables.push_back(std::string(kAllOps) + "=0");
  for (const Op& op : plan.ops)
    variables.push_back(op.variable + "=1");
  if (!plan.archs.empty()) variables.push_back("TORCH_CUDA_ARCH_LIST=" + archs_text(plan.archs));
  // PyTorch's cpp_extension reads MAX_JOBS. DeepSpeed uses ninja, and so compiles in parallel, only
  // if DS_ENABLE_NINJA asks for it.
  variables.push_back(fmt::format("MAX_JOBS={}", plan.jobs));
  if (!plan.ninja.empty() && !is_given("DS_ENABLE_NINJA"))
    variables.emplace_back("DS_ENABLE_NINJA=1");
  return variables;
}

// The key must contain everything that changes the compiled code, but neither jobs nor ninja.
std::string key_text(const WheelPlan& plan) {
  using nlohmann::json;
  json ops = json::array();
  for (const Op& op : plan.ops)
    ops.push_back(op.variable);
  std::vector<std::string> given = plan.given;
  std::sort(given.begin(), given.end());
  const auto text = [](const std::optional<Release>& release) {
    return release ? release_text(*release) : "";
  };
  return codec::print_json(json{{"format", kFormat},
                                {"name", plan.source.name},
                                {"content", plan.content},
                                {"ops", std::move(ops)},
                                {"python", plan.python.tag},
                                {"version", plan.python.version},
                                {"libc", plan.python.libc},
                                {"torch", plan.python.torch},
                                {"torch_cuda", plan.python.torch_cuda},
                                {"torch_hip", plan.python.torch_hip},
                                {"gcc", text(plan.tools.gcc_version)},
                                {"nvcc", text(plan.tools.cuda)},
                                {"archs", archs_text(plan.archs)},
                                {"isa", plan.level == kNative ? plan.cpu : isa_text(plan.level)},
                                {"given", given}});
}

std::string key_of_wheel(const WheelPlan& plan) {
  return io::digest_of(key_text(plan)).substr(0, kKeyDigits);
}

int build_jobs(std::int64_t cpus, std::int64_t memory) {
  const std::int64_t fit = std::max<std::int64_t>(memory / kMemoryOfACompiler, 1);
  return static_cast<int>(std::clamp<std::int64_t>(cpus, 1, std::min<std::int64_t>(fit, 64)));
}

}  // namespace lockstep::setup
