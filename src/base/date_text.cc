#include "base/date_text.h"

#include <fmt/core.h>

#include <array>
#include <ctime>

namespace lockstep {

std::string date_text(std::int64_t unix_ms) {
  const auto seconds = static_cast<std::time_t>(unix_ms / 1000);
  std::tm local{};
  localtime_r(&seconds, &local);
  std::array<char, 32> text{};
  std::strftime(text.data(), text.size(), "%Y-%m-%d %H:%M:%S", &local);
  return text.data();
}

std::string time_words(std::int64_t seconds) {
  std::string words;
  const auto add = [&](std::int64_t amount, const char* unit) {
    if (amount > 0) words += fmt::format("{}{} {}", words.empty() ? "" : " ", amount, unit);
  };
  add(seconds / 86'400, "d");
  add(seconds % 86'400 / 3600, "h");
  add(seconds % 3600 / 60, "min");
  if (seconds < 3600) add(seconds % 60, "s");
  return words.empty() ? "0 s" : words;
}

}  // namespace lockstep
