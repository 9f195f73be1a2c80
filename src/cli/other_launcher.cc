#include "cli/other_launcher.h"

#include "base/environment.h"
#include "base/log.h"
#include "cli/accelerate_launch.h"
#include "launchers/launch_words.h"

#include <sys/stat.h>

#include <cstdlib>
#include <utility>

namespace lockstep::cli {
namespace {

constexpr const char* kDefaultHostfile = "/job/hostfile";  // DeepSpeed's own default

bool is_file(const std::string& path) {
  struct stat info {};
  return stat(path.c_str(), &info) == 0 && S_ISREG(info.st_mode);
}

// Returns the launcher's words; empty: the script is the user's own program.
Args launcher_words(const Parsed& parsed) {
  if (!parsed.script || parsed.has("module") || parsed.has("no-python") || parsed.has("run-path"))
    return {};
  // A file of that name in this folder wins: the user's own "torchrun" or "deepspeed".
  if (parsed.script->find('/') == std::string::npos && is_file(*parsed.script)) return {};
  Args words = {*parsed.script};
  words.insert(words.end(), parsed.script_args.begin(), parsed.script_args.end());
  if (launchers::launcher_of(words) == launchers::Launcher::none) return {};
  return words;
}

// Returns the options of `lockstep run` in front of the launcher's name.
Args own_words(const Call& call) {
  const Args& words = call.words;
  std::size_t end = words.size() - call.parsed.script_args.size() - 1;
  // The parser drops a "--" right behind the script, so script_args may be one word shorter than
  // the rest of the line.
  if (words[end] != *call.parsed.script) --end;
  if (end > 0 && words[end - 1] == "--") --end;
  return {words.begin(), words.begin() + static_cast<std::ptrdiff_t>(end)};
}

bool runs_elsewhere(const launchers::Launch& launch, const Parsed& parsed) {
  return parsed.has("on") || parsed.has("hostfile") || launch.nodes.hostfile.has_value();
}

// Puts the job's folder on PYTHONPATH, like DeepSpeed's launcher for workers on hosts. Scripts rely
// on this for imports.
void add_folder_to_path(launchers::Launch& launch) {
  const std::string known = env_text("PYTHONPATH");
  launch.env.push_back("PYTHONPATH=." + (known.empty() ? "" : ":" + known));
}

}  // namespace

tl::expected<std::optional<Restated>, Error> restate_launcher(const Call& call,
                                                              const Table& table) {
  const Args given = launcher_words(call.parsed);
  if (given.empty()) return std::nullopt;
  launchers::ReadOptions options;
  if (is_file(kDefaultHostfile)) options.default_hostfile = kDefaultHostfile;
  auto launch = launchers::read_launch(given, options);
  if (!launch) return tl::make_unexpected(std::move(launch).error());
  if (launch->launcher == launchers::Launcher::accelerate)
    launch = ask_accelerate(*launch, options);
  if (!launch) return tl::make_unexpected(std::move(launch).error());
  for (const std::string& note : launch->notes)
    log::warning("{}", note);
  Restated restated{.words = own_words(call), .parsed = {}};
  const bool elsewhere = runs_elsewhere(*launch, call.parsed);
  if (elsewhere && launch->launcher == launchers::Launcher::deepspeed) add_folder_to_path(*launch);
  for (const std::string& variable : launch->env) {
    const std::size_t equals = variable.find('=');
    // At the front, so that --env of the user replaces the launcher's value.
    if (elsewhere)
      restated.words.insert(restated.words.begin(), "--env=" + variable);
    else
      setenv(variable.substr(0, equals).c_str(), variable.c_str() + equals + 1, 1);
  }
  restated.words.insert(restated.words.end(), launch->run.begin(), launch->run.end());
  auto parsed = parse_options(table, restated.words, env_variable);
  if (!parsed) return tl::make_unexpected(std::move(parsed).error().error);
  restated.parsed = std::move(*parsed);
  return restated;
}

}  // namespace lockstep::cli
