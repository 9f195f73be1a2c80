// The options that `lockstep run --on` adds: the hosts, the files and packages to bring there, and
// how the job is followed.
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
  std::vector<std::string> back;  // paths of the project to bring back at the job's end
  bool queue = false;
  bool mixed_hosts = false;
  std::optional<std::string> name;

  // The fields from here on are not options. The course of a job on rented machines sets them.
  std::string run_id = {};  // the same for all attempts
  std::string job_id = {};  // likewise; empty: a new one
  int attempt = 0;
  std::function<bool()> hosts_gone = {};  // jobs::on_hosts::FollowRequest::gone
  // Called with the job's id before a host is told. An error keeps the job from starting.
  std::function<Status(const std::string& job)> on_job = {};
  // Called once the hosts have the job. ahead: the earlier jobs in the queue.
  std::function<void(const std::vector<std::string>& ahead)> on_started = {};
  bool as_received = false;  // project::SyncOptions::as_received
  bool is_course = false;    // this process is the course of a rented job, not a command
  // Values for --env NAME and --secret NAME; empty: those of this process's environment.
  std::function<std::optional<std::string>(const std::string& name)> own_variable = {};

  bool elsewhere() const { return on || hostfile; }
};

// Return the options for the help, in groups, and the same options in one list.
std::vector<Group> remote_groups();
std::vector<Option> remote_rows();
// Returns the values of all these options, also those of the nested structs.
RemoteOptions remote_options(const Table& table, const Parsed& parsed);

// Returns the words of `lockstep run` for a host: every given option, except those of remote_rows()
// and of `without`, and the script with its arguments.
std::vector<std::string> run_words(const Table& table, const Parsed& parsed,
                                   const std::vector<std::string_view>& without);
// Returns all words, except the options in `without`: parse_options() makes `parsed` of them again,
// also in another process or on another machine.
std::vector<std::string> all_words(const Table& table, const Parsed& parsed,
                                   const std::vector<std::string_view>& without = {});

}  // namespace lockstep::cli
