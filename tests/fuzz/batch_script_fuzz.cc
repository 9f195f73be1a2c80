// A user's batch script, hostfile and ds_config on any bytes: what is read stays within bounds,
// lines exist, and every finding can be printed.
#include "base/text.h"
#include "slurm/ds_config.h"
#include "slurm/lint_rows.h"
#include "slurm/lints.h"
#include "slurm/old_environment.h"
#include "slurm/old_script.h"
#include "slurm/old_step.h"

#include <stddef.h>
#include <stdint.h>

#include <algorithm>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace {
using namespace lockstep::slurm;  // NOLINT

void check_line(int line, std::string_view text) {
  LOCKSTEP_CHECK(line >= 0 && line <= 1 + std::count(text.begin(), text.end(), '\n'));
}

// The bytes as a script that lockstep submit takes: all of them are in what is submitted.
void check_old_script(std::string_view text, const SbatchFile& file) {
  (void)is_batch_script("x", text);
  (void)settings_from_text(text);
  const auto plan = plan_job(
      {.settings = file.settings, .spares = 1, .folder = "/w", .name = "x", .old_script = true});
  if (!plan) return;
  const auto made = old_script_text(
      *plan, text, {.version = "1", .binary = "/b", .folder = "/f", .command = "c"});
  if (!made) return;
  LOCKSTEP_CHECK(made->size() > text.size());
  // Lines are added in one place.
  std::size_t same = 0;
  while (same < text.size() && (*made)[same] == text[same])
    ++same;
  LOCKSTEP_CHECK(made->ends_with(text.substr(same)));
}

// The lines as words of srun, and as variables.
void check_old_step(std::string_view text) {
  const std::vector<std::string> words = lockstep::split(text, '\n');
  const auto variable = [&](std::string_view) { return std::optional(words.back()); };
  const auto file = [&](const std::string&) { return std::optional(std::string(text)); };
  const OldStep step =
      read_old_step(words, {.nodes = 2, .spares = 1, .variable = variable, .read_file = file});
  LOCKSTEP_CHECK(step.tasks_per_node >= 1);
  LOCKSTEP_CHECK(step.kind == StepKind::pass || step.why.empty());
  Variables variables = variables_of(words);
  hide_spares({"n1", "n2", "n3"}, 1, variables);
  show_stand_ins("/f", "bin", variables);
  keep_for_tasks(2, variables);
  become_task("1", variables);
  hide_stand_ins(variables);
  LOCKSTEP_CHECK(!variables.contains("LOCKSTEP_SLURM_FOLDER"));
}
}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  const std::string_view text(reinterpret_cast<const char*>(data), size);
  const SbatchFile file = read_sbatch_file(text);
  for (const Setting& each : file.settings)
    check_line(each.line, text);
  for (const ScriptProblem& each : file.problems)
    check_line(each.line, text);
  CheckFacts facts;
  facts.home = "/home/u";
  // Every file that a script names is the script itself.
  facts.read_file = [text](const std::string&) { return std::string(text); };
  facts.is_folder = [](const std::string&) { return false; };
  facts.list_folder = [](const std::string&) {
    return std::vector<std::string>{"global_step1", "zero_pp_rank_3_optim_states"};
  };
  for (const Finding& each : check_job(read_job_script("job.sh", text), facts)) {
    check_line(each.line, text);
    LOCKSTEP_CHECK(!each.what.empty() && !text_of(each).empty());
  }
  check_old_script(text, file);
  check_old_step(text);
  if (const auto config = read_ds_config(text))
    (void)check_ds_config(*config, read_ds_arguments({}, 8));
  return 0;
}
