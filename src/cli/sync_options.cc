#include "cli/sync_options.h"

#include "base/text.h"

#include <fmt/core.h>

namespace lockstep::cli {
namespace {

Table make_sync_table() {
  return {
      .program = "lockstep sync",
      .summary = "Brings a project's files to a host, or to all nodes of a cluster at once.",
      .examples =
          "lockstep sync gpus\n"
          "lockstep sync ubuntu@10.0.0.5 ~/code/model:work/model\n"
          "lockstep sync gpus --back outputs",
      .details =
          "Sends what git would commit and new files, without .git. Removes files there\n"
          "only if Lockstep sent the file earlier and the file is gone here. The project is\n"
          "git's top folder, else this folder, and lies in the home there, under the same name.\n"
          "SRC[:DST] names another folder, and another place there.",
      .epilog =
          "Exit code: 0 where all have the files, 255 where a host is not reached, 1 where\n"
          "the sync fails for another reason, 2 for bad input; for several nodes the first\n"
          "code other than 0.\n",
      .operands = Operands::names,
      .groups =
          {{"Options",
            {
                {.name = "back",
                 .field = into<&SyncCommandOptions::back>,
                 .metavar = "PATH",
                 .help = "bring this file or folder of the project back from the host, or "
                         "from node 0 (--nodes names another), to the same place here; newer files "
                         "here stay"},
                {.name = "dry-run",
                 .field = into<&SyncCommandOptions::dry_run>,
                 .help = "only show the planned changes",
                 .letter = 'n'},
                {.name = "force",
                 .field = into<&SyncCommandOptions::force>,
                 .help = "overwrite files not sent by Lockstep, take over the place of another "
                         "project; with --back, overwrite newer files"},
                {.name = "json", .field = into<&SyncCommandOptions::json>, .help = "for programs"},
            }},
           place_group()},
      .shown_names = "HOST|CLUSTER [SRC[:DST]]"};
}

}  // namespace

const Table& sync_table() {
  static const Table table = make_sync_table();
  return table;
}

Result<SyncCommandOptions> sync_options(const Parsed& parsed) {
  SyncCommandOptions options;
  fill(sync_table(), parsed, options);
  fill(sync_table(), parsed, options.places);
  if (parsed.names.empty())
    return fail(Errc::invalid_input, "no host is named", "write lockstep sync user@host");
  if (parsed.names.size() > 2)
    return fail(Errc::invalid_input,
                fmt::format("'{}' is one word too many", printable(parsed.names[2])));
  options.where = parsed.names[0];
  if (parsed.names.size() == 2) options.project = parsed.names[1];
  return options;
}

}  // namespace lockstep::cli
