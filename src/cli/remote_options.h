// What `lockstep run --on` adds to a run: where, what is brought there, and how it is followed.
#pragma once

#include "base/error.h"
#include "cli/environment_options.h"
#include "cli/options.h"
#include "cli/place_options.h"
#include "cli/variable_options.h"

#include <functional>
#include <optional>
#include <string>
#include <vector>

namespace lockstep::cli {

struct RemoteOptions {
  std::optional<std::string> on;
  std::optional<std::string> hostfile;
  std::optional<std::string> include;
  std::optional<std::string> exclude;
  PlaceOptions place;
  VariableOptions variables;
  std::optional<std::string> sync;  // SRC[:DST], or "none"
  bool force = false;               // of the sync
  std::vector<std::string> install;
  EnvironmentOptions environment;  // of install
  std::optional<std::string> folder;
  bool detach = false;
  bool json = false;
  bool queue = false;
  std::optional<std::string> name;

  // Of a job that begins again on other rented machines; no options.
  std::string run_id = {};  // of all attempts
  int attempt = 0;
  std::function<bool()> hosts_gone = {};  // cluster::FollowRequest::gone
  // Hears the job's id before a host does; an error keeps it from being started.
  std::function<Status(const std::string& job)> on_job = {};
  bool follows = false;         // for somebody who is gone: asked to end, it leaves the job alone
  bool own_environment = true;  // it is that of the command that was typed

  bool elsewhere() const { return on || hostfile; }
};

std::vector<Group> remote_groups();
std::vector<Option> remote_rows();  // of all of these groups
RemoteOptions remote_options(const Table& table, const Parsed& parsed);

// The words for `lockstep run` on a host that say what was asked here: every option that was given,
// but those of remote_rows() and the ones in `without`, and the script with its arguments.
std::vector<std::string> run_words(const Table& table, const Parsed& parsed,
                                   const std::vector<std::string_view>& without);
// All of them: what parse_options() makes `parsed` of once more, wherever that is.
std::vector<std::string> all_words(const Table& table, const Parsed& parsed);

}  // namespace lockstep::cli
