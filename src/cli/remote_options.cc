#include "cli/remote_options.h"

#include "cli/on_demand_options.h"

#include <fmt/core.h>

#include <algorithm>

namespace lockstep::cli {

namespace {

Group own_rows() {
  return {"On other machines",
          {
              {.name = "on",
               .field = into<&RemoteOptions::on>,
               .metavar = "CLUSTER|HOST|local",
               .help = "run on these hosts, with an agent on each; see docs/remote.md",
               .shapes_job = true},
              {.name = "hostfile",
               .field = into<&RemoteOptions::hostfile>,
               .metavar = "FILE",
               .help = "run on DeepSpeed's hosts: NAME slots=N a line; see docs/launchers.md",
               .shapes_job = true},
              {.name = "include",
               .field = into<&RemoteOptions::include>,
               .metavar = "NAME[:SLOT,...][@...]",
               .help = "only these hosts and slots of --hostfile"},
              {.name = "exclude",
               .field = into<&RemoteOptions::exclude>,
               .metavar = "NAME[:SLOT,...][@...]",
               .help = "all of --hostfile but these"},
              {.name = "cwd",
               .field = into<&RemoteOptions::folder>,
               .metavar = "DIR",
               .help = "folder there, relative to the home",
               .shown_default = "this folder's place in the synced project"},
              {.name = "detach",
               .field = into<&RemoteOptions::detach>,
               .help = "print the job's id and return at once"},
              {.name = "json",
               .field = into<&RemoteOptions::json>,
               .help = "for programs, with --detach: the job's id, state and nodes as one object"},
              {.name = "queue",
               .field = into<&RemoteOptions::queue>,
               .help = "wait for this user's earlier jobs on the hosts"},
              {.name = "mixed-hosts",
               .field = into<&RemoteOptions::mixed_hosts>,
               .help = "allow hosts of different processors (x86_64, aarch64) in one job"},
              {.name = "name",
               .field = into<&RemoteOptions::name>,
               .metavar = "NAME",
               .help = "the job's name, for lockstep jobs and logs",
               .shown_default = "the script's"},
          }};
}

Group brought_rows() {
  return {"Files and packages for other machines",
          {
              {.name = "sync",
               .field = into<&RemoteOptions::sync>,
               .metavar = "SRC[:DST]|none",
               .help = "the folder to bring there first, and its name there",
               .shown_default = "the project around this folder, to ~/NAME"},
              {.name = "force",
               .field = into<&RemoteOptions::force>,
               .help = "overwrite files there not sent by Lockstep, and take over the place of "
                       "another project"},
              {.name = "back",
               .field = into<&RemoteOptions::back>,
               .metavar = "PATH",
               .help = "bring this file or folder of the project back from node 0 when the job "
                       "ends, of a sweep from all nodes; may be given again"},
              {.name = "install",
               .field = into<&RemoteOptions::install>,
               .metavar = "SPEC",
               .help = "packages to install there, as for lockstep install; may be given again"},
          }};
}

// Returns the given options but those of left_out, then "--" and the script. Writes --NAME=VALUE,
// so that a value that begins with '-' is not read as an option. Includes values from the
// environment, because the other machine has other variables.
std::vector<std::string> words_without(const Table& table, const Parsed& parsed,
                                       const std::vector<std::string_view>& left_out) {
  std::vector<std::string> words;
  for (const Option* option : options_of(table)) {
    if (std::find(left_out.begin(), left_out.end(), option->name) != left_out.end()) continue;
    const std::string name = fmt::format("--{}", option->name);
    const auto list = parsed.lists.find(option->name);
    if (list != parsed.lists.end())
      for (const std::string& value : list->second)
        words.push_back(fmt::format("{}={}", name, value));
    else if (const auto value = parsed.text(option->name))
      words.push_back(option->kind == Kind::flag ? name : fmt::format("{}={}", name, *value));
  }
  words.emplace_back("--");
  words.push_back(parsed.script.value_or(""));
  words.insert(words.end(), parsed.script_args.begin(), parsed.script_args.end());
  return words;
}

}  // namespace

std::vector<Group> remote_groups() {
  Group where = own_rows();
  // Rows without a field are --help and --version, which `lockstep run` has itself.
  for (const Option& option : place_group().options)
    if (option.field.owner != nullptr) where.options.push_back(option);
  Group what = brought_rows();
  for (const auto& rows : {environment_rows(), variable_rows()})
    what.options.insert(what.options.end(), rows.begin(), rows.end());
  for (Group* group : {&where, &what})
    for (Option& option : group->options)
      option.own = true;
  return {where, what};
}

std::vector<Option> remote_rows() {
  std::vector<Option> rows;
  for (const Group& group : remote_groups())
    rows.insert(rows.end(), group.options.begin(), group.options.end());
  return rows;
}

RemoteOptions remote_options(const Table& table, const Parsed& parsed) {
  RemoteOptions options;
  fill(table, parsed, options);
  fill(table, parsed, options.place);
  fill(table, parsed, options.variables);
  fill(table, parsed, options.environment);
  return options;
}

std::vector<std::string> run_words(const Table& table, const Parsed& parsed,
                                   const std::vector<std::string_view>& without) {
  std::vector<std::string_view> left_out = without;
  for (const Option& option : remote_rows())
    left_out.push_back(option.name);
  for (const Option& option : on_demand_rows())
    left_out.push_back(option.name);
  return words_without(table, parsed, left_out);
}

std::vector<std::string> all_words(const Table& table, const Parsed& parsed,
                                   const std::vector<std::string_view>& without) {
  return words_without(table, parsed, without);
}

}  // namespace lockstep::cli
