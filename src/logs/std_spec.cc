// Parses -r and -t.
#include "logs/std_spec.h"

#include "base/text.h"

#include <fmt/core.h>

#include <optional>
#include <string>

namespace lockstep::logs {
namespace {

std::optional<Std> one(std::string_view text) {
  if (text.size() != 1 || text[0] < '0' || text[0] > '3') return std::nullopt;
  return static_cast<Std>(text[0] - '0');
}

// Accepts at most 6 digits: no node has a million workers.
std::optional<int> rank_of(std::string_view text) {
  if (text.empty() || text.size() > 6) return std::nullopt;
  if (text.find_first_not_of("0123456789") != std::string_view::npos) return std::nullopt;
  return static_cast<int>(parse_int(text).value_or(0));
}

Failure mismatch(std::string_view text) {
  return fail(Errc::invalid_input,
              // torchrun's text, except that ranks may have several digits here.
              fmt::format("{} does not match: <^[0123]$> or <^(\\d+:[0123],)*(\\d+:[0123])$>",
                          printable(text)),
              "0 none, 1 stdout, 2 stderr, 3 both; or by local rank, as 0:3,1:2");
}

}  // namespace

Result<StdSpec> parse_std_spec(std::string_view text) {
  StdSpec spec;
  if (const auto every = one(text)) {
    spec.every = *every;
    return spec;
  }
  for (const std::string& item : split(text, ',')) {
    const std::size_t colon = item.find(':');
    if (colon == std::string::npos) return mismatch(text);
    const std::string_view whole = item;
    const auto rank = rank_of(whole.substr(0, colon));
    const auto value = one(whole.substr(colon + 1));
    if (!rank || !value) return mismatch(text);
    spec.by_rank[*rank] = *value;
  }
  return spec;
}

}  // namespace lockstep::logs
