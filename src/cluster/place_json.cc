#include "cluster/place_json.h"

#include "codec/json.h"

#include <utility>

namespace lockstep::cluster {
namespace {

std::string text_in(const nlohmann::json& object, const char* name) {
  const auto at = object.find(name);
  return at != object.end() && at->is_string() ? at->get<std::string>() : std::string();
}

HostPlace place_of(const nlohmann::json& object) {
  HostPlace place;
  place.name = text_in(object, "name");
  place.pins = text_in(object, "pins");
  place.here = object.contains("here");
  place.target.host = text_in(object, "host");
  place.target.key_path = text_in(object, "key_path");
  place.target.jump = text_in(object, "jump");
  if (object.contains("user")) place.target.user = text_in(object, "user");
  const auto port = object.find("port");
  if (port != object.end() && port->is_number_unsigned()) place.target.port = port->get<int>();
  return place;
}

}  // namespace

std::string places_text(const std::vector<HostPlace>& places) {
  nlohmann::ordered_json all = nlohmann::ordered_json::array();
  for (const HostPlace& place : places) {
    nlohmann::ordered_json each{{"name", place.name}};
    if (place.here) each["here"] = true;
    each["host"] = place.target.host;
    if (place.target.user) each["user"] = *place.target.user;
    if (place.target.port) each["port"] = *place.target.port;
    if (!place.target.key_path.empty()) each["key_path"] = place.target.key_path;
    if (!place.target.jump.empty()) each["jump"] = place.target.jump;
    if (!place.pins.empty()) each["pins"] = place.pins;
    all.push_back(std::move(each));
  }
  return codec::print_json(all);
}

Result<std::vector<HostPlace>> parse_places(std::string_view text) {
  const nlohmann::json json = codec::parse_json(text);
  if (!json.is_array()) return fail(Errc::corrupt, "the nodes of a job are not readable");
  std::vector<HostPlace> places;
  for (const nlohmann::json& each : json) {
    if (!each.is_object()) return fail(Errc::corrupt, "a node of a job is not readable");
    places.push_back(place_of(each));
  }
  return places;
}

}  // namespace lockstep::cluster
