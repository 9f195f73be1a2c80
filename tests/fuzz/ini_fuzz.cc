// Files of keys and settings of other tools, and URLs, which anybody may have written: any bytes
// end in sections within the limits or in one line of error. Limits are small, so that they are
// met.
#include "base/error.h"
#include "codec/ini.h"
#include "codec/url.h"

#include <stddef.h>
#include <stdint.h>

#include <string_view>

namespace {
using namespace lockstep;  // NOLINT

constexpr codec::IniLimits kSmall{.bytes = 1U << 12, .members = 40};

void check_ini(std::string_view bytes) {
  const auto ini = codec::parse_ini(bytes, "keys", kSmall);
  if (!ini) {
    LOCKSTEP_CHECK(ini.error().message.find('\n') == std::string::npos);
    return;
  }
  size_t members = ini->sections.size() - 1;
  for (const codec::IniSection& section : ini->sections) {
    LOCKSTEP_CHECK(ini->section(section.name) == &section);
    for (const auto& [key, value] : section.members) {
      // What is a value may stand in a header.
      LOCKSTEP_CHECK(value.find_first_of("\r\n") == std::string::npos);
      LOCKSTEP_CHECK(codec::ini_unquoted(section.value(key)).size() <= bytes.size());
    }
    members += section.members.size();
  }
  LOCKSTEP_CHECK(members <= kSmall.members && bytes.size() <= kSmall.bytes);
}

void check_url(std::string_view bytes) {
  const auto url = codec::parse_url(bytes, "it");
  if (!url) return;
  LOCKSTEP_CHECK(!url->host.empty() && url->port >= 1 && url->port <= 65535);
  LOCKSTEP_CHECK(url->target.starts_with('/'));
  LOCKSTEP_CHECK(url->target.find_first_of(" \r\n") == std::string::npos);
  LOCKSTEP_CHECK(url->host.find_first_of("/@ \r\n") == std::string::npos);
  LOCKSTEP_CHECK(codec::percent_decode(codec::percent_code(url->target)) == url->target);
}
}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  const std::string_view bytes(reinterpret_cast<const char*>(data), size);
  check_ini(bytes);
  check_url(bytes);
  return 0;
}
