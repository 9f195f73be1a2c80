// What `lockstep run --on` adds to a run: where, what is brought there, and how it is followed.
#pragma once

#include "cli/options.h"

#include <optional>
#include <string>
#include <vector>

namespace lockstep::cli {

struct RemoteOptions {
  std::optional<std::string> on;
  std::optional<std::string> nodes;
  std::optional<std::string> sync;  // a folder, or "none"
  std::vector<std::string> install;
  std::optional<std::string> folder;
  std::vector<std::string> env;
  std::optional<std::string> env_file;
  std::vector<std::string> secrets;
  bool detach = false;
  bool queue = false;
  std::optional<std::string> name;
  std::optional<std::string> user;
  std::optional<std::string> key_path;
  std::optional<std::string> jump;
};

Group remote_group();

// The words for `lockstep run` on a host that say what was asked here: every option that was given,
// but those of RemoteOptions and the ones in `without`, and the script with its arguments.
std::vector<std::string> run_words(const Table& table, const Parsed& parsed,
                                   const std::vector<std::string_view>& without);

}  // namespace lockstep::cli
