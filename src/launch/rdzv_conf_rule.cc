// Reads --rdzv-conf. Checks settings of the backend before anything starts. Ignores other settings,
// as torchrun does, but warns about likely mistakes.
#include "base/text.h"
#include "launch/backend_row.h"
#include "launch/rules.h"

#include <fmt/core.h>

#include <algorithm>
#include <array>

namespace lockstep::launch {
namespace {

// Keys of configurations written for torchrun. Only torchrun's own store reads them, so they are
// not mistakes.
constexpr std::array<std::string_view, 2> kTorchrunsOwn = {"use_libuv", "rank"};

const ConfKey* key_of(const BackendRow& row, std::string_view name) {
  const auto found = std::find_if(row.keys.begin(), row.keys.end(),
                                  [&](const ConfKey& key) { return key.name == name; });
  return found == row.keys.end() ? nullptr : &*found;
}

// Returns the key with this name from any backend; nullptr: none.
const ConfKey* key_of_any(std::string_view name) {
  for (const BackendRow* row : backends())
    if (const ConfKey* key = key_of(*row, name)) return key;
  return nullptr;
}

// Returns a known key that differs by one edit. Very short names resemble too many keys.
std::optional<std::string_view> nearly(std::string_view given) {
  constexpr std::size_t kShortest = 4;
  if (given.size() < kShortest) return std::nullopt;
  for (const BackendRow* row : backends())
    for (const ConfKey& key : row->keys)
      if (edit_distance(given, key.name) == 1) return key.name;
  return std::nullopt;
}

// Warns about a key that is nearly a known one, and about a value that the backend reading the key
// would refuse. torchrun accepts any key.
void warn_of_slips(const codec::RdzvConf& conf, LaunchConfig& config) {
  for (const auto& [name, value] : conf) {
    if (key_of(*config.backend, name) != nullptr) continue;
    if (std::find(kTorchrunsOwn.begin(), kTorchrunsOwn.end(), name) != kTorchrunsOwn.end())
      continue;
    const std::string shown = fmt::format("--rdzv-conf {}={}", printable(name), printable(value));
    if (const ConfKey* key = key_of_any(name)) {
      if (!looks_right(*key, value))
        config.warnings.push_back(
            fmt::format("{} is not read by the {} backend, and would be "
                        "refused by backends that read it",
                        shown, config.backend->name));
    } else if (const auto meant = nearly(name)) {
      config.warnings.push_back(fmt::format("{} is not known: did you mean {}?", shown, *meant));
    }
  }
}

}  // namespace

Status apply_rdzv_conf(const RawOptions& raw, const Facts& facts, LaunchConfig& config) {
  LOCKSTEP_TRY_ASSIGN(const auto conf, codec::parse_rdzv_conf(raw.rdzv_conf));
  LOCKSTEP_TRY_ASSIGN(config.conf, ConfValues::read(config.backend->keys, conf, facts));
  if (config.backend->check != nullptr) LOCKSTEP_TRY(config.backend->check(config.conf));
  warn_of_slips(conf, config);
  return {};
}

}  // namespace lockstep::launch
