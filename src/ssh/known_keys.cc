#include "ssh/known_keys.h"

#include "base/text.h"
#include "codec/base64.h"

#include <fmt/core.h>

#include <openssl/evp.h>
#include <openssl/hmac.h>

#include <algorithm>
#include <array>
#include <utility>

namespace lockstep::ssh {
namespace {

constexpr std::string_view kHashed = "|1|";
constexpr int kUsualPort = 22;

// Matches with ssh's patterns: '*' is any text, '?' any character.
bool matches(std::string_view pattern, std::string_view name) {
  std::size_t p = 0;
  std::size_t n = 0;
  std::size_t star = std::string_view::npos;
  std::size_t from = 0;
  while (n < name.size()) {
    if (p < pattern.size() && (pattern[p] == '?' || pattern[p] == name[n]) && pattern[p] != '*') {
      ++p;
      ++n;
    } else if (p < pattern.size() && pattern[p] == '*') {
      star = p++;
      from = n;
    } else if (star != std::string_view::npos) {
      p = star + 1;
      n = ++from;
    } else {
      return false;
    }
  }
  return pattern.find_first_not_of('*', p) == std::string_view::npos;
}

// Checks "|1|SALT|HMAC", the form of ssh's option HashKnownHosts.
bool is_hash_of(std::string_view text, std::string_view name) {
  const std::vector<std::string> parts = split(text.substr(kHashed.size()), '|');
  if (parts.size() != 2) return false;
  const auto salt = codec::base64_decode(parts[0]);
  const auto hash = codec::base64_decode(parts[1]);
  if (!salt || !hash) return false;
  std::array<unsigned char, EVP_MAX_MD_SIZE> bytes;
  unsigned int size = 0;
  if (HMAC(EVP_sha1(), salt->data(), static_cast<int>(salt->size()),
           reinterpret_cast<const unsigned char*>(name.data()), name.size(), bytes.data(),
           &size) == nullptr)
    return false;
  return *hash == std::string_view(reinterpret_cast<const char*>(bytes.data()), size);
}

bool are_for(std::string_view names, std::string_view name) {
  if (names.starts_with(kHashed)) return is_hash_of(names, name);
  bool found = false;
  for (const std::string& each : split(names, ',')) {
    const bool negates = each.starts_with('!');
    if (!matches(to_lower(std::string_view(each).substr(negates ? 1 : 0)), name)) continue;
    // A negated pattern wins over all others, as in ssh.
    if (negates) return false;
    found = true;
  }
  return found;
}

std::vector<std::string> words_of(std::string_view line) {
  std::vector<std::string> words;
  while (!(line = strip(line)).empty()) {
    const std::size_t end = std::min(line.find_first_of(" \t"), line.size());
    words.emplace_back(line.substr(0, end));
    line.remove_prefix(end);
  }
  return words;
}

std::string_view type_of(std::string_view key) {
  return key.substr(0, key.find(' '));
}

// Returns true if `one` has a key of a type for which `other` has only different keys.
bool has_refused_key(const KnownKeys& one, const KnownKeys& other) {
  return std::any_of(one.keys.begin(), one.keys.end(), [&other](const std::string& key) {
    return std::find(other.keys.begin(), other.keys.end(), key) == other.keys.end() &&
           std::any_of(other.keys.begin(), other.keys.end(),
                       [&key](const std::string& each) { return type_of(each) == type_of(key); });
  });
}

}  // namespace

std::vector<std::string> known_keys(std::string_view text, std::string_view name) {
  std::vector<std::string> keys;
  for (const std::string& line : split(text, '\n')) {
    // Lines with a marker ("@cert-authority", "@revoked") do not list a host's own key.
    if (line.starts_with('#') || line.starts_with('@')) continue;
    const std::vector<std::string> words = words_of(line);
    // Names, type and key; a comment may follow.
    if (words.size() >= 3 && are_for(words[0], name)) keys.push_back(words[1] + " " + words[2]);
  }
  return keys;
}

bool has_marked_line(std::string_view text, std::string_view name) {
  for (const std::string& line : split(text, '\n')) {
    if (!line.starts_with('@')) continue;
    const std::vector<std::string> words = words_of(line);
    // Marker, names, type and key.
    if (words.size() >= 4 && are_for(words[1], name)) return true;
  }
  return false;
}

// ssh accepts any key of any of its files. If a second file refuses a key of the first, leave out
// the first: the keys accepted by both are in the second.
Result<Trust> trust_in(const std::vector<KnownKeys>& files, std::string_view name) {
  Trust trust;
  for (const KnownKeys& file : files) {
    if (!file.marked && file.keys.empty()) continue;
    const auto other = std::find_if(files.begin(), files.end(), [&file](const KnownKeys& each) {
      return has_refused_key(file, each);
    });
    trust.strict = trust.strict || !file.keys.empty();
    if (other == files.end()) {
      trust.files.push_back(file.file);
    } else if (file.marked || has_refused_key(*other, file)) {
      return fail(Errc::denied,
                  fmt::format("{} and {} list different host keys for this host, so one file "
                              "or the other refuses every key",
                              printable(file.file), printable(other->file)),
                  fmt::format("forget the wrong key: ssh-keygen -f FILE -R {}",
                              shell_quote(std::string(name))));
    }
  }
  return trust;
}

LookUp parse_look_up(std::string_view ssh_g, const std::string& home) {
  LookUp look_up;
  std::string host;
  std::string alias;
  std::string port;
  for (const std::string& line : split(ssh_g, '\n')) {
    const std::vector<std::string> words = words_of(line);
    if (words.size() < 2) continue;
    if (words[0] == "hostname") host = words[1];
    if (words[0] == "hostkeyalias") alias = words[1];
    if (words[0] == "port") port = words[1];
    if (words[0] == "identityfile")
      look_up.identities.push_back(words[1].starts_with("~/") ? home + words[1].substr(1)
                                                              : words[1]);
    if (words[0] != "userknownhostsfile" && words[0] != "globalknownhostsfile") continue;
    for (std::size_t i = 1; i < words.size(); ++i)
      look_up.files.push_back(words[i].starts_with("~/") ? home + words[i].substr(1) : words[i]);
  }
  look_up.name = to_lower(alias.empty() ? host : alias);
  // ssh looks up a HostKeyAlias without a port.
  if (alias.empty() && !port.empty() && parse_int(port) != kUsualPort)
    look_up.name = fmt::format("[{}]:{}", look_up.name, port);
  return look_up;
}

}  // namespace lockstep::ssh
