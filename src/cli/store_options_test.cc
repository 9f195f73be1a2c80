#include "cli/store_options.h"

#include <gtest/gtest.h>

namespace lockstep::cli {
namespace {

Parsed parsed_words(const Table& table, const std::vector<std::string>& words) {
  auto result = parse_options(table, words, [](std::string_view) { return std::nullopt; });
  EXPECT_TRUE(result) << result.error().error.message;
  return result.value_or(Parsed{});
}

TEST(StoreOptions, AreChecked) {
  EXPECT_EQ(store_options(parsed_words(store_table(), {}))->port, 29500);
  EXPECT_EQ(store_options(parsed_words(store_table(), {"--host", "::", "--port=0"}))->host, "::");
  EXPECT_FALSE(store_options(parsed_words(store_table(), {"--port", "65536"})));
  EXPECT_FALSE(store_options(parsed_words(store_table(), {"--port", "-1"})));
  EXPECT_FALSE(store_options(parsed_words(store_table(), {"--max-value-bytes", "0"})));
}

}  // namespace
}  // namespace lockstep::cli
