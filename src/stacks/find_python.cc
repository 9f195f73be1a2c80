// Asks each candidate for _PyRuntime, then for its version.
#include "stacks/find_python.h"

#include "stacks/debug_offsets.h"

namespace lockstep::stacks {
namespace {

std::string text_of(Version version) {
  return std::to_string(version.major) + "." + std::to_string(version.minor);
}

// From 3.11 on, Py_Version tells. Before, only the name of the file does.
std::optional<Version> version_of(Memory& process, const RuntimeAt& at, const MappedFile& file) {
  if (at.version != 0)
    if (const auto hex = process.value<std::uint64_t>(at.version))
      return Version{static_cast<int>((*hex >> 24) & 0xff), static_cast<int>((*hex >> 16) & 0xff)};
  return version_in_name(file.path);
}

Interpreter interpreter_at(Memory& process, const RuntimeAt& at, const MappedFile& file) {
  Interpreter made{.runtime = at.runtime, .version = {}, .layout = {}};
  // From 3.13 on, CPython describes its own offsets. Only this description tells a free-threaded
  // build.
  if (const auto self = self_description(process, at.runtime)) {
    made.version = text_of(self->version);
    made.layout = self->layout;
  } else if (const auto version = version_of(process, at, file)) {
    made.version = text_of(*version);
    made.layout = layout_of(*version);
  }
  return made;
}

}  // namespace

std::optional<Interpreter> find_python(Memory& process, const std::vector<MappedFile>& files,
                                       const OpenFile& open_file) {
  // Ask all files in memory first: open_file() may wait for a file system, or lack a capability.
  for (const MappedFile& file : files)
    if (const auto at = runtime_in_memory(process, file.start))
      return interpreter_at(process, *at, file);
  for (const MappedFile& file : files)
    if (const auto bytes = open_file(file))
      if (const auto at = runtime_in_file(*bytes, file.start))
        return interpreter_at(process, *at, file);
  return {};
}

}  // namespace lockstep::stacks
