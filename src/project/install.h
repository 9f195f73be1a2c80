// Puts packages into the environment of a project on hosts: `lockstep install` is this, and
// `run --install` begins with it.
#pragma once

#include "base/error.h"
#include "hosts/command_run.h"
#include "project/project.h"
#include "setup/request.h"
#include "setup/spec.h"

#include <cstddef>
#include <functional>
#include <string>
#include <string_view>
#include <vector>

namespace lockstep::project {

struct InstallOptions {
  std::vector<std::string> specs;  // as setup/spec.h reads them
  setup::SetupRequest::Choice choice = setup::SetupRequest::Choice::project;
  std::string place = {};   // of the venv, or name of the conda environment
  std::string python = {};  // the interpreter there
  bool force = false;       // no step is skipped
  bool use_uv = true;
  bool overlay = false;  // wheels go into folders of their own, not into the environment
  // Takes what the hosts say about it, in place of stderr.
  std::function<void(std::size_t host, std::string_view bytes)> on_words = {};
};

struct HostInstall {
  std::string name;
  int code = 0;  // 0, the failed step's, or 255: the host was not reached
  std::string error = {};
  std::string hint = {};
  setup::SetupAnswer answer = {};  // where the host gave one
  bool show_tail = false;          // the last lines of what failed have not been shown yet
};

// Whether it needs files of the project on the hosts.
bool needs_files(const std::vector<setup::Spec>& specs);

// All hosts at once; what their tools say goes to stderr. Fails, with nothing started, for specs
// that make no sense (invalid_input) and wheels that can't be read. The signals of
// proc::handled_signals() must be blocked.
Result<std::vector<HostInstall>> install_packages(const std::vector<hosts::HostPlace>& hosts,
                                                  const Project& project,
                                                  const InstallOptions& options);

// The exit code of all: the first that is not 0.
int code_of(const std::vector<HostInstall>& installs);

// "2 done, 1 unchanged; /home/me/.local/share/lockstep/venvs/code-0123", for people.
std::string summary_of(const HostInstall& install);

}  // namespace lockstep::project
