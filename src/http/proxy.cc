// curl's rules for proxies and NO_PROXY.
#include "http/proxy.h"

#include "base/text.h"
#include "codec/base64.h"
#include "codec/url.h"

#include <fmt/core.h>

#include <arpa/inet.h>
#include <netinet/in.h>

#include <algorithm>
#include <array>
#include <climits>

namespace lockstep::http {
namespace {

// The bytes of an address: 4, 16, or none.
struct AddressBytes {
  std::array<unsigned char, sizeof(in6_addr)> bytes{};
  std::size_t size = 0;
};

AddressBytes address_bytes(const std::string& text) {
  AddressBytes address;
  if (inet_pton(AF_INET, text.c_str(), address.bytes.data()) == 1) {
    address.size = sizeof(in_addr);
  } else if (inet_pton(AF_INET6, text.c_str(), address.bytes.data()) == 1) {
    address.size = sizeof(in6_addr);
  }
  return address;
}

bool same_start(const AddressBytes& a, const AddressBytes& b, std::size_t bits) {
  if (a.size == 0 || a.size != b.size || bits > a.size * CHAR_BIT) return false;
  for (std::size_t bit = 0; bit < bits; ++bit) {
    const auto mask = static_cast<unsigned char>(0x80U >> (bit % CHAR_BIT));
    if (((a.bytes[bit / CHAR_BIT] ^ b.bytes[bit / CHAR_BIT]) & mask) != 0) return false;
  }
  return true;
}

// Names below "localhost" are loopback by RFC 6761. The whole net 127.0.0.0/8 is loopback on Linux.
bool is_this_machine(const std::string& host) {
  const AddressBytes address = address_bytes(host);
  return host == "localhost" || host.ends_with(".localhost") || host == "::1" ||
         (address.size == sizeof(in_addr) && address.bytes[0] == 127);
}

// Removes ":PORT" and brackets from a word of NO_PROXY. Returns false if the word is for another
// port.
bool take_word_port(std::string& word, int port) {
  std::size_t colon = word.rfind(':');
  const bool in_brackets = word.starts_with('[');
  if (in_brackets) {
    const std::size_t end = word.find(']');
    if (end == std::string::npos) return false;
    colon = end + 1 < word.size() && word[end + 1] == ':' ? end + 1 : std::string::npos;
  } else if (colon != word.find(':')) {
    colon = std::string::npos;  // IPv6 without brackets
  }
  if (colon != std::string::npos) {
    if (parse_int(word.substr(colon + 1)) != port) return false;
    word.resize(colon);
  }
  if (in_brackets) word = word.substr(1, word.find(']') - 1);
  return true;
}

bool covers(std::string word, const std::string& host, int port) {
  if (word == "*") return true;
  const std::size_t slash = word.find('/');
  if (slash != std::string::npos) {
    const auto bits = parse_int(word.substr(slash + 1));
    return bits && *bits >= 0 &&
           same_start(address_bytes(word.substr(0, slash)), address_bytes(host),
                      static_cast<std::size_t>(*bits));
  }
  if (!take_word_port(word, port)) return false;
  // "*.example", ".example" and "example" mean the same to curl.
  if (word.starts_with("*.")) word.erase(0, 1);
  if (word.starts_with('.')) word.erase(0, 1);
  if (word.ends_with('.')) word.pop_back();
  if (word.empty()) return false;
  // An address matches as a whole only: "0.0.1" must not cover "10.0.0.1".
  const AddressBytes address = address_bytes(host);
  if (address.size > 0) return same_start(address_bytes(word), address, address.size * CHAR_BIT);
  return host == word || host.ends_with("." + word);
}

struct NamedValue {
  std::string name;
  std::string value;
};

// Looks for the lower-case name first, like curl. An empty value counts: it switches the proxy off.
std::optional<NamedValue> variable(const EnvLookup& env, const std::string& name) {
  if (auto value = env(name)) return NamedValue{name, std::move(*value)};
  std::string capitals = to_upper(name);
  // In a CGI program HTTP_PROXY is the Proxy header of a request ("httpoxy"), so any client could
  // set it.
  if (capitals == "HTTP_PROXY" && env("REQUEST_METHOD")) return std::nullopt;
  if (auto value = env(capitals)) return NamedValue{std::move(capitals), std::move(*value)};
  return std::nullopt;
}

Result<Proxy> read_proxy(const NamedValue& from) {
  const bool bare = from.value.find("://") == std::string::npos;
  if (!bare && !to_lower(from.value).starts_with("http://")) {
    return fail(Errc::invalid_input,
                from.name + " names a proxy of a kind that isn't supported (https or SOCKS)",
                "write the proxy as http://HOST:PORT; https stays encrypted through the proxy");
  }
  // curl accepts a bare HOST:PORT.
  const std::string text = bare ? "http://" + from.value : from.value;
  LOCKSTEP_TRY_ASSIGN(const codec::Url url, codec::parse_url(text, from.name));
  Proxy proxy{.host = url.host, .port = url.port, .source = from.name};
  if (!url.user.empty() || !url.password.empty())
    proxy.authorization = "Basic " + codec::base64_encode(url.user + ":" + url.password);
  return proxy;
}

}  // namespace

std::string Proxy::text() const {
  return fmt::format("the proxy http://{} ({})", codec::host_text(host, port, true), source);
}

bool is_in_no_proxy(std::string_view no_proxy, const std::string& host, int port) {
  std::string plain = to_lower(host);
  if (plain.ends_with('.')) plain.pop_back();
  std::string words = to_lower(no_proxy);
  std::replace_if(
      words.begin(), words.end(), [](char c) { return c == ' ' || c == '\t'; }, ',');
  const auto all = split(words, ',');
  return std::any_of(all.begin(), all.end(),
                     [&](const std::string& word) { return covers(word, plain, port); });
}

Result<std::optional<Proxy>> choose_proxy(const EnvLookup& env, const std::string& host, int port,
                                          bool tls) {
  auto from = variable(env, tls ? "https_proxy" : "http_proxy");
  if (!from) from = variable(env, "all_proxy");
  if (!from || strip(from->value).empty()) return std::nullopt;
  // A proxy's "localhost" would be the proxy's own machine.
  if (is_this_machine(to_lower(host))) return std::nullopt;
  const auto except = variable(env, "no_proxy");
  if (except && is_in_no_proxy(except->value, host, port)) return std::nullopt;
  from->value = strip(from->value);
  LOCKSTEP_TRY_ASSIGN(Proxy proxy, read_proxy(*from));
  return proxy;
}

}  // namespace lockstep::http
