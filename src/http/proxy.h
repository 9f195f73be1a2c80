// Chooses the proxy that the environment names for a call, by curl's names and rules. Pure.
#pragma once

#include "base/error.h"

#include <functional>
#include <optional>
#include <string>
#include <string_view>

namespace lockstep::http {

struct Proxy {
  std::string host;
  int port = 80;
  std::string authorization = {};  // value of Proxy-Authorization; secret
  std::string source = {};         // "HTTPS_PROXY"

  std::string text() const;  // "the proxy http://HOST:PORT (HTTPS_PROXY)"
};

using EnvLookup = std::function<std::optional<std::string>(std::string_view name)>;

// Returns the proxy from https_proxy, http_proxy or all_proxy, each in lower case before upper
// case. Ignores HTTP_PROXY if REQUEST_METHOD is set: a client's header may have set it. nullopt:
// connect directly, as always to this machine and to hosts in NO_PROXY. Errors name the variable
// but not its value, which may contain a password.
Result<std::optional<Proxy>> choose_proxy(const EnvLookup& env, const std::string& host, int port,
                                          bool tls);

// Parses NO_PROXY. Words are separated by commas or white space: "*", a domain (which covers its
// subdomains) with or without a leading dot, an address, or a network such as "10.0.0.0/8". Each
// word may end in ":PORT".
bool is_in_no_proxy(std::string_view no_proxy, const std::string& host, int port);

}  // namespace lockstep::http
