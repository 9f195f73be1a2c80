// The only file that may call getaddrinfo(). tools/check_calls.py refuses it elsewhere.
#include "io/system_names.h"

#include "base/text.h"
#include "io/fd.h"
#include "io/getent.h"
#include "io/hosts_line.h"

#include <fmt/core.h>

#include <netdb.h>
#include <nss.h>

#include <cstring>
#include <memory>
#include <optional>

namespace lockstep::io {
namespace {

Result<Resolved> by_c_library(const std::string& host, int port, int flags) {
  addrinfo hints{};
  // Without a type each address would be listed three times: for stream, datagram and raw sockets.
  hints.ai_socktype = SOCK_STREAM;
  hints.ai_flags = flags | AI_NUMERICSERV;
  addrinfo* found = nullptr;
  const std::string service = std::to_string(port);
  if (const int error = getaddrinfo(host.c_str(), service.c_str(), &hints, &found); error != 0)
    return fail(Errc::unavailable, gai_strerror(error));
  const std::unique_ptr<addrinfo, void (*)(addrinfo*)> owner(found, freeaddrinfo);
  Resolved resolved;
  if (found->ai_canonname != nullptr) resolved.canonical_name = found->ai_canonname;
  for (const addrinfo* at = found; at != nullptr; at = at->ai_next) {
    // Cannot happen with IPv4 and IPv6. A larger address would overrun the storage.
    if (at->ai_addrlen > sizeof(sockaddr_storage)) continue;
    Address address;
    std::memcpy(&address.storage, at->ai_addr, at->ai_addrlen);
    address.size = at->ai_addrlen;
    resolved.addresses.push_back(address);
  }
  if (resolved.addresses.empty()) return fail(Errc::unavailable, "it has no address");
  return resolved;
}

struct Decided {
  NamePlan plan;
  std::string line;    // as written in the file
  std::string getent;  // path of getent
};

Decided decide() {
  const auto file = read_file("/etc/nsswitch.conf");
  const auto line = file ? hosts_line(*file) : std::nullopt;
  const auto getent = find_getent();
  Decided decided{name_plan(line, getent.has_value()), line.value_or(""), getent.value_or("")};
  // From here on the C library looks up hosts through these services only, whatever the file says
  // and whoever asks. Both are built into it, so no module is loaded.
  std::string& services = decided.plan.in_process;
  if (__nss_configure_lookup("hosts", services.empty() ? "files" : services.c_str()) != 0) {
    services = "files dns";
    __nss_configure_lookup("hosts", services.c_str());
  }
  return decided;
}

Result<Resolved> by_getent(const Decided& decided, const std::string& host, int port) {
  LOCKSTEP_TRY_ASSIGN(const GetentAnswer answer, ask_getent(decided.getent, host));
  Resolved resolved;
  resolved.canonical_name = answer.canonical_name;
  for (const std::string& digits : answer.addresses)
    if (auto address = by_c_library(digits, port, AI_NUMERICHOST))
      resolved.addresses.push_back(address->addresses.front());
  if (resolved.addresses.empty())
    return fail(Errc::unavailable, "getent gave nothing that is an address");
  return resolved;
}

Result<Resolved> by_plan(const std::string& host, int port) {
  // Decided once: the C library's setting is for the whole process.
  static const Decided decided = decide();
  Result<Resolved> found = fail(Errc::unavailable, "");
  if (!decided.plan.in_process.empty()) found = by_c_library(host, port, AI_CANONNAME);
  if (found || !decided.plan.ask_getent) return found;
  found = by_getent(decided, host, port);
  if (!found)
    found.error().message +=
        fmt::format(" (hosts line of /etc/nsswitch.conf: '{}')", printable(decided.line));
  return found;
}

}  // namespace

Result<Resolved> look_up(const std::string& host, int port, Names names) {
  // Digits first: they need neither services nor modules, and never block.
  auto found = by_c_library(host, port, AI_NUMERICHOST);
  if (!found && names == Names::any) found = by_plan(host, port);
  if (!found)
    return tl::make_unexpected(std::move(found).error().within(
        fmt::format("look up the host name '{}'", printable(host))));
  return found;
}

}  // namespace lockstep::io
