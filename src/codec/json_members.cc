// Reads members leniently.
#include "codec/json_members.h"

namespace lockstep::codec {

std::string text_member(const nlohmann::json& object, const char* name) {
  const auto at = object.find(name);
  return at != object.end() && at->is_string() ? at->get<std::string>() : std::string();
}

std::int64_t integer_member(const nlohmann::json& object, const char* name) {
  const auto at = object.find(name);
  return at != object.end() && at->is_number_integer() ? at->get<std::int64_t>() : 0;
}

std::vector<std::string> texts_member(const nlohmann::json& object, const char* name) {
  std::vector<std::string> texts;
  if (const auto list = object.find(name); list != object.end() && list->is_array())
    for (const auto& text : *list)
      if (text.is_string()) texts.push_back(text.get<std::string>());
  return texts;
}

}  // namespace lockstep::codec
