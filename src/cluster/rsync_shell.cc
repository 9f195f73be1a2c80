#include "cluster/rsync_shell.h"

#include "codec/json.h"

#include <cstdlib>
#include <utility>

namespace lockstep::cluster {
namespace {

std::string text_in(const nlohmann::json& object, const char* name) {
  const auto at = object.find(name);
  return at != object.end() && at->is_string() ? at->get<std::string>() : "";
}

}  // namespace

std::string place_text(const HostPlace& place) {
  nlohmann::ordered_json out{{"name", place.name}, {"host", place.target.host}};
  if (place.target.user) out["user"] = *place.target.user;
  if (place.target.port) out["port"] = *place.target.port;
  out["key_path"] = place.target.key_path;
  out["jump"] = place.target.jump;
  out["pins"] = place.pins;
  return codec::print_json(out);
}

Result<HostPlace> parse_place_text(std::string_view text) {
  const nlohmann::json read = codec::parse_json(text);
  if (!read.is_object() || text_in(read, "host").empty())
    return fail(Errc::invalid_input, "rsync starts this, people do not");
  HostPlace place{.name = text_in(read, "name"), .target = {.host = text_in(read, "host")}};
  if (read.contains("user")) place.target.user = text_in(read, "user");
  if (const auto port = read.find("port"); port != read.end() && port->is_number_integer())
    place.target.port = port->get<int>();
  place.target.key_path = text_in(read, "key_path");
  place.target.jump = text_in(read, "jump");
  place.pins = text_in(read, "pins");
  return place;
}

Result<int> rsync_shell(const std::vector<std::string>& words) {
  const char* text = std::getenv(kRsyncPlace);
  LOCKSTEP_TRY_ASSIGN(HostPlace place, parse_place_text(text == nullptr ? "" : text));
  if (words.size() < 2) return fail(Errc::invalid_input, "rsync starts this, people do not");
  CommandRequest request;
  request.hosts.push_back(std::move(place));
  request.argv.assign(words.begin() + 1, words.end());
  LOCKSTEP_TRY_ASSIGN(const auto endings, run_command(request));
  if (!endings.front().error.empty()) return fail(Errc::unavailable, endings.front().error);
  return endings.front().code;
}

}  // namespace lockstep::cluster
