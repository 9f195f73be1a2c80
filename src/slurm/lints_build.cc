// Lints for builds of extensions and their compilers.
#include "base/text.h"
#include "setup/gpu_table.h"
#include "setup/toolchain.h"
#include "slurm/gpu_arch.h"
#include "slurm/lint_rows.h"

#include <fmt/core.h>

#include <algorithm>
#include <array>
#include <cctype>
#include <cstdint>
#include <set>

namespace lockstep::slurm {
namespace {

bool is_build_variable(std::string_view name) {
  static const std::set<std::string_view> kNames = {"TORCH_CUDA_ARCH_LIST",
                                                    "MAX_JOBS",
                                                    "CUDA_HOME",
                                                    "CC",
                                                    "CXX",
                                                    "NVCC",
                                                    "CFLAGS",
                                                    "CXXFLAGS",
                                                    "LDFLAGS",
                                                    "FORCE_CUDA",
                                                    "NVCC_FLAGS",
                                                    "CUDAHOSTCXX",
                                                    "TORCH_EXTENSIONS_DIR"};
  return name.starts_with("DS_") || kNames.contains(name);
}

// Returns whether a command builds something: "python setup.py ...", "pip install ...", "python -m
// build", make, ninja. srun counts, because it often runs the build.
bool is_build(const ShellCommand& command) {
  if (command.words.empty()) return false;
  std::string text = join(command.words, " ");
  const std::string_view name = base_name(command.words.front());
  const bool python = name.starts_with("python");
  const bool pip = name.starts_with("pip") || name == "uv" ||
                   (python && text.find(" -m pip ") != std::string::npos);
  if (pip)
    return text.find(" install") != std::string::npos || text.find(" wheel") != std::string::npos;
  if (python)
    return text.find("setup.py") != std::string::npos ||
           text.find(" -m build") != std::string::npos;
  return name == "make" || name == "ninja" || name == "cmake" || name == "srun";
}

// Returns the next build below a command, with only assignments and cd between; nullptr: none.
const ShellCommand* build_behind(const JobScript& script, std::size_t at) {
  for (std::size_t i = at + 1; i < script.commands.size(); ++i) {
    const ShellCommand& next = script.commands[i];
    if (next.words.empty()) continue;
    if (next.words.front() == "cd") continue;
    return is_build(next) && next.words.front() != "srun" ? &next : nullptr;
  }
  return nullptr;
}

bool builds(const JobScript& script) {
  return std::any_of(script.commands.begin(), script.commands.end(), [](const ShellCommand& each) {
    return is_build(each) && base_name(each.words.front()) != "srun";
  });
}

// Returns whether a build compiles CUDA code: DeepSpeed's operators, flash-attention and the like.
bool builds_cuda(const JobScript& script) {
  for (const auto& [name, variable] : script.variables)
    if (name.starts_with("DS_BUILD_")) return builds(script);
  for (const ShellCommand& each : script.commands) {
    if (!is_build(each)) continue;
    for (const std::string& word : each.assignments)
      if (word.starts_with("DS_BUILD_") || word.starts_with("TORCH_CUDA_ARCH_LIST")) return true;
    for (const std::string& word : each.words)
      if (word.starts_with("flash-attn") || word.find("apex") != std::string::npos) return true;
  }
  return false;
}

// Returns the version in `module load cuda/12.4` and its line; empty: not loaded.
struct Version {
  std::string text;
  int line = 0;
};
Version loaded_module(const JobScript& script, std::string_view name) {
  Version found;
  for (const ShellCommand& each : script.commands) {
    if (each.words.empty() || (each.words.front() != "module" && each.words.front() != "ml"))
      continue;
    for (const std::string& word : each.words) {
      const std::string lower = to_lower(word);
      const std::size_t slash = lower.find('/');
      if (slash == std::string::npos) continue;
      const std::string_view module = std::string_view(lower).substr(0, slash);
      const std::string_view version = std::string_view(lower).substr(slash + 1);
      if (module == name && !version.empty() &&
          std::isdigit(static_cast<unsigned char>(version[0])) != 0)
        found = {std::string(version), each.line};
    }
  }
  return found;
}

// Returns "12" for `update-alternatives --set gcc /usr/bin/gcc-12`. The last --set counts. Without
// --set, the system takes the --install with the highest priority, which is the last word.
Version chosen_alternative(const JobScript& script) {
  Version installed;
  std::int64_t highest = INT64_MIN;
  Version set;
  for (const ShellCommand& each : script.commands) {
    const auto tool = std::find_if(each.words.begin(), each.words.end(), [](const auto& word) {
      return base_name(word) == "update-alternatives";
    });
    std::int64_t priority = INT64_MIN;
    Version compiler;
    for (auto word = tool; word != each.words.end() && *word != "--slave"; ++word) {
      const std::string_view base = base_name(*word);
      if (base.starts_with("gcc-") || base.starts_with("g++-"))
        compiler = {std::string(base.substr(4)), each.line};
      else if (const auto number = parse_int(*word))
        priority = *number;
    }
    if (compiler.text.empty()) continue;
    if (std::find(tool, each.words.end(), "--set") != each.words.end()) {
      set = compiler;
    } else if (priority > highest) {
      installed = compiler;
      highest = priority;
    }
  }
  return set.text.empty() ? installed : set;
}

// Returns "7" for CC=gcc-7 or CXX=g++-7.
Version named_compiler(const JobScript& script) {
  for (const std::string_view name : {"CXX", "CC", "CUDAHOSTCXX"}) {
    const auto variable = script.variables.find(name);
    if (variable == script.variables.end()) continue;
    const std::string& value = variable->second.value;
    const std::size_t dash = value.rfind('-');
    const std::string_view base = base_name(value);
    if (dash != std::string::npos && (base.starts_with("gcc-") || base.starts_with("g++-")))
      return {value.substr(dash + 1), variable->second.line};
  }
  return chosen_alternative(script);
}

// Returns TORCH_CUDA_ARCH_LIST and its line, from a variable or an assignment in front of a
// command.
std::string list_of_arch(const JobScript& script, int& line) {
  const auto variable = script.variables.find("TORCH_CUDA_ARCH_LIST");
  if (variable != script.variables.end()) {
    line = variable->second.line;
    return variable->second.value;
  }
  for (const ShellCommand& each : script.commands)
    for (const std::string& word : each.assignments)
      if (word.starts_with("TORCH_CUDA_ARCH_LIST=")) {
        line = each.line;
        return word.substr(21);
      }
  return {};
}

}  // namespace

// Assignments without export or a command are shell variables, and a build does not inherit those.
void look_build_assignments(const JobScript& script, const CheckFacts& /*facts*/, Findings& found) {
  for (std::size_t i = 0; i < script.commands.size(); ++i) {
    const ShellCommand& each = script.commands[i];
    if (!each.words.empty()) continue;
    std::vector<std::string> lost;
    for (const std::string& word : each.assignments) {
      std::string name = word.substr(0, word.find('='));
      const auto variable = script.variables.find(name);
      const bool exported = variable != script.variables.end() && variable->second.exported;
      if (is_build_variable(name) && !exported) lost.push_back(std::move(name));
    }
    const ShellCommand* build = lost.empty() ? nullptr : build_behind(script, i);
    if (build == nullptr) continue;
    found.add(each.line,
              fmt::format("{} {} set for this shell alone", join(lost, ", "),
                          lost.size() == 1 ? "is" : "are"),
              fmt::format("the build in line {} does not see {}, and builds without", build->line,
                          lost.size() == 1 ? "it" : "them"),
              "end the line with a backslash, or write export in front");
  }
}

// Users take DS_BUILD_UTILS for NVMe offload. The operator for NVMe is AIO.
void look_utils_for_nvme(const JobScript& script, const CheckFacts& facts, Findings& found) {
  const auto is_on = [&script](std::string_view name) {
    const auto variable = script.variables.find(name);
    if (variable != script.variables.end()) return variable->second.value == "1";
    const std::string text = fmt::format("{}=1", name);
    for (const ShellCommand& each : script.commands)
      if (std::find(each.assignments.begin(), each.assignments.end(), text) !=
          each.assignments.end())
        return true;
    return false;
  };
  if (!is_on("DS_BUILD_UTILS") || is_on("DS_BUILD_AIO") || is_on("DS_BUILD_OPS") ||
      is_on("DS_BUILD_GDS"))
    return;
  int line = 0;
  bool nvme = false;
  for (const ShellCommand& each : script.commands) {
    for (const auto* words : {&each.assignments, &each.words})
      for (const std::string& word : *words) {
        if (word.starts_with("DS_BUILD_UTILS")) line = each.line;
        if (to_lower(word).find("nvme") != std::string::npos) nvme = true;
      }
  }
  for (const LaunchLine& each : script.launches) {
    const auto path =
        option_of(each.words, {"--deepspeed", "--deepspeed_config", "--deepspeed_config_file"});
    if (!path || !facts.read_file || !path->ends_with(".json")) continue;
    if (const auto text = facts.read_file(*path))
      nvme = nvme || text->find("nvme") != std::string::npos;
  }
  if (nvme)
    found.add(line, "DS_BUILD_UTILS=1 does not build NVMe offload",
              "it builds helpers for flattening tensors; offload to NVMe is the operator AIO",
              "add DS_BUILD_AIO=1 (it needs libaio's header files)");
}

// nvcc accepts a window of gcc versions, and PyTorch's headers need a minimum. The build otherwise
// fails after minutes on the node.
void look_compiler(const JobScript& script, const CheckFacts& facts, Findings& found) {
  if (!builds(script)) return;
  Version gcc = named_compiler(script);
  if (gcc.text.empty()) gcc = loaded_module(script, "gcc");
  if (gcc.text.empty()) gcc = {facts.gcc_version, 0};
  Version cuda = loaded_module(script, "cuda");
  if (cuda.text.empty()) cuda = {facts.cuda_version, 0};
  const auto major = number_of(std::string_view(gcc.text).substr(0, gcc.text.find('.')));
  if (!major) return;
  const int line = std::max(gcc.line, cuda.line);
  // An unknown PyTorch counts as 2.1.
  const int least = setup::oldest_gcc_for(
      setup::read_release(facts.torch_version).value_or(setup::Release{2, 1}));
  if (*major < least)
    found.add(line,
              fmt::format("gcc {} is too old for PyTorch{}{}", gcc.text,
                          facts.torch_version.empty() ? "" : " ", facts.torch_version),
              "its header files need C++17 or later",
              fmt::format("take gcc {} or later", std::max(least, 11)));
  const auto toolkit = setup::read_release(cuda.text);
  const auto window = toolkit ? setup::gcc_window(*toolkit) : std::nullopt;
  if (window && builds_cuda(script) && *major >= window->below)
    found.add(line, fmt::format("gcc {} is too new for CUDA {}", gcc.text, cuda.text),
              "nvcc refuses it",
              fmt::format("take gcc {} or older, by CC and CXX", window->below - 1));
}

// Code for another architecture builds without an error and fails in training with 'no kernel image
// available'.
void look_arch_list(const JobScript& script, const CheckFacts& /*facts*/, Findings& found) {
  int line = 0;
  const std::string list = list_of_arch(script, line);
  const std::string type = gpu_type(script);
  if (list.empty() || type.empty() || list.find(kExpandedHere) != std::string::npos) return;
  const int capability = setup::capability_of(type);
  if (capability > 0 && !arch_list_covers(list, capability))
    found.add(line,
              fmt::format("TORCH_CUDA_ARCH_LIST={} leaves out the job's GPU, {}",
                          printable(list, 60), type),
              "what is built has 'no kernel image available' there",
              "add " + setup::arch_text({capability}));
}

// DeepSpeed has no default list for CUDA 13 and uses 6.0, 6.1 and 7.0. nvcc 13 refuses those.
void look_cuda13_arch_list(const JobScript& script, const CheckFacts& facts, Findings& found) {
  Version cuda = loaded_module(script, "cuda");
  if (cuda.text.empty()) cuda.text = facts.cuda_version;
  int line = 0;
  if (!builds_cuda(script) || !list_of_arch(script, line).empty() || !cuda.text.starts_with("13"))
    return;
  found.add(cuda.line,
            fmt::format("operators are built with CUDA {} and no TORCH_CUDA_ARCH_LIST", cuda.text),
            "DeepSpeed's default has 6.0, 6.1 and 7.0, which this nvcc refuses",
            "export TORCH_CUDA_ARCH_LIST with your GPU's number, 9.0 for an H100");
}

}  // namespace lockstep::slurm
