#include "cloud/key_file.h"

#include "base/log.h"
#include "base/text.h"
#include "codec/ini.h"
#include "io/fd.h"

#include <fmt/core.h>

#include <sys/stat.h>

#include <algorithm>

namespace lockstep::cloud {
namespace {

constexpr std::size_t kMostOfKey = 512;
constexpr std::size_t kMostOfFile = 64UL << 10;

// Returns whether a key is safe in an HTTP header field.
bool is_key(std::string_view key) {
  return !key.empty() && key.size() <= kMostOfKey &&
         std::all_of(key.begin(), key.end(), [](char c) { return c > ' ' && c < '\x7f'; });
}

std::string first_value(const codec::Ini& ini, std::span<const std::string_view> names) {
  for (const codec::IniSection& section : ini.sections)
    for (const std::string_view name : names)
      // A TOML file has quotes around the key.
      if (const auto value = section.value(name); !value.empty()) return codec::ini_unquoted(value);
  return {};
}

}  // namespace

bool is_exposed(const std::string& path) {
  struct stat about {};
  const bool exposed = stat(path.c_str(), &about) == 0 && (about.st_mode & 077U) != 0;
  if (exposed)
    log::warning("others may read the keys in {}: chmod 600 {}", printable(path), printable(path));
  return exposed;
}

Result<ApiKey> find_api_key(const Ground& ground, const KeyPlaces& places) {
  ApiKey found{.key = ground.env(places.variable).value_or(""),
               .where = std::string(places.variable)};
  if (found.key.empty()) {
    found.where = fmt::format("~/{}", places.file);
    const std::string path = fmt::format("{}/{}", ground.home, places.file);
    const auto text = io::read_file(path, kMostOfFile);
    if (!text && text.error().code != Errc::not_found) return Failure(text.error());
    if (!text)
      return fail(Errc::not_found,
                  fmt::format("no key: neither {} nor {}", places.variable, found.where),
                  std::string(places.advice));
    LOCKSTEP_TRY_ASSIGN(const auto ini, codec::parse_ini(*text, found.where));
    found.key = first_value(ini, places.names);
    found.exposed = is_exposed(path);
  }
  if (!is_key(found.key))
    return fail(
        Errc::invalid_input, fmt::format("{} does not contain a key", found.where),
        fmt::format("copy the key there as the provider shows it, or set {}", places.variable));
  return found;
}

}  // namespace lockstep::cloud
