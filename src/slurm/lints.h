// The checks of a job before submission: a table of mistakes, each with a function that looks for
// the mistake in a script and facts of this machine. Pure: callers supply the facts.
#pragma once

#include "slurm/job_script.h"

#include <cstdint>
#include <functional>
#include <map>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

namespace lockstep::slurm {

enum class Severity : std::uint8_t { warning, error };

struct Finding {
  Severity severity = Severity::warning;
  std::string lint;  // name of the lint
  std::string file;
  int line = 0;  // 0: the whole file
  std::string what;
  std::string why;
  std::string fix;
};
// Prints a finding: "old.slurm:12: error: what: why; fix [lint]".
std::string text_of(const Finding& finding);

// Facts of the host where the job is submitted. Empty: unknown.
struct CheckFacts {
  std::string slurm_version = {};  // "22.05.8"
  std::string gcc_version = {};    // of the gcc in PATH: "12.2.0"
  std::string cuda_version = {};   // of the nvcc in PATH: "12.4"
  std::string torch_version = {};  // "2.4.1"
  int ephemeral_port_low = 32768;  // first port of ip_local_port_range
  std::string home = {};
  bool lockstep_launches = false;  // Lockstep starts the ranks and drops words about how nodes meet
  std::map<std::string, std::string, std::less<>> environment = {};
  // Relative paths start at the folder of submission. Unset functions: no files are looked up.
  std::function<bool(const std::string&)> is_folder = {};
  std::function<bool(const std::string&)> is_file = {};
  std::function<std::optional<std::string>(const std::string&)> read_file = {};  // at most 1 MiB
  std::function<std::vector<std::string>(const std::string&)> list_folder = {};
};

// Where a mistake can be detected.
enum class DecidedAt : std::uint8_t {
  script,      // here
  partly,      // partly here; the rest in the allocation
  allocation,  // only on the nodes, by the job's pre-flight
};

// Which jobs a lint applies to.
enum class Concerns : std::uint8_t {
  every_job,
  own_script,  // scripts, even if Lockstep starts their ranks
  // Scripts that start their ranks themselves. Impossible if Lockstep starts the ranks.
  own_launch,
};

class Findings;

struct Lint {
  int number = 0;  // number in docs/slurm.md
  std::string_view name;
  std::string_view mistake;  // one line, for the table
  Severity severity = Severity::warning;
  DecidedAt decided_at = DecidedAt::script;
  Concerns concerns = Concerns::every_job;
  void (*look)(const JobScript& script, const CheckFacts& facts, Findings& found) = nullptr;
};

// Returns all lints, sorted by number.
std::span<const Lint> lints();

struct CheckOptions {
  bool lockstep_launches = false;
  // false: the job is a command line without a script.
  bool is_script = true;
};
// Runs all lints that apply. Returns the findings by line, other files last. If Lockstep launches,
// skips own_launch lints, and own_script lints for jobs without a script.
std::vector<Finding> check_job(const JobScript& script, const CheckFacts& facts,
                               const CheckOptions& options = {});

// Collects what lints report.
class Findings {
 public:
  Findings(const JobScript& script, std::vector<Finding>& all) : script_(script), all_(all) {}

  void begin(const Lint& lint) { lint_ = &lint; }
  // Adds a finding in the script; without a severity, with that of the lint's row.
  void add(int line, std::string what, std::string why, std::string fix);
  void add(Severity severity, int line, std::string what, std::string why, std::string fix);
  // Adds a finding in another file.
  void add_in(std::string file, int line, std::string what, std::string why, std::string fix);

 private:
  const JobScript& script_;
  std::vector<Finding>& all_;
  const Lint* lint_ = nullptr;
};

}  // namespace lockstep::slurm
