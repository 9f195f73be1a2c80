#include "ssh/ssh_trouble.h"

#include "base/last_line.h"
#include "base/text.h"

#include <fmt/core.h>

#include <optional>
#include <string>
#include <vector>

namespace lockstep::ssh {
namespace {

// Returns the text between two marks on one line. nullopt: the marks are missing.
std::optional<std::string> between(std::string_view said, std::string_view from,
                                   std::string_view to) {
  const std::size_t at = said.find(from);
  if (at == std::string_view::npos) return std::nullopt;
  std::string_view rest = said.substr(at + from.size());
  rest = rest.substr(0, rest.find('\n'));
  const std::size_t end = to.empty() ? rest.size() : rest.find(to);
  if (end == std::string_view::npos) return std::nullopt;
  return std::string(strip(rest.substr(0, end)));
}

// ssh exits with 255 for every error of its own and says more only in these sentences, which no
// locale translates.
bool has(std::string_view said, std::string_view words) {
  return said.find(words) != std::string_view::npos;
}

Error error(Errc code, std::string message, std::string hint = {}) {
  return fail(code, std::move(message), std::move(hint)).value();
}

// Behind a jump host the bad key may be the jump host's, so the pinned target is not to blame.
std::optional<Error> pinned_trouble(const Target& target, std::string_view said) {
  if (target.host_keys != HostKeys::pinned || !target.jump.empty()) return std::nullopt;
  if (has(said, "REMOTE HOST IDENTIFICATION HAS CHANGED") ||
      has(said, "no matching host key type found"))
    return error(
        Errc::denied,
        "the host key differs from the key made for this machine: another machine answers there, "
        "or a third party intercepts the connection",
        kWrongHost);
  if (has(said, "Host key verification failed") || has(said, "host key is known for"))
    return error(Errc::denied, "no host key is pinned for this machine", kWrongHost);
  return std::nullopt;
}

std::optional<Error> key_trouble(const Target& target, std::string_view said) {
  if (has(said, "is marked as revoked"))
    return error(Errc::denied,
                 "the host key is revoked: a line @revoked of a known_hosts file names the key",
                 "give the host a new key, or delete the line if it is wrong");
  if (has(said, "REMOTE HOST IDENTIFICATION HAS CHANGED")) {
    const std::string place = between(said, "Offending ", "").value_or("");
    const std::string file = place.substr(
        place.find(" in ") == std::string::npos ? place.size() : place.find(" in ") + 4);
    const std::string path = file.substr(0, file.rfind(':'));
    return error(Errc::denied,
                 fmt::format("the host key has changed since the first contact ({}): another "
                             "machine answers, or the host was reinstalled",
                             printable(file)),
                 fmt::format("if the change is right, forget the old key: ssh-keygen -f {} -R {}",
                             shell_quote(path), shell_quote(target.host)));
  }
  if (has(said, "host key is known for"))
    return error(
        Errc::denied,
        "the host key has another type than at the first contact: another "
        "machine answers, or the host was reinstalled",
        fmt::format("if the change is right, forget the old key: ssh-keygen -R {} (-f FILE)",
                    shell_quote(target.host)));
  // ssh ends with this line in the cases above, too.
  if (has(said, "Host key verification failed"))
    return error(Errc::denied, "the host key could not be verified",
                 "log in once with ssh to see and accept the key");
  if (const auto key = between(said, "Permissions 0", "' are too open")) {
    const std::size_t quote = key->find('\'');
    const std::string path = quote == std::string::npos ? *key : key->substr(quote + 1);
    return error(
        Errc::denied,
        fmt::format("other users may read the key {}, so ssh does not use it", printable(path)),
        "chmod 600 " + shell_quote(path));
  }
  if (const auto path = between(said, "Warning: Identity file ", " not accessible"))
    return error(Errc::not_found, fmt::format("the key {} does not exist", printable(*path)));
  return std::nullopt;
}

std::optional<Error> way_trouble(std::string_view said) {
  if (const auto name = between(said, "Could not resolve hostname ", ":"))
    return error(Errc::not_found, fmt::format("the name {} does not resolve", printable(*name)));
  if (const auto hop = between(said, "connect to host ", "")) {
    // "H port P: Connection refused"
    const std::size_t colon = hop->rfind(": ");
    const std::string place = hop->substr(0, colon);
    const std::string why = colon == std::string::npos ? "" : hop->substr(colon + 2);
    return error(why.find("timed out") != std::string::npos ? Errc::timeout : Errc::unavailable,
                 fmt::format("{}: {}", printable(place), printable(to_lower(why))),
                 why == "Connection refused" ? "is sshd running there, on that port?" : "");
  }
  if (const auto why = between(said, "open failed: ", ""))
    return error(Errc::unavailable,
                 fmt::format("the jump host could not connect to the host: {}", printable(*why)));
  if (has(said, "during banner exchange"))
    return error(Errc::timeout, "the port takes connections, but no SSH server greets there");
  return std::nullopt;
}

}  // namespace

Error ssh_trouble(const Target& target, std::string_view said, std::string_view locked_key) {
  if (auto trouble = pinned_trouble(target, said)) return std::move(*trouble);
  if (auto trouble = key_trouble(target, said)) return std::move(*trouble);
  // Report the first failing hop: later errors follow from it.
  if (auto trouble = way_trouble(said)) return std::move(*trouble);
  if (const auto ways = between(said, ": Permission denied (", ")")) {
    const std::size_t at = said.find(": Permission denied (");
    const std::size_t line = said.rfind('\n', at) + 1;  // npos + 1 is 0
    if (!locked_key.empty())
      return error(
          Errc::denied,
          fmt::format("{} is not let in: the host accepts none of our keys (it offers {}), and the "
                      "key {} needs a passphrase, which ssh could not ask for",
                      printable(said.substr(line, at - line)), printable(*ways),
                      printable(locked_key)),
          "load it first: ssh-add " + shell_quote(locked_key));
    return error(Errc::denied,
                 fmt::format("{} is not let in: the host accepts none of our keys (it offers {})",
                             printable(said.substr(line, at - line)), printable(*ways)),
                 "give --user and --key-path, or load the key with ssh-add");
  }
  const std::string_view last = last_line(said);
  return error(Errc::unavailable, last.empty() ? "ssh failed without a word" : printable(last));
}

}  // namespace lockstep::ssh
