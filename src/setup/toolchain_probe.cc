#include "setup/toolchain_probe.h"

#include "base/environment.h"
#include "base/text.h"
#include "proc/helper_output.h"
#include "setup/environment.h"
#include "setup/tool.h"

#include <fmt/core.h>

#include <unistd.h>

#include <filesystem>
#include <system_error>

namespace lockstep::setup {
namespace {

// CXX may be several words, such as "ccache g++": the last word that is a program is the compiler.
std::string find_compiler() {
  std::string found;
  for (const std::string& word : split(env_text("CXX"), ' '))
    if (!word.empty() && !word.starts_with('-'))
      if (std::string path = find_program(word); !path.empty()) found = std::move(path);
  for (const char* name : {"c++", "g++"})
    if (found.empty()) found = find_program(name);
  return found;
}

std::string find_nvcc() {
  for (const char* name : {"CUDA_HOME", "CUDA_PATH"}) {
    const std::string home = env_text(name);
    if (home.empty()) continue;
    std::string nvcc = home + "/bin/nvcc";
    // No fallback to PATH: PyTorch builds with the toolkit of CUDA_HOME only.
    return access(nvcc.c_str(), X_OK) == 0 ? nvcc : "";
  }
  return find_program("nvcc", {"/usr/local/cuda/bin/nvcc"});
}

}  // namespace

std::optional<Release> gcc_release(std::string_view version_output) {
  const std::string line(version_output.substr(0, version_output.find('\n')));
  std::optional<Release> found;
  std::size_t depth = 0;
  // The packager's version stands in parentheses and does not count.
  for (const std::string& word : split(line, ' ')) {
    if (word.starts_with('(')) ++depth;
    if (depth == 0 && !found && word.find('.') != std::string::npos) found = read_release(word);
    if (word.ends_with(')') && depth > 0) --depth;
  }
  return found;
}

std::optional<Release> nvcc_release(std::string_view version_output) {
  constexpr std::string_view kBefore = "release ";
  const std::size_t at = version_output.find(kBefore);
  if (at == std::string_view::npos) return std::nullopt;
  return read_release(version_output.substr(at + kBefore.size()));
}

Result<std::string> choose_python(const std::string& given) {
  if (!given.empty()) {
    if (given.find('/') == std::string::npos) {
      std::string found = find_program(given);
      if (!found.empty()) return found;
    } else if (access(given.c_str(), X_OK) == 0) {
      // Keep the path as given. An environment's python is a link, and its target would be the base
      // Python.
      std::error_code trouble;
      return std::filesystem::absolute(given, trouble).lexically_normal().string();
    }
    return fail(Errc::not_found, fmt::format("there is no Python {}", printable(given)),
                "give --python a path, or a name in PATH");
  }
  std::error_code trouble;
  const auto environment = find_environment(std::filesystem::current_path(trouble).string());
  if (environment && *environment && !(*environment)->python.empty()) return (*environment)->python;
  for (const char* name : {"python3", "python"})
    if (std::string found = find_program(name); !found.empty()) return found;
  return fail(Errc::not_found, "python3 is not in PATH", "install python3, or give --python PATH");
}

Toolchain probe_toolchain(const PythonFacts& python) {
  Toolchain tools;
  tools.gcc = find_compiler();
  if (!tools.gcc.empty())
    // Ask the compiler itself: a path such as /usr/bin/c++ does not tell the version.
    tools.gcc_version = gcc_release(proc::helper_output({tools.gcc, "--version"}).value_or(""));
  tools.nvcc = find_nvcc();
  if (!tools.nvcc.empty())
    tools.cuda = nvcc_release(proc::helper_output({tools.nvcc, "--version"}).value_or(""));
  tools.python = python.python;
  tools.headers = python.headers;
  tools.torch = python.torch;
  tools.torch_cuda = read_release(python.torch_cuda);
  return tools;
}

}  // namespace lockstep::setup
