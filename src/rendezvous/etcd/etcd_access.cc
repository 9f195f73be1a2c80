#include "rendezvous/etcd/etcd_access.h"

#include "base/text.h"
#include "io/fd.h"

#include <fmt/core.h>

#include <optional>

namespace lockstep::rendezvous {
namespace {

constexpr int kPort = 2379;
constexpr std::size_t kMostEndpoints = 64;

// The value of the first of the two names that is there.
std::string either(const codec::RdzvConf& conf, const std::string& one, const std::string& other) {
  for (const auto& name : {one, other})
    if (const auto found = conf.find(name); found != conf.end()) return found->second;
  return {};
}

Status read_password(const codec::RdzvConf& conf, EtcdAccess& access) {
  access.user = either(conf, "user", "username");
  const std::string path = either(conf, "password_file", "password_file");
  if (access.user.empty() != path.empty()) {
    return fail(Errc::invalid_input, "etcd: 'user' and 'password_file' go together",
                "--rdzv-conf user=NAME,password_file=PATH");
  }
  if (path.empty()) return {};
  auto text = io::read_file(path);
  if (!text) return tl::make_unexpected(std::move(text).error().within("password_file"));
  access.password = *text;
  while (access.password.ends_with('\n') || access.password.ends_with('\r'))
    access.password.pop_back();
  return {};
}

Status read_tls(const codec::RdzvConf& conf, EtcdAccess& access) {
  access.tls.cert_file = either(conf, "ssl_cert", "cert");
  access.tls.key_file = either(conf, "ssl_cert_key", "key");
  access.tls.ca_file = either(conf, "ca_cert", "cacert");
  const auto protocol = conf.find("protocol");
  if (protocol == conf.end()) return {};
  const std::string name = to_lower(strip(protocol->second));
  if (name != "http" && name != "https") {
    return fail(Errc::invalid_input,
                fmt::format("etcd: the protocol must be http or https, not '{}'", printable(name)));
  }
  access.https = name == "https";
  return {};
}

}  // namespace

Result<EtcdAccess> parse_etcd_access(std::string_view endpoint, const codec::RdzvConf& conf) {
  EtcdAccess access;
  LOCKSTEP_TRY(read_tls(conf, access));
  LOCKSTEP_TRY(read_password(conf, access));
  LOCKSTEP_TRY_ASSIGN(const auto seconds, codec::rdzv_conf_int(conf, "read_timeout"));
  if (seconds && *seconds <= 0)
    return fail(Errc::invalid_input, "etcd: the read timeout must be a positive integer");
  if (seconds) access.timeout = std::chrono::seconds(std::min<std::int64_t>(*seconds, 86'400));
  std::optional<bool> scheme;
  const auto parts = split(endpoint, ',');
  if (parts.size() > kMostEndpoints)
    return fail(Errc::invalid_input, "etcd: more than 64 endpoints");
  for (const std::string& part : parts) {
    std::string_view text = strip(part);
    const auto https = codec::take_url_scheme(text);
    if (https && scheme && *scheme != *https)
      return fail(Errc::invalid_input, "etcd: the endpoints mix http and https");
    if (https) scheme = https;
    LOCKSTEP_TRY_ASSIGN(auto place, codec::parse_rdzv_endpoint(text, kPort));
    access.endpoints.push_back(std::move(place));
  }
  if (scheme) access.https = *scheme;
  return access;
}

}  // namespace lockstep::rendezvous
