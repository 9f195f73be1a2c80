#include "launchers/launch_words.h"

#include "base/text.h"
#include "launchers/launcher_words.h"

#include <fmt/core.h>

#include <utility>

namespace lockstep::launchers {
namespace {

using Words = std::span<const std::string>;

// Returns the last part of a path. A relative path with a slash is a user's file, never a launcher.
std::string_view program_name(std::string_view word) {
  const std::size_t slash = word.rfind('/');
  if (slash == std::string_view::npos) return word;
  return word.front() == '/' ? word.substr(slash + 1) : std::string_view();
}

// Returns whether a name is "python", "python3", "python3.11" or the like.
bool is_python(std::string_view name) {
  return name.starts_with("python") &&
         name.substr(6).find_first_not_of("0123456789.") == std::string_view::npos;
}

// Python's own options, read up to the script or module.
struct PythonWords {
  std::vector<std::string> flags = {};  // without -u, which lockstep run adds
  std::string module = {};              // argument of -m
  bool other = false;                   // -c, or no script
  Words rest = {};                      // words behind the module, or the script and what follows
};

PythonWords read_python_words(Words words) {
  PythonWords read;
  std::size_t at = 0;
  while (at < words.size() && words[at].size() > 1 && words[at][0] == '-') {
    const std::string& word = words[at++];
    if (word == "--") break;
    if (word.starts_with("--")) {
      read.flags.push_back(word);
      // Python's long option with a value.
      if (word == "--check-hash-based-pycs" && at < words.size()) read.flags.push_back(words[at++]);
      continue;
    }
    // Several letters may share a word. Some take the rest of the word, or the next word, as value.
    const std::size_t taker = word.find_first_of("mcWX", 1);
    std::string letters = word.substr(1, taker == word.npos ? taker : taker - 1);
    std::erase(letters, 'u');
    if (!letters.empty()) read.flags.push_back("-" + letters);
    if (taker == word.npos) continue;
    std::string value = word.substr(taker + 1);
    if (value.empty() && at < words.size()) value = words[at++];
    read.other = read.other || word[taker] == 'c';
    if (word[taker] == 'W' || word[taker] == 'X') {
      read.flags.push_back(fmt::format("-{}{}", word[taker], value));
      continue;
    }
    read.module = std::move(value);
    break;
  }
  read.rest = words.subspan(at);
  read.other = read.other || (read.module.empty() && read.rest.empty());
  return read;
}

// Leaves the words unread: only the installed accelerate knows them.
Launch read_accelerate(Words words) {
  return {.launcher = Launcher::accelerate, .run = {words.begin(), words.end()}};
}

// Reads a launcher started as a module; nullopt: the module is the user's.
std::optional<Result<Launch>> read_module(const PythonWords& python, const ReadOptions& options) {
  const std::string& module = python.module;
  if (module == "torch.distributed.run") return read_torchrun(python.rest, options, false);
  if (module == "torch.distributed.launch") return read_torchrun(python.rest, options, true);
  if (module == "deepspeed.launcher.runner") return read_deepspeed(python.rest, options);
  if (module == "accelerate.commands.launch") return read_accelerate(python.rest);
  if (module == "accelerate.commands.accelerate_cli" && !python.rest.empty() &&
      python.rest.front() == "launch")
    return read_accelerate(python.rest.subspan(1));
  return std::nullopt;
}

Launch read_script(const std::string& interpreter, Words words, const PythonWords& python) {
  Launch launch{.launcher = Launcher::python};
  if (python.other || !python.flags.empty()) {
    // Keep the command unchanged: lockstep run has no options for Python itself.
    launch.run = {"--no-python", "--", interpreter, "-u"};
    append_literally(words, launch.run);
    return launch;
  }
  if (!python.module.empty()) launch.run.emplace_back("--module");
  launch.run.emplace_back("--");
  if (!python.module.empty()) launch.run.push_back(kept_literally(python.module));
  append_literally(python.rest, launch.run);
  return launch;
}

Result<Launch> read_python(const std::string& interpreter, Words words,
                           const ReadOptions& options) {
  const PythonWords python = read_python_words(words);
  auto module = read_module(python, options);
  if (module && !*module) return std::move(*module);
  Launch launch = module ? std::move(**module) : read_script(interpreter, words, python);
  // The user names a certain Python, so do not search for another.
  if (interpreter != "python" && interpreter != "python3")
    launch.env.push_back("PYTHON_EXEC=" + interpreter);
  return launch;
}

}  // namespace

std::string kept_literally(std::string text) {
  replace_all(text, "$", "$$");
  return text;
}

void append_literally(std::span<const std::string> words, std::vector<std::string>& to) {
  for (const std::string& word : words)
    to.push_back(kept_literally(word));
}

Launcher launcher_of(std::span<const std::string> words) {
  if (words.empty()) return Launcher::none;
  const std::string_view name = program_name(words.front());
  if (name == "torchrun") return Launcher::torchrun;
  if (name == "deepspeed") return Launcher::deepspeed;
  if (name == "accelerate-launch") return Launcher::accelerate;
  if (name == "accelerate" && words.size() > 1 && words[1] == "launch") return Launcher::accelerate;
  return is_python(name) ? Launcher::python : Launcher::none;
}

Result<Launch> read_launch(std::span<const std::string> words, const ReadOptions& options) {
  const Launcher launcher = launcher_of(words);
  const Words rest = words.subspan(words.empty() ? 0 : 1);
  switch (launcher) {
    case Launcher::python:
      return read_python(words.front(), rest, options);
    case Launcher::torchrun:
      return read_torchrun(rest, options, false);
    case Launcher::deepspeed:
      return read_deepspeed(rest, options);
    case Launcher::accelerate:
      return read_accelerate(rest.subspan(program_name(words.front()) == "accelerate" ? 1 : 0));
    case Launcher::none:
      break;
  }
  Launch launch;
  launch.run.assign(words.begin(), words.end());
  return launch;
}

}  // namespace lockstep::launchers
