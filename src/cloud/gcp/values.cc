#include "cloud/gcp/values.h"

#include "base/text.h"

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
    return number > -1e15 && number < 1e15 ? static_cast<std::int64_t>(number) : 0;
  }
  return parse_int(text_at(value, path)).value_or(0);
}

std::string last_part(std::string_view url) {
  return std::string(url.substr(url.rfind('/') + 1));
}

std::string region_of(std::string_view zone) {
  return std::string(zone.substr(0, zone.rfind('-')));
}

std::string json_text(std::string_view text) {
  return codec::print_json(nlohmann::json(std::string(text)));
}

}  // namespace lockstep::cloud::gcp
