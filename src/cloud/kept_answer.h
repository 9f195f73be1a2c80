// What providers said and what holds for a while (prices, images, regions), kept in a file each.
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

// name: letters, digits, '-', '_' and '.'. nullopt: there is none, or it is older than that, or
// from the future. Nothing secret belongs here: others may read it.
std::optional<KeptAnswer> kept_answer(const std::string& folder, std::string_view name,
                                      std::int64_t now_ms, std::int64_t most_age_ms);
// Where it can't be kept it will be asked again; that is no error.
void keep_answer(const std::string& folder, std::string_view name, std::string_view text,
                 std::int64_t now_ms);
void drop_answer(const std::string& folder, std::string_view name);

}  // namespace lockstep::cloud
