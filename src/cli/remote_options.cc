#include "cli/remote_options.h"

#include <algorithm>

namespace lockstep::cli {

Group remote_group() {
  return {"On other machines",
          {
              {.name = "on",
               .field = into<&RemoteOptions::on>,
               .metavar = "CLUSTER|HOST|local",
               .help = "run there, one agent per host under one job; see docs/remote.md",
               .own = true},
              {.name = "nodes",
               .field = into<&RemoteOptions::nodes>,
               .metavar = "all|0|1-3",
               .help = "nodes of the cluster",
               .shown_default = "all",
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
              {.name = "env",
               .field = into<&RemoteOptions::env>,
               .metavar = "NAME=VALUE",
               .help = "variable of the job; NAME alone takes the value from here; may be given "
                       "again",
               .own = true},
              {.name = "env-file",
               .field = into<&RemoteOptions::env_file>,
               .metavar = "FILE",
               .help = "lines NAME=VALUE, as docker takes them",
               .own = true},
              {.name = "secret",
               .field = into<&RemoteOptions::secrets>,
               .metavar = "NAME",
               .help = "variable whose value is taken from here and is never written down; may be "
                       "given again",
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
              {.name = "user",
               .field = into<&RemoteOptions::user>,
               .metavar = "USER",
               .help = "log in as this user",
               .shown_default = "ssh's own choice",
               .own = true},
              {.name = "key-path",
               .field = into<&RemoteOptions::key_path>,
               .metavar = "FILE",
               .help = "private key",
               .shown_default = "ssh's own choice",
               .own = true},
              {.name = "jump",
               .field = into<&RemoteOptions::jump>,
               .metavar = "HOST",
               .help = "connect through this host",
               .own = true},
          }};
}

std::vector<std::string> run_words(const Table& table, const Parsed& parsed,
                                   const std::vector<std::string_view>& without) {
  std::vector<std::string> words;
  for (const Option* option : options_of(table)) {
    const auto value = parsed.text(option->name);
    const bool ours =
        option->field.owner != nullptr && *option->field.owner == typeid(RemoteOptions);
    if (!value || ours || std::find(without.begin(), without.end(), option->name) != without.end())
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
