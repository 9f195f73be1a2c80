// Prints events in torchelastic's form.
#include "status/events.h"

#include "codec/json.h"

namespace lockstep::status {
namespace {

using Json = nlohmann::ordered_json;

std::string scalar(const Json& json) {
  return codec::print_json(json, codec::JsonText::ascii);
}

// Prints like Python's json.dumps(), with a blank after each comma and colon. Recursive, which is
// fine for our own shallow objects.
std::string python_dump(const Json& json) {
  if (!json.is_structured() || json.empty()) return scalar(json);
  std::string text;
  for (const auto& [key, value] : json.items()) {
    if (!text.empty()) text += ", ";
    if (json.is_object()) text += scalar(Json(key)) + ": ";
    text += python_dump(value);
  }
  return json.is_object() ? "{" + text + "}" : "[" + text + "]";
}

template <class T>
Json nullable(const std::optional<T>& value) {
  return value ? Json(*value) : Json(nullptr);
}

// torchelastic describes one worker per event, but as lists.
Json array_of_one(Json value) {
  Json array = Json::array();
  array.push_back(std::move(value));
  return array;
}

// torchelastic puts this object into the metadata as a string.
Json inner_metadata(const Event& event) {
  Json json;
  json["group_world_size"] = nullable(event.group_world_size);
  json["entry_point"] = event.entry_point;
  if (!event.worker) return json;
  json["local_rank"] = array_of_one(event.worker->local_rank);
  json["role_rank"] = array_of_one(event.worker->role_rank);
  json["role_world_size"] = array_of_one(event.worker->role_world_size);
  json["exit_code"] = array_of_one(nullable(event.worker->exit_code));
  json["worker_pid"] = array_of_one(nullable(event.worker->pid));
  return json;
}

Json metadata(const Event& event) {
  Json json;
  json["run_id"] = event.run_id;
  json["global_rank"] = event.worker ? Json(event.worker->global_rank) : Json(nullptr);
  json["group_rank"] = nullable(event.group_rank);
  json["worker_id"] = event.worker ? Json(event.worker->id) : Json(nullptr);
  json["role"] = event.role;
  json["hostname"] = event.hostname;
  json["state"] = event.state;
  json["total_run_time"] = event.total_run_time_s;
  json["rdzv_backend"] = event.rdzv_backend;
  json["raw_error"] = nullable(event.raw_error);
  json["metadata"] = python_dump(inner_metadata(event));
  json["agent_restarts"] = event.agent_restarts;
  json["duration_ms"] = nullable(event.duration_ms);
  return json;
}

}  // namespace

std::string event_json(const Event& event) {
  Json json;
  json["name"] = "torchelastic.worker.status." + event.state;
  json["source"] = event.source == Event::Source::worker ? "WORKER" : "AGENT";
  json["timestamp"] = event.timestamp_ms;
  json["metadata"] = metadata(event);
  return python_dump(json);
}

}  // namespace lockstep::status
