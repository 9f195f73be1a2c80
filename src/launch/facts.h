// What make_launch_config() asks of the machine, so that the rules themselves are pure. Every
// member must be set.
#pragma once

#include "base/error.h"

#include <functional>
#include <optional>
#include <string>
#include <vector>

namespace lockstep::launch {

// A file as far as a secret may be in it.
struct SecretFile {
  std::string bytes;
  unsigned mode = 0;  // permission bits
};

enum class FileKind { missing, file, directory, other };

struct Facts {
  std::function<std::optional<std::string>(const std::string& name)> env;
  std::function<int()> cpu_count;  // usable by this process: affinity, not what is built in
  std::function<int()> gpu_count;  // CUDA or ROCm; 0: none
  std::function<int()> xpu_count;
  // The number of devices of the kind that an extension has added to PyTorch ("npu"), asked of this
  // Python's torch. kind: the name that the extension must have; empty: any. nullopt: torch is
  // missing, or has another extension or none.
  std::function<std::optional<int>(const std::string& python, const std::string& kind)>
      custom_devices;
  std::function<FileKind(const std::string& path)> file_kind;  // following links
  // A plain file's first `limit` bytes.
  std::function<Result<SecretFile>(const std::string& path, std::size_t limit)> secret_file;
  // As execvp: a name with a slash is itself, another is sought in PATH. The Error names the
  // program: "/no/such: No such file or directory".
  std::function<Result<std::string>(const std::string& name)> find_program;
  std::function<std::string()> uuid;
  // Where this program was called from and, where a link led there, where its file is; absolute.
  std::function<std::vector<std::string>()> program_folders;
};

}  // namespace lockstep::launch
