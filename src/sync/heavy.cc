#include "sync/heavy.h"

#include <algorithm>
#include <map>
#include <string_view>

namespace lockstep::sync {

std::vector<Heavy> heaviest(const Manifest& manifest, std::size_t count) {
  std::map<std::string, std::uint64_t, std::less<>> sums;
  for (const Entry& entry : manifest) {
    sums[entry.path] += entry.size;
    for (std::size_t slash = entry.path.find('/'); slash != std::string::npos;
         slash = entry.path.find('/', slash + 1))
      sums[entry.path.substr(0, slash + 1)] += entry.size;
  }
  // Skips a folder if one part holds three quarters of its bytes: the part says more.
  const auto has_a_heart = [&sums](const std::string& folder, std::uint64_t bytes) {
    for (auto at = sums.upper_bound(folder); at != sums.end() && at->first.starts_with(folder);
         ++at)
      if (at->second >= bytes - bytes / 4) return true;
    return false;
  };
  std::vector<Heavy> all;
  for (const auto& [path, bytes] : sums)
    if (bytes != 0 && (!path.ends_with('/') || !has_a_heart(path, bytes)))
      all.push_back({path, bytes});
  std::stable_sort(all.begin(), all.end(),
                   [](const Heavy& a, const Heavy& b) { return a.bytes > b.bytes; });
  std::vector<Heavy> chosen;
  for (Heavy& each : all) {
    if (chosen.size() == count) break;
    const bool apart = std::none_of(chosen.begin(), chosen.end(), [&each](const Heavy& other) {
      // Do not name a folder and its part: both would count the same bytes.
      return each.path.starts_with(other.path) || other.path.starts_with(each.path);
    });
    if (apart) chosen.push_back(std::move(each));
  }
  return chosen;
}

}  // namespace lockstep::sync
