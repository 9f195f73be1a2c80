// Parses --rdzv-conf with torchrun's rules and messages.
#include "codec/rdzv_conf.h"

#include "base/text.h"

#include <fmt/core.h>

namespace lockstep::codec {

Result<RdzvConf> parse_rdzv_conf(std::string_view text) {
  RdzvConf conf;
  // torchrun strips the whole string, keys and values.
  text = strip(text);
  if (text.empty()) return conf;
  for (const std::string& part : split(text, ',')) {
    const std::size_t equals = part.find('=');
    const std::string_view whole = part;
    const std::string key(strip(whole.substr(0, equals)));
    if (key.empty())
      return fail(Errc::invalid_input,
                  fmt::format("the rendezvous configuration string '{}' must be in format "
                              "<key1>=<value1>,...,<keyN>=<valueN>",
                              printable(text)));
    const std::string value(equals == whole.npos ? "" : strip(whole.substr(equals + 1)));
    if (value.empty())
      return fail(
          Errc::invalid_input,
          fmt::format("the rendezvous configuration option '{}' must have a value specified",
                      printable(key)));
    // A later value replaces an earlier one, as in torchrun.
    conf[key] = value;
  }
  return conf;
}

Result<std::optional<std::int64_t>> rdzv_conf_int(const RdzvConf& conf, const std::string& key) {
  const auto found = conf.find(key);
  if (found == conf.end()) return std::nullopt;
  const auto value = parse_int(found->second);
  if (!value)
    return fail(Errc::invalid_input,
                fmt::format("the rendezvous configuration option '{}' does not represent a valid "
                            "integer value: '{}'",
                            printable(key), printable(found->second)));
  return value;
}

Result<std::optional<bool>> rdzv_conf_bool(const RdzvConf& conf, const std::string& key) {
  const auto found = conf.find(key);
  if (found == conf.end()) return std::nullopt;
  const std::string value = to_lower(found->second);
  // torchrun accepts these words, in any case of letters.
  for (const std::string_view yes : {"1", "true", "t", "yes", "y"}) {
    if (value == yes) return true;
  }
  for (const std::string_view no : {"0", "false", "f", "no", "n"}) {
    if (value == no) return false;
  }
  return fail(
      Errc::invalid_input,
      fmt::format("the rendezvous configuration option '{}' does not represent a valid boolean "
                  "value: '{}'",
                  printable(key), printable(found->second)));
}

}  // namespace lockstep::codec
