#include "cli/accelerate_launch.h"

#include "base/fnv.h"
#include "base/text.h"
#include "host/identity.h"
#include "io/fd.h"
#include "io/folder_names.h"
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

// Importing torch from a slow network file system takes minutes.
constexpr std::chrono::minutes kPatience{5};
constexpr std::size_t kMostBytes = 1 << 20;
constexpr std::size_t kMostKept = 64;  // answers

// Returns the Python in the first line of the `accelerate` script. Another Python may have another
// accelerate, or none. nullopt: the line is not a plain path of a Python, e.g. `#!/usr/bin/env
// python3`.
std::optional<std::string> python_of_accelerate(const launch::Facts& facts) {
  const auto program = facts.find_program("accelerate");
  if (!program) return std::nullopt;
  const auto text = io::read_file(*program, kMostBytes);
  if (!text || !text->starts_with("#!/")) return std::nullopt;
  const std::string line(strip(text->substr(2, text->find('\n') - 2)));
  const bool is_path = line.find(' ') == std::string::npos && line.find("python") != line.npos;
  return is_path ? std::optional(line) : std::nullopt;
}

// Returns the Python to ask. A Python in the words comes first (read_launch() passes that on as
// PYTHON_EXEC), then the user's PYTHON_EXEC, then accelerate's own Python.
std::string python_for(const launchers::Launch& given, const launch::Facts& facts) {
  constexpr std::string_view kChosen = "PYTHON_EXEC=";
  for (const std::string& variable : given.env)
    if (variable.starts_with(kChosen)) return variable.substr(kChosen.size());
  if (const auto chosen = facts.env("PYTHON_EXEC"); chosen && !chosen->empty()) return *chosen;
  return python_of_accelerate(facts).value_or("python3");
}

// Returns whether a variable may change from call to call without a meaning for accelerate. Such
// variables stay out of the key, or no kept answer would be found again.
bool is_fleeting(std::string_view variable) {
  constexpr std::string_view kPrefixes[] = {"SSH_",   "SLURM",  "LOCKSTEP_", "TERM",
                                            "SHLVL=", "_=",     "WINDOWID=", "XDG_SESSION_",
                                            "DBUS_",  "OLDPWD="};
  return std::any_of(std::begin(kPrefixes), std::end(kPrefixes),
                     [&](std::string_view prefix) { return variable.starts_with(prefix); });
}

// Returns the text of the settings file that accelerate reads: --config_file, else accelerate's
// default path. The text and not the path goes into the key, so an edited file is asked about anew.
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

// Returns the key of a kept answer: a hash of everything that the answer depends on. nullopt: the
// versions of accelerate and torch are unknown, so the answer must not be kept.
std::optional<std::string> key_of(const std::string& python, const Words& words,
                                  const launch::Facts& facts) {
  const auto versions = proc::tool_output(
      {python, "-c",
       // Drop the empty entry of sys.path: with -c it is the current folder, where another user may
       // have put modules.
       "import sys; sys.path[:] = [p for p in sys.path if p]; "
       "from importlib.metadata import version as v; print(v('accelerate'), v('torch'))"});
  if (!versions || !versions->exit.ok()) return std::nullopt;
  std::error_code error;
  // The host's name counts because accelerate looks at the machine's devices, and several machines
  // may share this home. kAccelerateWords counts because another version of Lockstep may ask for
  // something else.
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
  // NUL cannot occur in an argument or a variable, so the joined text is unambiguous.
  return fmt::format("{:016x}", fnv1a(join(parts, std::string_view("\0", 1))));
}

// Keeps an answer in the folder. Ignores errors: the next call then asks again.
void keep(const std::string& folder, const std::string& name, const std::string& answer) {
  if (!io::make_folders(folder)) return;
  std::error_code error;
  // Old environments and settings leave answers that no call finds again. Starting afresh bounds
  // the folder, at the price of a few questions.
  if (io::names_in(folder).size() >= kMostKept) {
    std::filesystem::remove_all(folder, error);
    if (!io::make_folders(folder)) return;
  }
  // Another process may read the answer meanwhile: write aside, then rename.
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
    // accelerate's parser has refused the words: show its own message.
    if (answer.starts_with("{\"exit\"")) std::fputs(said->err.c_str(), stderr);
    // Keep complete answers only. A refusal or a crash is asked about again.
    const bool is_known = said->exit.ok() && answer.find("\"env\"") != std::string::npos;
    if (key && is_known) keep(folder, *key, answer);
  }
  auto launch = launchers::read_accelerate_answer(answer, given.run, options);
  // The ranks run with the Python that was asked, and therefore with the same accelerate.
  if (launch) launch->env.push_back("PYTHON_EXEC=" + python);
  return launch;
}

}  // namespace lockstep::cli
