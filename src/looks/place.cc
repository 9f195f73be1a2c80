#include "looks/place.h"

#include "base/fnv.h"
#include "base/text.h"

#include <fmt/core.h>

#include <algorithm>
#include <array>

namespace lockstep::looks {
namespace {

constexpr std::size_t kMostName = 64;

// Parts of PyTorch, for a PyTorch that was built in a source tree. A user's folder may be named
// torch too, so the name alone is not enough.
constexpr std::array<std::string_view, 14> kTorchParts = {
    "/torch/autograd/",        "/torch/cuda/",      "/torch/distributed/",
    "/torch/utils/",           "/torch/nn/",        "/torch/optim/",
    "/torch/_dynamo/",         "/torch/_inductor/", "/torch/_functorch/",
    "/torch/multiprocessing/", "/torch/_tensor.py", "/torch/_ops.py",
    "/torch/serialization.py", "/torch/func/"};

std::string_view base_name(std::string_view file) {
  return file.substr(file.rfind('/') + 1);
}

// A worker may name its files as it likes, and every frame of every look is searched: only the end
// of a name counts. No package has so many folders in each other.
constexpr std::size_t kSearchedBytes = 512;
constexpr int kSearchedFolders = 32;

// Returns where the last `part` begins. part: begins with a slash. The library's rfind() compares
// at every byte, which costs ten times more.
std::size_t last_part(std::string_view file, std::string_view part) {
  std::size_t at = file.rfind('/');
  for (int folder = 0; at != std::string_view::npos && folder < kSearchedFolders; ++folder) {
    if (file.substr(at).starts_with(part)) return at;
    at = at == 0 ? std::string_view::npos : file.rfind('/', at - 1);
  }
  return std::string_view::npos;
}

// Returns the part after the last "/lib/python3.11/".
std::optional<std::string_view> standard_library_path(std::string_view file) {
  const std::size_t at = last_part(file, "/lib/python3.");
  if (at == std::string_view::npos) return std::nullopt;
  const std::size_t end = file.find('/', at + std::string_view("/lib/python3.").size());
  if (end == std::string_view::npos) return std::nullopt;
  return file.substr(end + 1);
}

// A function that asks again and again whether the other ranks have come. Its lines and the
// functions that it calls are not progress. PyTorch 1.13 asks a hundred times a second.
bool is_poll(const stacks::Frame& frame) {
  return frame.function.ends_with("_store_based_barrier") &&
         frame.file.ends_with("torch/distributed/distributed_c10d.py");
}

// Shortens a long path: "torch/.../data/dataloader.py".
std::string shortened(std::string_view path) {
  if (std::count(path.begin(), path.end(), '/') < 3) return std::string(path);
  const std::size_t first = path.find('/');
  const std::size_t last = path.rfind('/', path.rfind('/') - 1);
  return fmt::format("{}/...{}", path.substr(0, first), path.substr(last));
}

}  // namespace

std::optional<std::string_view> library_path(std::string_view file) {
  if (file.starts_with('<') && file.ends_with('>')) {
    // Code without a file: "<frozen runpy>" is Python's own, "<string>" and "<stdin>" the user's.
    return file.starts_with("<frozen ") ? std::optional(file) : std::nullopt;
  }
  file.remove_prefix(file.size() - std::min(file.size(), kSearchedBytes));
  for (const std::string_view folder : {"/site-packages/", "/dist-packages/"})
    if (const std::size_t at = last_part(file, folder); at != std::string_view::npos)
      return file.substr(at + folder.size());
  for (const std::string_view part : kTorchParts)
    if (const std::size_t at = last_part(file, part); at != std::string_view::npos)
      return file.substr(at + 1);
  return standard_library_path(file);
}

std::string_view last_name(std::string_view function) {
  return function.substr(function.rfind('.') + 1);
}

Place place_of(const stacks::ThreadStack& stack) {
  Place place;
  if (stack.frames.empty()) return place;
  auto shown = std::find_if(stack.frames.begin(), stack.frames.end(),
                            [](const auto& frame) { return !library_path(frame.file); });
  if (shown == stack.frames.end()) shown = stack.frames.begin();
  place.line = fmt::format("{}:{}", printable(base_name(shown->file), kMostName), shown->line);
  place.function = printable(last_name(shown->function), kMostName);
  if (shown != stack.frames.begin())
    if (const auto path = library_path(stack.frames.front().file))
      place.library = printable(shortened(*path), kMostName);
  return place;
}

std::uint64_t stack_key(const stacks::ThreadStack& stack) {
  if (stack.frames.empty()) return 0;
  std::string text;
  for (const auto& frame : stack.frames) {
    if (is_poll(frame)) {
      text = frame.function;
      continue;
    }
    text += fmt::format("{}\n{}\n{}\n", frame.function,
                        library_path(frame.file).value_or(base_name(frame.file)), frame.line);
  }
  return fnv1a(text);
}

}  // namespace lockstep::looks
