// Which proxy the environment names for a call, by curl's names and rules: pure.
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
  std::string authorization = {};  // a header's value; secret
  std::string source = {};         // "HTTPS_PROXY"

  std::string text() const;  // "the proxy http://HOST:PORT (HTTPS_PROXY)"
};

using EnvLookup = std::function<std::optional<std::string>(std::string_view name)>;

// https_proxy, http_proxy and all_proxy, each in small letters before capitals. HTTP_PROXY does not
// count where REQUEST_METHOD is set: there a stranger's header may have made it. Nothing: connect
// directly, as always to this machine itself and to what NO_PROXY names. Errors name the variable
// and not its value, which may have a password in it.
Result<std::optional<Proxy>> choose_proxy(const EnvLookup& env, const std::string& host, int port,
                                          bool tls);

// NO_PROXY's words, apart by commas or white space: "*", a domain (which covers all below it) with
// or without a dot before it, an address, a network as "10.0.0.0/8"; each may end in ":PORT".
bool is_in_no_proxy(std::string_view no_proxy, const std::string& host, int port);

}  // namespace lockstep::http
