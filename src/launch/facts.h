// The facts about this machine that make_launch_config() needs, as functions, so that the rules
// stay pure. Set every member.
#pragma once

#include "base/error.h"

#include <functional>
#include <optional>
#include <string>
#include <vector>

namespace lockstep::launch {

// The content and mode of a file that holds a secret.
struct SecretFile {
  std::string bytes;
  unsigned mode = 0;  // permission bits
};

enum class FileKind { missing, file, directory, other };

struct Facts {
  std::function<std::optional<std::string>(const std::string& name)> env;
  std::function<int()> cpu_count;  // CPUs usable by this process, by affinity
  std::function<int()> gpu_count;  // CUDA or ROCm; 0: none
  std::function<int()> xpu_count;
  // Returns the number of devices that an extension adds to PyTorch ("npu"), asked of the torch of
  // this Python. kind: the extension's name; empty: any. nullopt: torch is missing, or has no such
  // extension.
  std::function<std::optional<int>(const std::string& python, const std::string& kind)>
      custom_devices;
  std::function<FileKind(const std::string& path)> file_kind;  // follows links
  // Returns the first `limit` bytes of a plain file.
  std::function<Result<SecretFile>(const std::string& path, std::size_t limit)> secret_file;
  // Finds a program as execvp() does: a name with a slash is a path, any other name is searched in
  // PATH. The Error names the program: "/no/such: No such file or directory".
  std::function<Result<std::string>(const std::string& name)> find_program;
  std::function<std::string()> uuid;
  // Returns the absolute folders of this program: the folder of the called path and, if a link led
  // elsewhere, the folder of the file.
  std::function<std::vector<std::string>()> program_folders;
};

}  // namespace lockstep::launch
