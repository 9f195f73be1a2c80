#include "slurm/check_run.h"

#include "base/text.h"
#include "io/fd.h"
#include "proc/tool_output.h"
#include "slurm/ds_config.h"
#include "slurm/lint_rows.h"

#include <fmt/core.h>

#include <dirent.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <chrono>
#include <memory>
#include <span>
#include <utility>

namespace lockstep::slurm {
namespace {

constexpr std::size_t kMostListed = 20000;
constexpr std::size_t kMostRead = 1U << 20;

struct CloseFolder {
  void operator()(DIR* folder) const { closedir(folder); }
};

bool is_folder(const std::string& path) {
  struct stat found {};
  return stat(path.c_str(), &found) == 0 && S_ISDIR(found.st_mode);
}

// Reads plain files only. Opening a FIFO would block.
std::optional<std::string> read_plain(const std::string& path, std::size_t limit = kMostRead) {
  struct stat found {};
  if (stat(path.c_str(), &found) != 0 || !S_ISREG(found.st_mode)) return std::nullopt;
  auto text = io::read_file(path, limit);
  return text ? std::optional(std::move(*text)) : std::nullopt;
}

// Returns the sorted names in a folder, at most kMostListed, to bound time and memory.
std::vector<std::string> list_folder(const std::string& path) {
  std::vector<std::string> names;
  const std::unique_ptr<DIR, CloseFolder> folder(opendir(path.c_str()));
  if (!folder) return names;
  while (names.size() < kMostListed) {
    const dirent* entry = readdir(folder.get());
    if (entry == nullptr) break;
    names.emplace_back(entry->d_name);
  }
  std::sort(names.begin(), names.end());
  return names;
}

// Returns the first number behind a word: "12.2.0" for "gcc (Debian 12.2.0-14) 12.2.0".
std::string version_in(std::string_view text, std::string_view behind) {
  const std::size_t at = text.find(behind);
  if (at == std::string_view::npos) return {};
  const std::size_t from = text.find_first_of("0123456789", at + behind.size());
  if (from == std::string_view::npos) return {};
  return std::string(text.substr(from, text.find_first_not_of("0123456789.", from) - from));
}

std::string version_of(const RunTool& run, const std::vector<std::string>& argv,
                       std::string_view behind) {
  const auto said = run(argv);
  return said && said->exit.ok() ? version_in(said->out, behind) : "";
}

// Returns "2.4.1" for torch-2.4.1.dist-info in the active environment. Reads a folder name, because
// importing PyTorch takes seconds.
std::string torch_version(const CheckFacts& facts) {
  for (const std::string_view name : {"VIRTUAL_ENV", "CONDA_PREFIX"}) {
    const auto prefix = facts.environment.find(name);
    if (prefix == facts.environment.end() || prefix->second.empty()) continue;
    const std::string lib = prefix->second + "/lib";
    for (const std::string& python : list_folder(lib)) {
      if (!python.starts_with("python")) continue;
      for (const std::string& package :
           list_folder(fmt::format("{}/{}/site-packages", lib, python)))
        if (package.starts_with("torch-") && package.ends_with(".dist-info"))
          return version_in(package, "torch-");
    }
  }
  return {};
}

// Looks for words that hint at a build. Questions to gcc and nvcc take time, so ask only then.
bool has_word(const JobScript& script, std::initializer_list<std::string_view> words) {
  for (const ShellCommand& each : script.commands)
    for (const std::string& word : each.words)
      if (std::find(words.begin(), words.end(), word) != words.end()) return true;
  return false;
}

// Asks sbatch --test-only, which knows partitions, sizes and limits. Accounts and QOS are known to
// it only where accounting enforces associations.
TestOnly ask_sbatch(const CheckRequest& request, const RunTool& run) {
  std::vector<std::string> argv = {"sbatch", "--test-only"};
  for (const Setting& each : request.settings)
    argv.push_back(word_of(each));
  if (request.text || !request.script) {
    argv.emplace_back("--wrap=true");  // Slurm checks resources only, so any command will do
  } else {
    argv.push_back(*request.script);
  }
  const auto said = run(argv);
  if (!said) return {.why_not = said.error().message};
  if (trouble_of(*said) == Trouble::unreachable)
    return {.why_not = tool_error("sbatch --test-only", "sbatch", *said).message};
  return read_test_only(said->exit.ok(), said->err + said->out);
}

void add_test_only(const CheckRequest& request, CheckReport& report) {
  const TestOnly& test = report.test_only;
  if (!test.asked || test.accepted) return;
  // The lint "refused" has found the same problem already, with its line.
  const bool known =
      std::any_of(report.findings.begin(), report.findings.end(), [](const Finding& each) {
        return each.lint == "refused" && each.severity == Severity::error;
      });
  if (known) return;
  report.findings.push_back(
      {Severity::error, "test-only", request.script.value_or("sbatch"), 0,
       "Slurm would not take this job", test.why_not,
       "change the named option; 'sinfo' shows the cluster's partitions and nodes"});
}

bool starts_training(const std::vector<std::string>& words) {
  return !job_of_words("", {}, words).launches.empty();
}

// `lockstep submit train.py --lr 1` runs as `lockstep run train.py --lr 1`.
JobScript job_of(const CheckRequest& request) {
  std::vector<std::string> words = request.launch;
  if (!words.empty() && !starts_training(words)) words.insert(words.begin(), {"lockstep", "run"});
  return job_of_words("command line", request.settings, std::move(words));
}

// Reads what follows the options: --wrap, a training command, or a script. sbatch takes the first
// word as a script; lockstep submit also takes commands.
Status take_program(const std::vector<std::string>& words, bool submit, CheckRequest& request) {
  const Setting* wrap = find_setting(request.settings, "wrap");
  if (wrap != nullptr) {
    request.script = "--wrap";
    request.text = wrap_script(wrap->value);
    std::erase_if(request.settings, [](const Setting& each) { return each.name == "wrap"; });
  } else if (!words.empty() && submit &&
             (words.front().ends_with(".py") || starts_training(words))) {
    request.launch = words;
  } else if (!words.empty()) {
    request.script = words.front();
  } else {
    return fail(Errc::invalid_input, "no script or command is named",
                "write the script behind the options");
  }
  return {};
}

Result<std::string> read_named(const std::string& path, std::size_t limit) {
  if (is_folder(path))
    return fail(Errc::invalid_input, fmt::format("{} is a folder", printable(path)),
                "name the file");
  auto text = io::read_file(path, limit);
  if (!text) return Failure(std::move(text.error()));
  return text;
}

// Runs the file lints on files named on the command line, which belong to no script.
Status check_named_files(const CheckRequest& request, CheckReport& report) {
  JobScript none;
  Findings found(none, report.findings);
  for (const Lint& each : lints()) {
    if (each.look == look_hostfile_grammar) {
      found.begin(each);
      for (const std::string& path : request.hostfiles) {
        LOCKSTEP_TRY_ASSIGN(const std::string text, read_named(path, 8U << 20));
        check_hostfile(path, text, found);
      }
    }
    if (each.look == look_ds_batch) {
      found.begin(each);
      for (const std::string& path : request.ds_configs) {
        LOCKSTEP_TRY_ASSIGN(const std::string text, read_named(path, kMostRead));
        check_ds_text(path, text, {}, found);
      }
    }
  }
  return {};
}

}  // namespace

Result<proc::ToolOutput> run_briefly(const std::vector<std::string>& argv) {
  return proc::tool_output(argv, proc::own_environment(), {.patience = std::chrono::seconds(10)});
}

Status read_check_words(const std::vector<std::string>& words, CheckRequest& request) {
  if (words.empty()) return {};
  const bool sbatch = words.front() == "sbatch";
  const bool submit = words.front() == "submit" || words.front() == "lockstep";
  if (!sbatch && !submit && words.front() != "srun" && !starts_training(words)) {
    request.script = words.front();
    LOCKSTEP_TRY_ASSIGN(ReadSettings read, read_settings(std::span(words).subspan(1)));
    request.settings = std::move(read.settings);
    return {};
  }
  if (!sbatch && !submit) {
    request.launch = words;
    return {};
  }
  const std::size_t skip = words.front() == "lockstep" && words.size() > 1 ? 2 : 1;
  const auto rest = std::span(words).subspan(skip);
  LOCKSTEP_TRY_ASSIGN(ReadSettings read,
                      read_settings(rest, submit ? UnknownOptions::keep : UnknownOptions::refuse));
  // Drop options that only `lockstep submit` knows.
  std::erase_if(read.settings, [](const Setting& each) { return !each.known; });
  request.settings = std::move(read.settings);
  request.lockstep_launches = submit;
  const std::vector<std::string> behind(rest.begin() + static_cast<std::ptrdiff_t>(read.words),
                                        rest.end());
  return take_program(behind, submit, request);
}

bool CheckReport::has_errors() const {
  return std::any_of(findings.begin(), findings.end(),
                     [](const Finding& each) { return each.severity == Severity::error; });
}

TestOnly read_test_only(bool succeeded, std::string_view printed) {
  TestOnly test{.asked = true, .accepted = succeeded};
  for (const std::string& line : split(printed, '\n')) {
    // "sbatch: Job 3 to start at 2026-11-22T19:11:45 using 1 processors on nodes n1 in partition
    // gpu"
    const std::size_t start = line.find(" to start at ");
    if (succeeded && start != std::string::npos) {
      const std::string_view rest = std::string_view(line).substr(start + 13);
      test.start = printable(rest.substr(0, rest.find(' ')), 40);
      const std::size_t nodes = rest.find(" on nodes ");
      if (nodes != std::string_view::npos) {
        const std::string_view list = rest.substr(nodes + 10);
        test.nodes = printable(list.substr(0, list.find(' ')));
      }
    }
    if (succeeded || !test.why_not.empty()) continue;
    // The first line has the value: "invalid partition specified: nope".
    std::string_view words = line;
    for (const std::string_view level : {"sbatch: ", "error: ", "fatal: ", "allocation failure: "})
      if (words.starts_with(level)) words.remove_prefix(level.size());
    test.why_not = printable(strip(words));
  }
  return test;
}

CheckFacts gather_facts(const JobScript& script, const RunTool& run) {
  CheckFacts facts;
  for (const std::string& each : proc::own_environment())
    if (const std::size_t equals = each.find('='); equals != std::string::npos)
      facts.environment[each.substr(0, equals)] = each.substr(equals + 1);
  if (const auto home = facts.environment.find("HOME"); home != facts.environment.end())
    facts.home = home->second;
  if (const auto range = read_plain("/proc/sys/net/ipv4/ip_local_port_range"))
    if (const auto low = number_of(strip(std::string_view(*range).substr(0, range->find('\t')))))
      facts.ephemeral_port_low = *low;
  facts.is_folder = is_folder;
  facts.is_file = [](const std::string& path) {
    struct stat info {};
    return stat(path.c_str(), &info) == 0 && S_ISREG(info.st_mode);
  };
  facts.read_file = [](const std::string& path) { return read_plain(path); };
  facts.list_folder = list_folder;
  // Only one lint needs Slurm's version, and only for settings that name CPUs.
  if (setting(script, "cpus-per-task") != nullptr)
    facts.slurm_version = version_of(run, {"sbatch", "--version"}, "slurm");
  if (has_word(script, {"pip", "pip3", "setup.py", "build", "install", "make", "ninja", "cmake"})) {
    facts.gcc_version = version_of(run, {"gcc", "-dumpfullversion"}, "");
    facts.cuda_version = version_of(run, {"nvcc", "--version"}, "release");
    facts.torch_version = torch_version(facts);
  }
  return facts;
}

Result<CheckReport> run_check(const CheckRequest& request, const RunTool& run) {
  CheckReport report;
  if (request.script) {
    std::string text = request.text.value_or("");
    if (!request.text) {
      LOCKSTEP_TRY_ASSIGN(text, read_named(*request.script, kMostScriptBytes + 1));
    }
    const JobScript script = read_job_script(*request.script, text, request.settings);
    CheckFacts facts = gather_facts(script, run);
    facts.lockstep_launches = request.lockstep_launches;
    report.findings = check_job(script, facts, {.lockstep_launches = request.lockstep_launches});
  } else if (!request.launch.empty() || !request.settings.empty()) {
    const JobScript job = job_of(request);
    report.findings =
        check_job(job, gather_facts(job, run),
                  {.lockstep_launches = request.lockstep_launches, .is_script = false});
  }
  LOCKSTEP_TRY(check_named_files(request, report));
  if (request.ask_slurm && (request.script || !request.settings.empty())) {
    report.test_only = ask_sbatch(request, run);
    add_test_only(request, report);
  }
  return report;
}

}  // namespace lockstep::slurm
