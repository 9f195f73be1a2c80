// Helpers for tests of make_launch_config(): a machine made of tables, and short calls.
#pragma once

#include "launch/facts.h"
#include "launch/launch_config.h"
#include "launch/raw_options.h"

#include <map>
#include <string>
#include <vector>

namespace lockstep::launch {

using Words = std::vector<std::string>;
using Change = void (*)(RawOptions&);

// A machine with 6 CPUs, the files listed, and Python in PATH.
struct Machine {
  std::map<std::string, std::string> env;
  int gpus = 0;
  int xpus = 0;
  std::map<std::string, int> custom;  // devices of PyTorch's extensions
  std::map<std::string, FileKind> files = {
      {"T", FileKind::file},        {"dir", FileKind::directory},
      {"pkg", FileKind::directory}, {"pkg/__main__.py", FileKind::file},
      {"pipe", FileKind::other},    {"t0.py", FileKind::file},
      {"t1.py", FileKind::file}};
  std::map<std::string, std::string> programs = {{"python3", "/usr/bin/python3"},
                                                 {"echo", "/bin/echo"}};

  std::map<std::string, SecretFile> secrets;
  std::vector<std::string> program_folders;

  Facts facts() const {
    Facts facts;
    facts.env = [this](const std::string& name) -> std::optional<std::string> {
      const auto found = env.find(name);
      if (found == env.end()) return std::nullopt;
      return found->second;
    };
    facts.cpu_count = [] { return 6; };
    facts.gpu_count = [this] { return gpus; };
    facts.xpu_count = [this] { return xpus; };
    facts.custom_devices = [this](const std::string& python, const std::string& kind) {
      const auto found = python == "/usr/bin/python3" ? custom.find(kind) : custom.end();
      return found == custom.end() ? std::nullopt : std::optional(found->second);
    };
    facts.file_kind = [this](const std::string& path) {
      const auto found = files.find(path);
      return found == files.end() ? FileKind::missing : found->second;
    };
    facts.secret_file = [this](const std::string& path, std::size_t limit) -> Result<SecretFile> {
      const auto found = secrets.find(path);
      if (found == secrets.end())
        return fail(Errc::not_found, path + ": No such file or directory");
      return SecretFile{found->second.bytes.substr(0, limit), found->second.mode};
    };
    facts.find_program = [this](const std::string& name) -> Result<std::string> {
      const auto found = programs.find(name);
      if (found == programs.end())
        return fail(Errc::not_found, name + ": No such file or directory");
      return found->second;
    };
    facts.program_folders = [this] { return program_folders; };
    facts.uuid = [] { return std::string("fresh-uuid"); };
    return facts;
  }
};

inline Result<LaunchConfig> make(Change change, const Machine& machine = {}) {
  RawOptions raw;
  raw.script = "T";
  change(raw);
  return make_launch_config(raw, machine.facts());
}

inline void unchanged(RawOptions&) {}

}  // namespace lockstep::launch
