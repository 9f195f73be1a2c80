#include "cli/accelerate_launch.h"

#include "base/fnv.h"
#include "base/text.h"
#include "host/identity.h"
#include "io/fd.h"
#include "io/own_folders.h"
#include "launch/machine_facts.h"
#include "launchers/accelerate_answer.h"
#include "proc/tool_output.h"

#include <fmt/core.h>

#include <unistd.h>

#include <algorithm>
#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <filesystem>
#include <optional>

namespace lockstep::cli {
namespace {

using Words = std::vector<std::string>;

constexpr std::chrono::minutes kPatience{5};  // importing torch from a slow network file system
constexpr std::size_t kMostBytes = 1 << 20;
constexpr std::size_t kMostKept = 64;  // answers

// The Python that `accelerate` runs with: its first line names it.
std::optional<std::string> python_of_accelerate(const launch::Facts& facts) {
  const auto program = facts.find_program("accelerate");
  if (!program) return std::nullopt;
  const auto text = io::read_file(*program, kMostBytes);
  if (!text || !text->starts_with("#!/")) return std::nullopt;
  const std::string line(strip(text->substr(2, text->find('\n') - 2)));
  const bool is_path = line.find(' ') == std::string::npos && line.find("python") != line.npos;
  return is_path ? std::optional(line) : std::nullopt;
}

std::string python_for(const launchers::Launch& given, const launch::Facts& facts) {
  constexpr std::string_view kChosen = "PYTHON_EXEC=";
  for (const std::string& variable : given.env)
    if (variable.starts_with(kChosen)) return variable.substr(kChosen.size());
  if (const auto chosen = facts.env("PYTHON_EXEC"); chosen && !chosen->empty()) return *chosen;
  return python_of_accelerate(facts).value_or("python3");
}

// What may change from call to call without a meaning for accelerate.
bool is_fleeting(std::string_view variable) {
  constexpr std::string_view kPrefixes[] = {"SSH_",   "SLURM",  "LOCKSTEP_", "TERM",
                                            "SHLVL=", "_=",     "WINDOWID=", "XDG_SESSION_",
                                            "DBUS_",  "OLDPWD="};
  return std::any_of(std::begin(kPrefixes), std::end(kPrefixes),
                     [&](std::string_view prefix) { return variable.starts_with(prefix); });
}

// accelerate's own file of settings, or the one that the words name.
std::string config_text(const Words& words, const launch::Facts& facts) {
  std::string path = facts.env("HF_HOME").value_or(
      facts.env("XDG_CACHE_HOME").value_or(io::home_folder() + "/.cache") + "/huggingface");
  path += "/accelerate/default_config.yaml";
  constexpr std::string_view kOption = "--config_file";
  for (std::size_t i = 0; i < words.size(); ++i) {
    if (words[i] == kOption && i + 1 < words.size()) path = words[i + 1];
    if (words[i].starts_with("--config_file=")) path = words[i].substr(kOption.size() + 1);
  }
  return io::read_file(path, kMostBytes).value_or("none");
}

// Everything that an answer depends on; nullopt: the versions are not known.
std::optional<std::string> key_of(const std::string& python, const Words& words,
                                  const launch::Facts& facts) {
  const auto versions = proc::tool_output(
      {python, "-c",
       // Not from the current folder: it may be anybody's.
       "import sys; sys.path[:] = [p for p in sys.path if p]; "
       "from importlib.metadata import version as v; print(v('accelerate'), v('torch'))"});
  if (!versions || !versions->exit.ok()) return std::nullopt;
  std::error_code error;
  Words parts = {python,
                 versions->out,
                 host::hostname(),
                 config_text(words, facts),
                 std::filesystem::current_path(error),
                 std::string(launchers::kAccelerateWords)};
  parts.insert(parts.end(), words.begin(), words.end());
  Words variables = proc::own_environment();
  std::sort(variables.begin(), variables.end());
  for (std::string& variable : variables)
    if (!is_fleeting(variable)) parts.push_back(std::move(variable));
  return fmt::format("{:016x}", fnv1a(join(parts, std::string_view("\0", 1))));
}

// An answer that can't be kept is asked for again.
void keep(const std::string& folder, const std::string& name, const std::string& answer) {
  if (!io::make_folders(folder)) return;
  std::error_code error;
  std::size_t count = 0;
  for (const auto& entry : std::filesystem::directory_iterator(folder, error)) {
    (void)entry;
    ++count;
  }
  if (count >= kMostKept) {
    std::filesystem::remove_all(folder, error);
    if (!io::make_folders(folder)) return;
  }
  // Another process may read it meanwhile.
  const std::string fresh = fmt::format("{}/{}.{}", folder, name, getpid());
  if (io::write_file(fresh, answer)) std::filesystem::rename(fresh, folder + "/" + name, error);
}

}  // namespace

Result<launchers::Launch> ask_accelerate(const launchers::Launch& given,
                                         const launchers::ReadOptions& options) {
  const launch::Facts facts = launch::machine_facts();
  const std::string python = python_for(given, facts);
  const auto key = key_of(python, given.run, facts);
  const std::string folder = io::state_folder() + "/accelerate";
  std::string answer;
  if (key) answer = io::read_file(folder + "/" + *key, kMostBytes).value_or("");
  if (answer.empty()) {
    Words argv = {python, "-c", std::string(launchers::kAccelerateWords)};
    argv.insert(argv.end(), given.run.begin(), given.run.end());
    const auto said = proc::tool_output(argv, proc::own_environment(), {.patience = kPatience});
    if (!said) return launchers::accelerate_itself(given.run, said.error().message);
    answer = said->out;
    if (answer.starts_with("{\"exit\"")) std::fputs(said->err.c_str(), stderr);
    const bool is_known = said->exit.ok() && answer.find("\"env\"") != std::string::npos;
    if (key && is_known) keep(folder, *key, answer);
  }
  auto launch = launchers::read_accelerate_answer(answer, given.run, options);
  // The ranks run with the Python that was asked.
  if (launch) launch->env.push_back("PYTHON_EXEC=" + python);
  return launch;
}

}  // namespace lockstep::cli
