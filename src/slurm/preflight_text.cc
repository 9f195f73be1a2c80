#include "slurm/preflight_text.h"

#include "base/text.h"
#include "codec/json_members.h"

#include <algorithm>
#include <limits>

namespace lockstep::slurm {
namespace {

using Json = nlohmann::json;
using Ordered = nlohmann::ordered_json;

// Bounds for messages of other nodes. Their texts reach the job's output, so all are made
// printable.
constexpr std::size_t kMostItems = 100'000;
constexpr std::size_t kMostText = 400;

std::string text_in(const Json& json, const char* name) {
  return printable(codec::text_member(json, name), kMostText);
}

int number_in(const Json& json, const char* name) {
  return static_cast<int>(std::clamp<std::int64_t>(codec::integer_member(json, name), -1,
                                                   std::numeric_limits<int>::max()));
}

bool flag_in(const Json& json, const char* name) {
  const auto found = json.find(name);
  return found != json.end() && found->is_boolean() && found->get<bool>();
}

// Calls `each` for the items of a list. Ignores any other type.
template <class Each>
void for_items(const Json& json, const char* name, Each each) {
  const auto found = json.find(name);
  if (found == json.end() || !found->is_array()) return;
  std::size_t count = 0;
  for (const Json& item : *found)
    if (++count <= kMostItems) each(item);
}

std::vector<std::string> texts_in(const Json& json, const char* name) {
  std::vector<std::string> texts;
  for_items(json, name, [&](const Json& item) {
    if (item.is_string()) texts.push_back(printable(item.get<std::string>(), 2 * kMostText));
  });
  return texts;
}

// An unknown number, from a newer version, counts as cut.
Unreached::How how_in(const Json& json) {
  const int how = number_in(json, "how");
  if (how == static_cast<int>(Unreached::How::refused)) return Unreached::How::refused;
  return how == static_cast<int>(Unreached::How::other) ? Unreached::How::other
                                                        : Unreached::How::cut;
}

Ordered folder_json(const FolderFacts& folder) {
  return {{"path", folder.path},
          {"trouble", folder.trouble},
          {"free_mib", folder.free_mib},
          {"total_mib", folder.total_mib}};
}

FolderFacts folder_in(const Json& json, const char* name) {
  const auto found = json.find(name);
  if (found == json.end() || !found->is_object()) return {};
  return {text_in(*found, "path"), text_in(*found, "trouble"),
          codec::integer_member(*found, "free_mib"), codec::integer_member(*found, "total_mib")};
}

Ordered python_json(const PythonAnswer& python) {
  return {{"asked", python.asked},     {"finished", python.finished}, {"path", python.path},
          {"version", python.version}, {"torch", python.torch},       {"trouble", python.trouble},
          {"gpus", python.gpus},       {"broken", python.broken}};
}

PythonAnswer python_in(const Json& json) {
  const auto found = json.find("python");
  if (found == json.end() || !found->is_object()) return {};
  PythonAnswer python;
  python.asked = flag_in(*found, "asked");
  python.finished = flag_in(*found, "finished");
  python.path = text_in(*found, "path");
  python.version = text_in(*found, "version");
  python.torch = text_in(*found, "torch");
  python.trouble = text_in(*found, "trouble");
  python.gpus = number_in(*found, "gpus");
  python.broken = texts_in(*found, "broken");
  return python;
}

}  // namespace

std::string facts_text(const NodeFacts& facts) {
  Ordered unreached = Ordered::array();
  for (const Unreached& each : facts.unreached)
    unreached.push_back(
        {{"node", each.node}, {"why", each.why}, {"how", static_cast<int>(each.how)}});
  return codec::print_json(Ordered{{"clock_ms", facts.clock_ms},
                                   {"temp", folder_json(facts.temp)},
                                   {"job", folder_json(facts.job)},
                                   {"shared_memory", folder_json(facts.shared_memory)},
                                   {"gpus_given", facts.gpus_given},
                                   {"gpus_seen", facts.gpus_seen},
                                   {"gpu_users", facts.gpu_users},
                                   {"memlock_kib", facts.memlock_kib},
                                   {"fabric", facts.fabric},
                                   {"port_trouble", facts.port_trouble},
                                   {"python", python_json(facts.python)},
                                   {"unreached", std::move(unreached)}});
}

Result<NodeFacts> facts_from_text(std::string_view text, int nodes) {
  const Json json = codec::parse_json(text);
  if (!json.is_object() || !json.contains("clock_ms"))
    return fail(Errc::corrupt, "the message must be the facts of a node");
  NodeFacts facts;
  facts.clock_ms = codec::integer_member(json, "clock_ms");
  facts.temp = folder_in(json, "temp");
  facts.job = folder_in(json, "job");
  facts.shared_memory = folder_in(json, "shared_memory");
  facts.gpus_given = number_in(json, "gpus_given");
  facts.gpus_seen = number_in(json, "gpus_seen");
  facts.gpu_users = texts_in(json, "gpu_users");
  facts.memlock_kib = codec::integer_member(json, "memlock_kib");
  facts.fabric = flag_in(json, "fabric");
  facts.port_trouble = text_in(json, "port_trouble");
  facts.python = python_in(json);
  for_items(json, "unreached", [&](const Json& item) {
    if (!item.is_object()) return;
    const int node = number_in(item, "node");
    if (node >= 0 && node < nodes)
      facts.unreached.push_back({node, text_in(item, "why"), how_in(item)});
  });
  return facts;
}

std::string decision_text(const PreflightDecision& decision) {
  Ordered left_out = Ordered::array();
  for (const LeftOut& each : decision.left_out)
    left_out.push_back({{"node", each.node}, {"why", each.why}, {"bad", each.bad}});
  return codec::print_json(Ordered{{"ends", decision.ends},
                                   {"left_out", std::move(left_out)},
                                   {"lines", decision.lines}}) +
         "\n";
}

Result<PreflightDecision> decision_from_text(std::string_view text) {
  const Json json = codec::parse_json(text, {.bytes = 16U << 20});
  if (!json.is_object() || !json.contains("ends"))
    return fail(Errc::corrupt, "the text must be the decision of a pre-flight");
  PreflightDecision decision;
  decision.ends = flag_in(json, "ends");
  for_items(json, "left_out", [&](const Json& item) {
    if (item.is_object())
      decision.left_out.push_back(
          {text_in(item, "node"), text_in(item, "why"), flag_in(item, "bad")});
  });
  decision.lines = texts_in(json, "lines");
  return decision;
}

void take_python_line(std::string_view line, PythonAnswer& answer) {
  // Imported modules print lines of their own.
  constexpr std::string_view kMarker = "lockstep:";
  if (!line.starts_with(kMarker)) return;
  const Json json = codec::parse_json(line.substr(kMarker.size()));
  if (!json.is_object()) return;
  if (json.contains("version")) answer.version = text_in(json, "version");
  if (!json.contains("torch")) return;
  answer.finished = true;
  answer.torch = text_in(json, "torch");
  answer.trouble = text_in(json, "trouble");
  answer.gpus = json.contains("gpus") ? number_in(json, "gpus") : -1;
  answer.broken = texts_in(json, "broken");
}

}  // namespace lockstep::slurm
