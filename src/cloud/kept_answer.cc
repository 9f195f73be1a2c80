#include "cloud/kept_answer.h"

#include "base/text.h"
#include "io/fd.h"
#include "io/own_folders.h"
#include "io/replace_file.h"

#include <fmt/core.h>

#include <unistd.h>

namespace lockstep::cloud {
namespace {

constexpr std::size_t kMostKept = 8U << 20;

std::string kept_path(const std::string& folder, std::string_view name) {
  return fmt::format("{}/{}.kept", folder, name);
}

}  // namespace

std::optional<KeptAnswer> kept_answer(const std::string& folder, std::string_view name,
                                      std::int64_t now_ms, std::int64_t most_age_ms) {
  if (folder.empty()) return std::nullopt;
  const auto bytes = io::read_file(kept_path(folder, name), kMostKept + 1);
  if (!bytes || bytes->size() > kMostKept) return std::nullopt;
  const std::size_t end = bytes->find('\n');
  if (end == std::string::npos) return std::nullopt;
  // The first line of the file has the time of the answer. A time in the future proves that the
  // clock was set back.
  const auto as_of = parse_int(std::string_view(*bytes).substr(0, end));
  if (!as_of || *as_of > now_ms || now_ms - *as_of > most_age_ms) return std::nullopt;
  return KeptAnswer{.text = bytes->substr(end + 1), .as_of_ms = *as_of};
}

void keep_answer(const std::string& folder, std::string_view name, std::string_view text,
                 std::int64_t now_ms) {
  // Leave room for the line with the time.
  if (folder.empty() || text.size() > kMostKept - 32) return;
  if (!io::make_folders(folder)) return;
  (void)io::replace_file(kept_path(folder, name), fmt::format("{}\n{}", now_ms, text));
}

void drop_answer(const std::string& folder, std::string_view name) {
  if (!folder.empty()) (void)unlink(kept_path(folder, name).c_str());
}

}  // namespace lockstep::cloud
