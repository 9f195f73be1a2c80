#include "slurm/batch_script.h"

#include "base/text.h"
#include "slurm/sbatch_file.h"

#include <fmt/core.h>

namespace lockstep::slurm {
namespace {

// Returns the name of the copied binary, different in each run. All users may write to /tmp, so the
// name has a random part: another user must not prepare a file there.
std::string carried_binary(const ScriptFacts& facts) {
  return fmt::format(R"("/tmp/lockstep-$SLURM_JOB_ID-${{SLURM_RESTART_COUNT:-0}}-{}")",
                     facts.carry);
}

// Starts one agent per node; agents start the ranks.
std::string srun_line(const JobPlan& plan, const ScriptFacts& facts) {
  const std::string nodes =
      plan.nodes ? std::to_string(*plan.nodes + plan.spares) : "$SLURM_JOB_NUM_NODES";
  std::string line = fmt::format("srun --nodes={0} --ntasks={0} --ntasks-per-node=1", nodes);
  if (plan.cpus) line += fmt::format(" --cpus-per-task={}", *plan.cpus);
  // Keep srun from ending the step when one agent ends: the agents tell each other about failures,
  // and outlive each other.
  line += " --no-kill --kill-on-bad-exit=0 --wait=0";
  if (!facts.carry.empty())
    line += " " + carried_binary(facts);
  else
    line += " \"$lockstep\"";
  line += R"( \
  slurm-node --folder "$folder")";
  if (!facts.carry.empty()) line += " --drop-binary";
  if (!facts.node.empty()) line += " " + shell_join(facts.node);
  return line + " --";
}

// Makes a comment of one line. A line break in the command would otherwise become a command of the
// script.
std::string comment(std::string_view text) {
  return "# " + printable(text, 1000) + "\n";
}

std::string nodes_words(const JobPlan& plan) {
  if (!plan.nodes) return "All nodes of the allocation train.";
  std::string text =
      *plan.nodes == 1 ? "1 node trains" : fmt::format("{} nodes train", *plan.nodes);
  if (plan.spares > 0)
    text +=
        fmt::format("; {} {} for one that fails", plan.spares, plan.spares == 1 ? "waits" : "wait");
  return text + ".";
}

}  // namespace

std::string rerun_words(const JobPlan& plan) {
  std::string words;
  if (plan.requeue) words += " --requeue";
  if (plan.chain) words += fmt::format(" --chain {}", *plan.chain);
  if (plan.lead_s) words += fmt::format(" --lead {}", *plan.lead_s);
  return words;
}

std::string chain_words(int most) {
  return fmt::format("At the time limit the job is queued again, or a new job continues{}.",
                     most == 0   ? ""
                     : most == 1 ? ", once"
                                 : fmt::format(", {} times at most", most));
}

std::string batch_script(const JobPlan& plan, const ScriptFacts& facts) {
  std::string text = "#!/bin/sh\n";
  for (const Setting& setting : plan.settings)
    text += "#SBATCH " + directive_quote(word_of(setting)) + "\n";
  text +=
      "\n" + comment(fmt::format("Written by lockstep {} for: {}", facts.version, facts.command));
  text += comment(nodes_words(plan));
  if (plan.chain) text += comment(chain_words(*plan.chain));
  text += "lockstep=" + shell_quote(facts.binary) + "\n";
  text += "folder=" + shell_quote(facts.folder);
  // Each task has a folder of its own. All arrays of a sweep have this script, and each its
  // argument.
  if (facts.first_row)
    text += fmt::format("/rows/$((SLURM_ARRAY_TASK_ID + ${{1:-{}}}))", *facts.first_row);
  text += "\n";
  // exec, so that Slurm's signals to the batch step reach Lockstep and not a waiting shell.
  text += "exec \"$lockstep\" slurm-batch --folder \"$folder\"";
  text += rerun_words(plan);
  if (!facts.carry.empty()) text += " --carry " + carried_binary(facts);
  if (facts.unless_seen) text += " --unless-seen";
  text += " -- \\\n  " + srun_line(plan, facts) + " \\\n  " + shell_join(facts.run) + "\n";
  return text;
}

}  // namespace lockstep::slurm
