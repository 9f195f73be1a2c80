// lockstep slurm-batch: what a submitted job's script becomes on the first node. Scripts call it,
// people do not.
#include "base/text.h"
#include "cli/subcommand.h"
#include "proc/signals.h"
#include "slurm/batch.h"

#include <signal.h>

#include <string>
#include <vector>

namespace lockstep::cli {
namespace {

constexpr int kBadInput = 2;

struct SlurmOptions {
  std::string folder;
  std::string carry;
  bool requeue = false;
  int lead_s = 0;
  bool script = false;
};

// "--folder F [--carry PATH] [--requeue] [--lead S] [--script] -- WORD ...". Our script wrote them.
Result<SlurmOptions> read_own(const Args& words, std::vector<std::string>& rest) {
  SlurmOptions options;
  std::size_t at = 0;
  for (; at + 1 < words.size() && words[at] != "--"; ++at) {
    if (words[at] == "--requeue")
      options.requeue = true;
    else if (words[at] == "--script")
      options.script = true;
    else if (words[at] == "--folder")
      options.folder = words[++at];
    else if (words[at] == "--lead")
      options.lead_s = static_cast<int>(parse_int(words[++at]).value_or(0));
    else if (words[at] == "--carry")
      options.carry = words[++at];
    else
      break;
  }
  if (at >= words.size() || words[at] != "--" || at + 1 == words.size() ||
      !options.folder.starts_with('/'))
    return fail(Errc::invalid_input,
                "scripts that lockstep submit wrote start this, people do not");
  rest.assign(words.begin() + static_cast<std::ptrdiff_t>(at) + 1, words.end());
  return options;
}

int batch_command(const Call& call) {
  constexpr const char* kName = "lockstep slurm-batch";
  proc::block(proc::handled_signals());
  signal(SIGCHLD, SIG_DFL);
  slurm::BatchCall batch;
  const auto options = read_own(call.words, batch.step);
  if (!options) {
    print_error(kName, options.error());
    return kBadInput;
  }
  batch.folder = options->folder;
  batch.carry = options->carry;
  batch.requeue = options->requeue;
  batch.lead_s = options->lead_s;
  if (options->script) batch.role = slurm::BatchRole::script;
  const auto code = slurm::Batch(batch).run();
  if (code) return *code;
  print_error(kName, code.error());
  return 1;
}

}  // namespace

extern constinit const Subcommand kSlurmBatch{.name = "slurm-batch",
                                              .summary = "what the script of a job becomes",
                                              .run = batch_command,
                                              .listed = false};

}  // namespace lockstep::cli
