// Decides who may see the status page: requests with the token, from a page that this server has
// served. Pure.
//
// A web site that the user visits may send requests to loopback ports of this machine. The gate
// refuses them by three facts that a site cannot forge: Host (a name of the site's own that
// resolves to 127.0.0.1, "DNS rebinding"), Origin, and Sec-Fetch-Site.
#pragma once

#include "http/request_parse.h"

#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace lockstep::page {

struct GateRules {
  std::string token;  // empty: no token is asked for, only the headers are checked
  std::string bound;  // the address that the server listens on; "": all of this machine
  std::vector<std::string> names = {};  // of this machine, if it listens on more than loopback
};

class Gate {
 public:
  explicit Gate(GateRules rules);

  // Returns the answer for a request that may not pass: a refusal, or the redirect that turns the
  // token in the address into a cookie. nullopt: the request may pass.
  std::optional<http::Response> turn_away(const http::Request& request) const;

 private:
  bool knows_host(std::string_view host) const;
  bool has_cookie(std::string_view cookies) const;
  http::Response welcome(const http::Request& request) const;

  GateRules rules_;
  // Cookies of one host go to all its ports, forwarded ones too, so each token has a cookie of its
  // own.
  std::string cookie_;
};

// Returns whether the address is of loopback: "localhost", "127.0.0.1", "::1".
bool is_loopback(std::string_view host);
// Returns whether the text is an IP address rather than a name. IPv6 without brackets.
bool is_address(std::string_view host);

// Returns whether both texts are equal, in a time that does not tell where they differ.
bool equal_secrets(std::string_view a, std::string_view b);

}  // namespace lockstep::page
