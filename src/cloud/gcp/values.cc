#include "cloud/gcp/values.h"

#include "base/text.h"

#include <algorithm>

namespace lockstep::cloud::gcp {

const nlohmann::json& at(const nlohmann::json& value, std::string_view path) {
  static const nlohmann::json nothing;
  const nlohmann::json* here = &value;
  while (!path.empty()) {
    const std::size_t end = path.find('/');
    const std::string step(path.substr(0, end));
    path = end == std::string_view::npos ? "" : path.substr(end + 1);
    if (here->is_array()) {
      const auto index = parse_int(step);
      if (!index || *index < 0 || static_cast<std::size_t>(*index) >= here->size()) return nothing;
      here = &(*here)[static_cast<std::size_t>(*index)];
      continue;
    }
    // find() on a text or number gives end(), so any shape of answer is safe.
    const auto member = here->find(step);
    if (member == here->end()) return nothing;
    here = &*member;
  }
  return *here;
}

std::string text_at(const nlohmann::json& value, std::string_view path) {
  const nlohmann::json& found = at(value, path);
  return found.is_string() ? found.get<std::string>() : std::string();
}

std::int64_t number_at(const nlohmann::json& value, std::string_view path) {
  const nlohmann::json& found = at(value, path);
  if (found.is_number_integer()) return found.get<std::int64_t>();
  if (found.is_number()) {
    const auto number = found.get<double>();
    // A cast of a larger double to an integer would be undefined behaviour.
    return number > -1e15 && number < 1e15 ? static_cast<std::int64_t>(number) : 0;
  }
  return parse_int(text_at(value, path)).value_or(0);
}

std::vector<const nlohmann::json*> items_at(const nlohmann::json& value, std::string_view path) {
  std::vector<const nlohmann::json*> items;
  const nlohmann::json& list = at(value, path);
  if (list.is_array())
    for (const nlohmann::json& item : list)
      items.push_back(&item);
  return items;
}

std::vector<std::string> texts_at(const nlohmann::json& value, std::string_view path) {
  std::vector<std::string> texts;
  for (const nlohmann::json* item : items_at(value, path))
    if (item->is_string()) texts.push_back(item->get<std::string>());
  return texts;
}

std::vector<InZone> items_in_zones(const nlohmann::json& page, std::string_view member) {
  std::vector<InZone> all;
  const nlohmann::json& items = at(page, "items");
  if (!items.is_object()) return all;
  for (auto scope = items.begin(); scope != items.end(); ++scope)
    // Aggregated lists also have scopes such as "global" and "regions/...".
    if (scope.key().starts_with("zones/"))
      for (const nlohmann::json* item : items_at(*scope, member))
        all.push_back({scope.key().substr(6), item});
  return all;
}

std::vector<std::string> unheard_zones(const nlohmann::json& page) {
  std::vector<std::string> places = texts_at(page, "unreachables");
  const nlohmann::json& items = at(page, "items");
  if (items.is_object())
    for (auto scope = items.begin(); scope != items.end(); ++scope)
      // Google reports an unreachable zone in one of two places.
      if (text_at(*scope, "warning/code") == "UNREACHABLE") places.push_back(scope.key());
  std::vector<std::string> zones;
  for (const std::string& place : places)
    if (std::string zone = printable(last_part(place), 60);
        std::find(zones.begin(), zones.end(), zone) == zones.end())
      zones.push_back(std::move(zone));
  return zones;
}

std::string last_part(std::string_view url) {
  return std::string(url.substr(url.rfind('/') + 1));
}

std::string region_of(std::string_view zone) {
  return std::string(zone.substr(0, zone.rfind('-')));
}

}  // namespace lockstep::cloud::gcp
