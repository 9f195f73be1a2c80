#include "ssh/private_key.h"

#include "base/text.h"
#include "codec/base64.h"

#include <algorithm>
#include <string>

namespace lockstep::ssh {

bool needs_passphrase(std::string_view file) {
  constexpr std::string_view kBegin = "-----BEGIN OPENSSH PRIVATE KEY-----";
  constexpr std::size_t kStart =
      64;  // base64 characters: the magic and the cipher's name behind it
  const std::size_t at = file.find(kBegin);
  if (at == std::string_view::npos)
    // The two PEM formats: PKCS#8, and the older one.
    return file.find("-----BEGIN ENCRYPTED PRIVATE KEY-----") != std::string_view::npos ||
           file.find("Proc-Type: 4,ENCRYPTED") != std::string_view::npos;
  std::string text(strip(file.substr(at + kBegin.size())).substr(0, kStart));
  text.erase(std::remove(text.begin(), text.end(), '\n'), text.end());
  // base64 comes in groups of four characters.
  text.resize(text.size() / 4 * 4);
  const auto head = codec::base64_decode(text);
  // PROTOCOL.key: "openssh-key-v1\0", then the cipher's name with its length. "none" means an
  // unencrypted key.
  constexpr std::string_view kOpen("openssh-key-v1\0\0\0\0\4none", 23);
  return head && head->starts_with(kOpen.substr(0, 15)) && !head->starts_with(kOpen);
}

}  // namespace lockstep::ssh
