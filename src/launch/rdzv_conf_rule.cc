// --rdzv-conf: the settings that the backend would read are checked before anything is started;
// others are kept unread, as torchrun does.
#include "base/text.h"
#include "codec/rdzv_conf.h"
#include "launch/rules.h"

#include <fmt/core.h>

#include <algorithm>
#include <array>

namespace lockstep::launch {
namespace {

constexpr std::int64_t kYear = 365LL * 24 * 3600;  // more would overflow clocks further down

constexpr std::array<std::string_view, 23> kKnown = {"join_timeout",
                                                     "close_timeout",
                                                     "read_timeout",
                                                     "heartbeat_timeout",
                                                     "timeout",
                                                     "keep_alive_interval",
                                                     "keep_alive_max_attempt",
                                                     "last_call_timeout",
                                                     "is_host",
                                                     "lease_ttl",
                                                     "store_type",
                                                     "protocol",
                                                     "cert",
                                                     "key",
                                                     "cacert",
                                                     "ssl_cert",
                                                     "ssl_cert_key",
                                                     "ca_cert",
                                                     "user",
                                                     "password_file",
                                                     "etcd_prefix",
                                                     "use_libuv",
                                                     "rank"};

Failure bad_option(std::string_view key, std::string_view what) {
  return fail(Errc::invalid_input,
              fmt::format("the rendezvous configuration option '{}' {}", key, what));
}

Status check_positive(const codec::RdzvConf& conf, const char* key) {
  LOCKSTEP_TRY_ASSIGN(const auto value, codec::rdzv_conf_int(conf, key));
  if (!value || (*value > 0 && *value <= kYear)) return {};
  if (*value > 0) return bad_option(key, fmt::format("must be at most {}, got {}", kYear, *value));
  return bad_option(key, fmt::format("must be positive, got {}", *value));
}

// Leaves it in lower case.
Status check_choice(codec::RdzvConf& conf, const char* key, std::string_view one,
                    std::string_view other) {
  const auto found = conf.find(key);
  if (found == conf.end()) return {};
  const std::string value = to_lower(strip(found->second));
  if (value == one || value == other) {
    found->second = value;
    return {};
  }
  return bad_option(key,
                    fmt::format("must be {} or {}, got {}", one, other, printable(found->second)));
}

Status check_file(const Facts& facts, const codec::RdzvConf& conf, const char* key) {
  const auto found = conf.find(key);
  if (found == conf.end() || facts.file_kind(found->second) == FileKind::file) return {};
  return bad_option(key, fmt::format("names no file: {}", printable(found->second)));
}

// etcd grants none below 2 s; a lost leader is missed only as late as its lease ends.
Status check_lease(const codec::RdzvConf& conf) {
  constexpr std::int64_t kShortest = 2;
  constexpr std::int64_t kLongest = 3600;
  LOCKSTEP_TRY(check_positive(conf, "lease_ttl"));
  LOCKSTEP_TRY_ASSIGN(const auto value, codec::rdzv_conf_int(conf, "lease_ttl"));
  if (!value || (*value >= kShortest && *value <= kLongest)) return {};
  return bad_option("lease_ttl",
                    fmt::format("must be between {} and {}, got {}", kShortest, kLongest, *value));
}

Status check_password(const Facts& facts, const codec::RdzvConf& conf) {
  constexpr std::size_t kLongest = 4096;
  const auto found = conf.find("password_file");
  if (found == conf.end()) return {};
  LOCKSTEP_TRY_ASSIGN(const auto password,
                      read_secret(found->second, kLongest, "password_file", facts));
  if (password.size() > kLongest)
    return bad_option("password_file", fmt::format("is longer than {} bytes", kLongest));
  return {};
}

Status check_etcd(const Facts& facts, LaunchConfig& config) {
  LOCKSTEP_TRY(check_choice(config.rdzv_conf, "protocol", "http", "https"));
  const bool legacy = config.rdzv_backend == "etcd";
  const std::array<const char*, 3> files =
      legacy ? std::array<const char*, 3>{"cert", "key", "cacert"}
             : std::array<const char*, 3>{"ssl_cert", "ssl_cert_key", "ca_cert"};
  for (const char* key : files)
    LOCKSTEP_TRY(check_file(facts, config.rdzv_conf, key));
  return check_password(facts, config.rdzv_conf);
}

// torchrun takes any key; but one that is nearly a known one was hardly meant as it stands.
void warn_of_slips(LaunchConfig& config) {
  constexpr std::size_t kShortest = 4;
  for (const auto& [given, value] : config.rdzv_conf) {
    if (given.size() < kShortest || std::find(kKnown.begin(), kKnown.end(), given) != kKnown.end())
      continue;
    const auto meant = std::find_if(kKnown.begin(), kKnown.end(),
                                    [key = std::string_view(given)](std::string_view known) {
                                      return edit_distance(key, known) == 1;
                                    });
    if (meant != kKnown.end())
      config.warnings.push_back(fmt::format("--rdzv-conf {}={} is not known: did you mean {}?",
                                            printable(given), printable(value), *meant));
  }
}

}  // namespace

Status check_rdzv_conf(const Facts& facts, LaunchConfig& config) {
  const std::string& backend = config.rdzv_backend;
  codec::RdzvConf& conf = config.rdzv_conf;
  for (const char* key : {"keep_alive_interval", "keep_alive_max_attempt"})
    if (backend != "etcd") LOCKSTEP_TRY(check_positive(conf, key));
  for (const char* key : {"join_timeout", "close_timeout", "heartbeat_timeout", "read_timeout"})
    if (backend != "static" && backend != "etcd") LOCKSTEP_TRY(check_positive(conf, key));
  if (backend != "static") LOCKSTEP_TRY(check_positive(conf, "last_call_timeout"));
  LOCKSTEP_TRY_ASSIGN(const auto timeout, codec::rdzv_conf_int(conf, "timeout"));
  if (timeout && (*timeout < 0 || *timeout > kYear))
    return bad_option("timeout", fmt::format("must be between 0 and {}, got {}", kYear, *timeout));
  if (backend == "c10d") LOCKSTEP_TRY(check_choice(conf, "store_type", "tcp", "file"));
  if (backend == "c10d" || backend == "lockstep")
    LOCKSTEP_TRY(codec::rdzv_conf_bool(conf, "is_host"));
  if (backend == "etcd3") LOCKSTEP_TRY(check_lease(conf));
  if (backend.starts_with("etcd")) LOCKSTEP_TRY(check_etcd(facts, config));
  warn_of_slips(config);
  return {};
}

}  // namespace lockstep::launch
