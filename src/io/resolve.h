// Looks up names without stopping the loop: a lookup runs on a thread of its own and answers
// through Loop::post(). Numeric addresses and "localhost" need no lookup.
#pragma once

#include "base/error.h"
#include "io/loop.h"

#include <sys/socket.h>

#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <vector>

namespace lockstep::io {

struct Address {
  sockaddr_storage storage{};
  socklen_t size = 0;

  const sockaddr* get() const { return reinterpret_cast<const sockaddr*>(&storage); }
  int family() const { return storage.ss_family; }
};

// Returns digits only, with IPv4-mapped addresses in IPv4 form and a link-local scope as "%eth0".
std::string address_text(const Address& address);
bool is_loopback(const Address& address);

struct Resolved {
  std::vector<Address> addresses;  // at least one; IPv4 and IPv6 in the system's order
  std::string canonical_name;      // "" if unknown
};

// Returns a numeric address, or "localhost" as 127.0.0.1 and ::1. nullopt: `host` is a name.
std::optional<Resolved> resolve_numeric(const std::string& host, int port);

// A running lookup. The destructor drops it: `done` is not called then. A lookup alone does not
// keep Loop::run() going. A caller's timer does.
class Lookup {
 public:
  using Done = std::function<void(Result<Resolved>)>;

  Lookup(Loop& loop, std::string host, int port, Done done);
  ~Lookup();
  Lookup(const Lookup&) = delete;
  Lookup& operator=(const Lookup&) = delete;

  struct Shared;

 private:
  std::shared_ptr<Shared> shared_;
};

}  // namespace lockstep::io
