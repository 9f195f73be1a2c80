// The checks of a job before it is queued: a table of mistakes, each with a function that looks for
// it in a script and what is known of this machine. Pure: what has to be looked up comes as facts.
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
  std::string lint;  // its name
  std::string file;
  int line = 0;  // 0: of the whole file
  std::string what;
  std::string why;
  std::string fix;
};
// "old.slurm:12: error: what: why; fix [lint]".
std::string text_of(const Finding& finding);

// What is known here, where the job is handed in. Empty: not known.
struct CheckFacts {
  std::string slurm_version = {};  // "22.05.8"
  std::string gcc_version = {};    // of the gcc in PATH: "12.2.0"
  std::string cuda_version = {};   // of the nvcc in PATH: "12.4"
  std::string torch_version = {};  // "2.4.1"
  int ephemeral_port_low = 32768;  // of ip_local_port_range
  std::string home = {};
  bool lockstep_launches = false;  // words that say how nodes meet are dropped then
  std::map<std::string, std::string, std::less<>> environment = {};
  // Relative paths are taken from where the job is handed in. Not set: nothing is looked up.
  std::function<bool(const std::string&)> is_folder = {};
  std::function<bool(const std::string&)> is_file = {};
  std::function<std::optional<std::string>(const std::string&)> read_file = {};  // at most 1 MiB
  std::function<std::vector<std::string>(const std::string&)> list_folder = {};
};

// Where it can be decided.
enum class DecidedAt : std::uint8_t {
  script,      // here
  partly,      // what can be seen here; the rest in the allocation
  allocation,  // only on the nodes: the pre-flight of the job does it
};

// What a lint is about.
enum class Concerns : std::uint8_t {
  every_job,
  own_script,  // scripts, also where Lockstep launches what they launch
  own_launch,  // scripts that start their ranks themselves: where Lockstep does it, it cannot
               // happen
};

class Findings;

struct Lint {
  int number = 0;  // in docs/slurm.md
  std::string_view name;
  std::string_view mistake;  // one line, for the table
  Severity severity = Severity::warning;
  DecidedAt decided_at = DecidedAt::script;
  // Which jobs it is about.
  Concerns concerns = Concerns::every_job;
  void (*look)(const JobScript& script, const CheckFacts& facts, Findings& found) = nullptr;
};

// By number.
std::span<const Lint> lints();

struct CheckOptions {
  bool lockstep_launches =
      false;  // leave out what is about own_launch, without a script own_script
  bool is_script = true;
};
// In the order of the lines.
std::vector<Finding> check_job(const JobScript& script, const CheckFacts& facts,
                               const CheckOptions& options = {});

// What a lint reports to.
class Findings {
 public:
  Findings(const JobScript& script, std::vector<Finding>& all) : script_(script), all_(all) {}

  void begin(const Lint& lint) { lint_ = &lint; }
  // Of the severity that the table has, or another one.
  void add(int line, std::string what, std::string why, std::string fix);
  void add(Severity severity, int line, std::string what, std::string why, std::string fix);
  // In another file than the script.
  void add_in(std::string file, int line, std::string what, std::string why, std::string fix);

 private:
  const JobScript& script_;
  std::vector<Finding>& all_;
  const Lint* lint_ = nullptr;
};

}  // namespace lockstep::slurm
