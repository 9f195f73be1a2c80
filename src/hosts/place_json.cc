#include "hosts/place_json.h"

#include "codec/json_members.h"

#include <utility>

namespace lockstep::hosts {
namespace {

HostPlace place_of(const nlohmann::json& object) {
  HostPlace place;
  place.name = codec::text_member(object, "name");
  place.pins = codec::text_member(object, "pins");
  place.here = object.contains("here");
  place.target.host = codec::text_member(object, "host");
  place.target.key_path = codec::text_member(object, "key_path");
  place.target.jump = codec::text_member(object, "jump");
  if (object.contains("pinned")) place.target.host_keys = ssh::HostKeys::pinned;
  // A missing user differs from an empty one: ssh then chooses the user.
  if (object.contains("user")) place.target.user = codec::text_member(object, "user");
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
    if (place.target.host_keys == ssh::HostKeys::pinned) each["pinned"] = true;
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

}  // namespace lockstep::hosts
