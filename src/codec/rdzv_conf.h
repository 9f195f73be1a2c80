// --rdzv-conf: "key=value,key=value". Unknown keys are kept, as torchrun keeps them.
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

// The value of a key as integer or boolean; nullopt where the key is not there.
Result<std::optional<std::int64_t>> rdzv_conf_int(const RdzvConf& conf, const std::string& key);
Result<std::optional<bool>> rdzv_conf_bool(const RdzvConf& conf, const std::string& key);

}  // namespace lockstep::codec
