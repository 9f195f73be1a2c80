// Keeps answers of providers that hold for a while (prices, images, regions), each in a file.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

namespace lockstep::cloud {

struct KeptAnswer {
  std::string text;
  std::int64_t as_of_ms = 0;
};

// Returns a kept answer. nullopt: the answer is missing, older than most_age_ms, or from the
// future. name: letters, digits, '-', '_' and '.'. Keep no secrets here: other users may read the
// files.
std::optional<KeptAnswer> kept_answer(const std::string& folder, std::string_view name,
                                      std::int64_t now_ms, std::int64_t most_age_ms);
// Keeps an answer. Ignores a failure: the question is then asked again.
void keep_answer(const std::string& folder, std::string_view name, std::string_view text,
                 std::int64_t now_ms);
void drop_answer(const std::string& folder, std::string_view name);

}  // namespace lockstep::cloud
