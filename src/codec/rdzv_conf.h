// --rdzv-conf: "key=value,key=value". Keeps unknown keys, as torchrun does.
#pragma once

#include "base/error.h"

#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <string_view>

namespace lockstep::codec {

using RdzvConf = std::map<std::string, std::string>;

Result<RdzvConf> parse_rdzv_conf(std::string_view text);

// Return the value of a key as integer or boolean. nullopt: no such key. Fail with invalid_input.
Result<std::optional<std::int64_t>> rdzv_conf_int(const RdzvConf& conf, const std::string& key);
Result<std::optional<bool>> rdzv_conf_bool(const RdzvConf& conf, const std::string& key);

}  // namespace lockstep::codec
