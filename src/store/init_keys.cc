// Takes the keys of process groups apart.
#include "store/init_keys.h"

#include <algorithm>
#include <charconv>
#include <functional>
#include <vector>

namespace lockstep::store {
namespace {

using Parts = std::vector<std::string_view>;
constexpr std::string_view kRoot = "default_pg/";
constexpr std::size_t kMostParts = 16;
constexpr int kMostRanks = 1 << 24;

// Returns the parts between slashes, without empty ones: PrefixStore joins with one slash, and
// PyTorch's prefixes end with another.
Parts parts_of(std::string_view path) {
  Parts parts;
  while (!path.empty() && parts.size() <= kMostParts) {
    const std::size_t end = std::min(path.find('/'), path.size());
    if (end > 0) parts.push_back(path.substr(0, end));
    path.remove_prefix(std::min(end + 1, path.size()));
  }
  return parts;
}

std::optional<int> rank_of(std::string_view text) {
  int rank = -1;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), rank);
  if (error != std::errc() || end != text.data() + text.size()) return std::nullopt;
  return rank >= 0 && rank < kMostRanks ? std::optional(rank) : std::nullopt;
}

// "cpu", "cuda", "xpu": 2.x puts the device behind the names of the groups.
bool is_device(std::string_view part) {
  return part.size() >= 3 &&
         std::all_of(part.begin(), part.end(), [](char c) { return c >= 'a' && c <= 'z'; });
}

// Fills in kind and creator from the end of the path, and removes that end.
bool take_end(Parts& parts, InitKey& key) {
  const std::string_view last = parts.back();
  parts.pop_back();
  if (last == "SEQ_NUM_STORE_KEY") {
    key.kind = InitKey::Kind::number;
    key.creator = 0;
    return true;
  }
  if (last.starts_with("nccl_storekey_")) {
    key.kind = InitKey::Kind::id;
    // Above 128 ranks several ranks make ids: "nccl_storekey_0_1".
    key.creator = last.find('_', 14) == std::string_view::npos ? 0 : -1;
    return true;
  }
  const bool host = last.starts_with("rank_");
  // NCCL's key for a pair of ranks is "0:1". The lower rank makes it.
  const auto rank = rank_of(host ? last.substr(5) : last.substr(0, last.find(':')));
  if (!rank || parts.empty()) return false;
  // gloo has a counter before the rank. NCCL has the counter alone, behind a device (2.x) or behind
  // the only name (1.13).
  const bool counter =
      rank_of(parts.back()).has_value() &&
      (parts.size() >= 2 && (host || parts.size() == 2 || is_device(*(parts.end() - 2))));
  if (counter) {
    parts.pop_back();
    key.kind = host ? InitKey::Kind::host : InitKey::Kind::address;
    key.creator = *rank;
    return true;
  }
  if (parts.size() > 1 && !is_device(parts.back())) return false;
  key.kind = InitKey::Kind::id;
  key.creator = last.find(':') == std::string_view::npos ? 0 : *rank;
  return true;
}

// "store_based_barrier_key:GROUP" and "store_based_barrier_key:GROUP:last_worker".
bool take_barrier(std::string_view last, InitKey& key) {
  constexpr std::string_view kBarrier = "store_based_barrier_key:";
  constexpr std::string_view kLast = ":last_worker";
  if (!last.starts_with(kBarrier)) return false;
  last.remove_prefix(kBarrier.size());
  key.kind = last.ends_with(kLast) ? InitKey::Kind::barrier : InitKey::Kind::arrived;
  if (last.ends_with(kLast)) last.remove_suffix(kLast.size());
  key.name = last;
  return true;
}

}  // namespace

std::optional<InitKey> parse_init_key(std::string_view key) {
  const std::size_t root = key.find(kRoot);
  if (root == std::string_view::npos || (root > 0 && key[root - 1] != '/')) return std::nullopt;
  if (key.ends_with('/')) return std::nullopt;
  Parts parts = parts_of(key.substr(root + kRoot.size()));
  if (parts.empty() || parts.size() > kMostParts) return std::nullopt;
  InitKey found;
  found.group = key.substr(0, root + kRoot.size() - 1);
  if (take_barrier(parts.back(), found)) {
    // The barrier counts all ranks, also those outside of the group, so it is a group of its own.
    found.group += "/barrier/" + found.name;
    return found;
  }
  if (parts.size() < 2 || !take_end(parts, found)) return std::nullopt;
  if (parts.size() > 1 && is_device(parts.back())) parts.pop_back();
  if (parts.empty()) return std::nullopt;
  for (const std::string_view part : parts)
    found.group.append("/").append(part);
  found.name = parts.back();
  return found;
}

InterestingKeys::InterestingKeys(std::span<const WitnessSession> sessions) {
  for (const WitnessSession& session : sessions)
    for (const WitnessWait& wait : session.waits)
      for (const std::string& key : wait.keys)
        if (auto parsed = parse_init_key(key)) groups_.insert(std::move(parsed->group));
}

bool InterestingKeys::has(std::string_view key) const {
  if (key.ends_with(kExceptionDump)) return true;
  if (key.find(kRemoteError) != std::string_view::npos) return true;
  if (key.find(kDebugUrl) != std::string_view::npos) return true;
  const auto parsed = parse_init_key(key);
  return parsed && (parsed->is_default() || groups_.contains(parsed->group));
}

}  // namespace lockstep::store
