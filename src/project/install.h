// Puts packages into the environment of a project on hosts, for `lockstep install` and for `run`
// with --install.
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
  std::vector<std::string> specs;  // syntax: setup/spec.h
  setup::SetupRequest::Choice choice = setup::SetupRequest::Choice::project;
  std::string place = {};   // path of the venv, or name of the conda environment
  std::string python = {};  // the interpreter on the host; empty: the usual one
  bool force = false;       // no step is skipped
  bool use_uv = true;
  bool overlay = false;  // wheels go into folders of their own, not into the environment
  // Takes the hosts' progress output, which otherwise goes to stderr.
  std::function<void(std::size_t host, std::string_view bytes)> on_words = {};
  hosts::RunCommand run_command = hosts::over_links();
};

struct HostInstall {
  std::string name;
  int code = 0;  // 0; the code of the failed step; or 255: the host was not reached
  std::string error = {};
  std::string hint = {};
  setup::SetupAnswer answer = {};  // empty if the host gave no answer
  bool show_tail = false;          // the last lines of the failed tool have not been shown yet
};

// Returns whether a spec needs files of the project on the hosts, so that a sync must come first.
bool needs_files(const std::vector<setup::Spec>& specs);

// Installs on all hosts at once, and returns one result per host. Output of the tools goes to
// stderr. Fails before anything starts if a spec is not valid (invalid_input) or a wheel cannot be
// read. The signals of proc::handled_signals() must be blocked.
Result<std::vector<HostInstall>> install_packages(const std::vector<hosts::HostPlace>& hosts,
                                                  const Project& project,
                                                  const InstallOptions& options);

// Returns the exit code for all hosts: the first that is not 0.
int code_of(const std::vector<HostInstall>& installs);

// Returns "2 done, 1 unchanged; /home/me/.local/share/lockstep/venvs/code-0123", for people.
std::string summary_of(const HostInstall& install);

}  // namespace lockstep::project
