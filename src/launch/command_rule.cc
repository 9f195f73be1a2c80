// Makes the workers' argv and checks it before anything starts.
#include "base/text.h"
#include "codec/python_template.h"
#include "launch/rules.h"

#include <fmt/core.h>

namespace lockstep::launch {
namespace {

// torchrun's --run-path does the same in its child. Python has put ['-c', script, ...] into
// sys.argv.
constexpr std::string_view kRunPathStub =
    "import runpy, sys; sys.argv = sys.argv[1:]; runpy.run_path(sys.argv[0], "
    "run_name=\"__main__\")";

// Returns the Python of this program's virtual environment; nullopt: not in one. A program
// installed by pip runs with the environment's Python even if the environment is not activated;
// torchrun's first line names that Python.
std::optional<std::string> python_beside_us(const Facts& facts) {
  for (const std::string& folder : facts.program_folders()) {
    const std::string parent = folder.substr(0, folder.rfind('/'));
    if (facts.file_kind(parent + "/pyvenv.cfg") != FileKind::file) continue;
    for (const char* name : {"python3", "python"}) {
      if (auto found = facts.find_program(fmt::format("{}/{}", folder, name))) return *found;
    }
  }
  return std::nullopt;
}

Status check_script_file(const std::string& path, const Facts& facts) {
  switch (facts.file_kind(path)) {
    case FileKind::missing:
      return fail(Errc::not_found,
                  fmt::format("can't open script '{}': No such file or directory", printable(path)),
                  "for a module name use -m, for a program in PATH use --no-python");
    case FileKind::directory:  // Python runs the __main__.py of a directory
      if (facts.file_kind(path + "/__main__.py") == FileKind::file) return {};
      return fail(Errc::invalid_input,
                  fmt::format("script '{}' is a directory without __main__.py, not a file",
                              printable(path)));
    case FileKind::file:
    case FileKind::other:  // a pipe such as <(...)
      return {};
  }
  return {};
}

Status check_script(const RawOptions& raw, int nproc, const Facts& facts) {
  // To Python, '-' is stdin and -c an option. torchrun passes both after "--", so do not look for a
  // file.
  if (raw.script.starts_with("-") && !raw.run_path) return {};
  if (raw.script.find('$') == std::string::npos) return check_script_file(raw.script, facts);
  // ${local_rank} in the script's name may name another file for each rank.
  for (int rank = 0; rank < nproc; ++rank)
    LOCKSTEP_TRY(check_script_file(
        codec::substitute(raw.script, {{"local_rank", std::to_string(rank)}}), facts));
  return {};
}

Status check_flags(const RawOptions& raw) {
  // The next two messages are torchrun's.
  if (raw.no_python && raw.module && !raw.run_path)
    return fail(Errc::invalid_input,
                "Don't use both the '--no-python' flag and the '--module' flag at the same time.");
  if (raw.legacy_launch && raw.no_python && !raw.use_env)
    return fail(Errc::invalid_input,
                "When using the '--no-python' flag, you must also set the '--use-env' flag.");
  if (raw.script.empty())
    return fail(Errc::invalid_input, "the script's name is empty",
                "give a script, a module with -m, or a program with --no-python");
  return {};
}

Result<std::vector<std::string>> program_and_flags(const RawOptions& raw, const Facts& facts,
                                                   LaunchConfig& config) {
  std::vector<std::string> command;
  if (raw.no_python && !raw.run_path) {
    LOCKSTEP_TRY_ASSIGN(std::string program, facts.find_program(raw.script));
    command.push_back(std::move(program));
    return command;
  }
  if (!raw.module || raw.run_path) LOCKSTEP_TRY(check_script(raw, config.nproc, facts));
  LOCKSTEP_TRY_ASSIGN(std::string python, find_python(facts, config.origins["python"]));
  // -u: unbuffered output, as torchrun starts Python.
  command = {std::move(python), "-u"};
  if (raw.run_path) {
    command.insert(command.end(), {"-c", std::string(kRunPathStub)});
  } else if (raw.module) {
    command.push_back("-m");
  }
  command.push_back(raw.script);
  return command;
}

}  // namespace

Result<std::string> find_python(const Facts& facts, Origin& origin) {
  origin = {Origin::Kind::variable, "PYTHON_EXEC"};
  if (const auto chosen = facts.env("PYTHON_EXEC"); chosen && !chosen->empty()) {
    auto found = facts.find_program(*chosen);
    if (!found) return tl::make_unexpected(std::move(found).error().within("PYTHON_EXEC"));
    return found;
  }
  origin = {Origin::Kind::rule, "", Rule::own_venv};
  if (auto found = python_beside_us(facts)) return *found;
  origin = {Origin::Kind::variable, "VIRTUAL_ENV"};
  if (const auto venv = facts.env("VIRTUAL_ENV"); venv && !venv->empty()) {
    // Without a Python there, go on with PATH: the environment may have been removed.
    if (auto found = facts.find_program(*venv + "/bin/python")) return found;
  }
  origin = {Origin::Kind::variable, "PATH"};
  for (const char* name : {"python3", "python"}) {
    if (auto found = facts.find_program(name)) return found;
  }
  return fail(Errc::not_found,
              "no Python to run the script with: neither python3 nor python is in PATH",
              "set PYTHON_EXEC to the interpreter, or use --no-python for other programs");
}

Status apply_command(const RawOptions& raw, const Facts& facts, LaunchConfig& config) {
  LOCKSTEP_TRY(check_flags(raw));
  LOCKSTEP_TRY_ASSIGN(config.command, program_and_flags(raw, facts, config));
  config.entrypoint = raw.script;
  config.entrypoint_arguments = static_cast<int>(raw.script_args.size());
  if (raw.legacy_launch)
    config.warnings.push_back(
        "lockstep launch stands in for torch.distributed.launch, which is deprecated: use lockstep "
        "run (or torchrun), and let the script read LOCAL_RANK from its environment");
  if (raw.legacy_launch && !raw.use_env) {
    config.local_rank_argument = raw.local_rank_spelling == "underscore"
                                     ? LocalRankArgument::underscore
                                     : LocalRankArgument::dash;
    // The argument goes in front of the script's own arguments.
    config.local_rank_argument_at = config.command.size();
  }
  config.command.insert(config.command.end(), raw.script_args.begin(), raw.script_args.end());
  return {};
}

}  // namespace lockstep::launch
