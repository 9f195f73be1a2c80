#include "cli/remote_options.h"

#include <algorithm>

namespace lockstep::cli {

namespace {

Group own_rows() {
  return {"On other machines",
          {
              {.name = "on",
               .field = into<&RemoteOptions::on>,
               .metavar = "CLUSTER|HOST|local",
               .help = "run there, one agent per host under one job; see docs/remote.md",
               .own = true},
              {.name = "sync",
               .field = into<&RemoteOptions::sync>,
               .metavar = "DIR|none",
               .help = "what is brought there first",
               .shown_default = "the project around this folder",
               .own = true},
              {.name = "install",
               .field = into<&RemoteOptions::install>,
               .metavar = "SPEC",
               .help = "packages to install there, as lockstep install takes them; may be given "
                       "again",
               .own = true},
              {.name = "cwd",
               .field = into<&RemoteOptions::folder>,
               .metavar = "DIR",
               .help = "folder there, relative to the home",
               .shown_default = "this folder's place in the synced project",
               .own = true},
              {.name = "detach",
               .field = into<&RemoteOptions::detach>,
               .help = "print the job's id and return at once",
               .own = true},
              {.name = "queue",
               .field = into<&RemoteOptions::queue>,
               .help = "wait for this user's earlier --queue jobs on the hosts",
               .own = true},
              {.name = "name",
               .field = into<&RemoteOptions::name>,
               .metavar = "NAME",
               .help = "of the job, for lockstep jobs and logs",
               .shown_default = "the script's",
               .own = true},
          }};
}

}  // namespace

Group remote_group() {
  Group group = own_rows();
  std::vector<Option> shared = variable_rows();
  for (const Option& option : place_group().options)
    if (option.field.owner != nullptr) shared.push_back(option);
  for (Option& option : shared) {
    option.own = true;
    group.options.push_back(option);
  }
  return group;
}

RemoteOptions remote_options(const Table& table, const Parsed& parsed) {
  RemoteOptions options;
  fill(table, parsed, options);
  fill(table, parsed, options.place);
  fill(table, parsed, options.variables);
  return options;
}

std::vector<std::string> run_words(const Table& table, const Parsed& parsed,
                                   const std::vector<std::string_view>& without) {
  std::vector<std::string_view> left_out = without;
  for (const Option& option : remote_group().options)
    left_out.push_back(option.name);
  std::vector<std::string> words;
  for (const Option* option : options_of(table)) {
    const auto value = parsed.text(option->name);
    if (!value || std::find(left_out.begin(), left_out.end(), option->name) != left_out.end())
      continue;
    std::string word = "--" + std::string(option->name);
    if (option->kind != Kind::flag) word += "=" + *value;
    words.push_back(std::move(word));
  }
  words.emplace_back("--");
  words.push_back(parsed.script.value_or(""));
  words.insert(words.end(), parsed.script_args.begin(), parsed.script_args.end());
  return words;
}

}  // namespace lockstep::cli
