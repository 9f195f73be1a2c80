#include "store/watchdog_signal.h"

#include "store/init_keys.h"

#include <cstring>
#include <string>

namespace lockstep::store {
namespace {

constexpr std::int32_t kMostRank = 1 << 16;
// A script may fill the store. The key of the whole job is found in any store.
constexpr WitnessLimits kLimits{.keys = 1, .scanned_keys = 32U << 10};

}  // namespace

std::optional<int> signal_rank(std::string_view value) {
  std::int32_t rank = -1;
  if (value.size() != sizeof rank) return std::nullopt;
  std::memcpy(&rank, value.data(), sizeof rank);
  return rank >= 0 && rank < kMostRank ? std::optional<int>(rank) : std::nullopt;
}

std::optional<int> SignalWatch::look(const Engine& engine) {
  if (created_ == engine.created()) return std::nullopt;
  created_ = engine.created();
  // PyTorch's clients put a slash before each key.
  if (const auto value = engine.get("/" + std::string(kExceptionDump)))
    return signal_rank(*value).value_or(-1);
  bool all = true;
  const auto is_error = [](std::string_view key) {
    return key.find(kRemoteError) != std::string_view::npos;
  };
  // The value is a rank inside of a group.
  return engine.keys_for(is_error, kLimits, all).empty() ? std::nullopt : std::optional(-1);
}

}  // namespace lockstep::store
