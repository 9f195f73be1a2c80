// --rdzv-conf: settings that the backend reads are checked before anything is started. Other
// settings are ignored, as by torchrun, but we warn where the user hardly meant that.
#include "base/text.h"
#include "launch/backend_row.h"
#include "launch/rules.h"

#include <fmt/core.h>

#include <algorithm>
#include <array>

namespace lockstep::launch {
namespace {

// Configurations written for torchrun contain these. Either torchrun's own store reads them or
// nothing does, so they are no slips.
constexpr std::array<std::string_view, 2> kTorchrunsOwn = {"use_libuv", "rank"};

const ConfKey* key_of(const BackendRow& row, std::string_view name) {
  const auto found = std::find_if(row.keys.begin(), row.keys.end(),
                                  [&](const ConfKey& key) { return key.name == name; });
  return found == row.keys.end() ? nullptr : &*found;
}

// The key of this name of the first backend that has one; nullptr: no backend has it.
const ConfKey* key_of_any(std::string_view name) {
  for (const BackendRow* row : backends())
    if (const ConfKey* key = key_of(*row, name)) return key;
  return nullptr;
}

std::optional<std::string_view> nearly(std::string_view given) {
  constexpr std::size_t kShortest = 4;
  if (given.size() < kShortest) return std::nullopt;
  for (const BackendRow* row : backends())
    for (const ConfKey& key : row->keys)
      if (edit_distance(given, key.name) == 1) return key.name;
  return std::nullopt;
}

// torchrun accepts any key. We warn of a key that is nearly a known one, and of a value that the
// backend which does read the key would refuse: both are likely mistakes.
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
                        "refused by those that read it",
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
