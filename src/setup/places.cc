#include "setup/places.h"

#include "io/digest.h"

#include <algorithm>
#include <filesystem>
#include <system_error>

namespace lockstep::setup {
namespace {

constexpr std::size_t kMostName = 60;
constexpr std::size_t kDigits = 12;

}  // namespace

std::string plain_folder(const std::string& folder) {
  std::error_code trouble;
  const auto plain = std::filesystem::weakly_canonical(folder, trouble);
  std::string text = trouble ? folder : plain.string();
  while (text.size() > 1 && text.ends_with('/'))
    text.pop_back();
  return text;
}

std::string key_of(const std::string& plain_folder) {
  std::string name = plain_folder.substr(plain_folder.rfind('/') + 1, kMostName);
  std::replace_if(
      name.begin(), name.end(),
      [](char c) {
        const bool kept = (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') ||
                          (c >= '0' && c <= '9') || c == '_' || c == '-' || c == '.';
        return !kept;
      },
      '_');
  return name + "-" + io::digest_of(plain_folder).substr(0, kDigits);
}

}  // namespace lockstep::setup
