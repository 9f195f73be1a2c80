#include "cloud/gcp/requests.h"

#include "base/text.h"
#include "cloud/gcp/types.h"
#include "cloud/json_words.h"
#include "cloud/time_text.h"
#include "codec/sha256.h"

#include <fmt/core.h>

#include <algorithm>

namespace lockstep::cloud::gcp {
namespace {

constexpr std::size_t kLabelLimit = 63;
constexpr std::int64_t kLeastRun = 30;  // seconds, as documented

// An instance names other objects by a path in their zone. A bulk insert needs bare names.
enum class Naming { by_path, bare };

std::string place(Naming naming, const LaunchSpec& spec, std::string_view kind,
                  std::string_view name) {
  if (naming == Naming::bare) return json_text(name);
  return json_text(fmt::format("zones/{}/{}/{}", spec.offer.zone, kind, name));
}

std::string disks_text(Naming naming, const LaunchSpec& spec, const LaunchWords& words,
                       const Series* series) {
  const bool hyper = series != nullptr && series->hyperdisk;
  return fmt::format(
      R"([{{"autoDelete":true,"boot":true,"initializeParams":{{"diskSizeGb":"{}","diskType":{},"sourceImage":{}}}}}])",
      words.disk_gb, place(naming, spec, "diskTypes", hyper ? "hyperdisk-balanced" : "pd-balanced"),
      json_text(words.image));
}

// Returns whether to set install-nvidia-driver. Google's Deep Learning images install the driver at
// first boot only with this key. Google's guide sets the key for images whose family names a driver
// (-nvidia-580), too. Such an image keeps its driver.
bool installs_driver(const LaunchSpec& spec, const LaunchWords& words) {
  return spec.offer.gpus > 0 && words.image.starts_with("projects/deeplearning-platform-release/");
}

// Requests no service account: programs on the machine must not have any of the user's rights.
std::string metadata_text(const LaunchSpec& spec, const LaunchWords& words) {
  const auto item = [](std::string_view key, std::string_view value) {
    return fmt::format(R"({{"key":"{}","value":{}}})", key, json_text(value));
  };
  std::string text = R"({"items":[)";
  if (!spec.user_data.empty()) text += item("user-data", spec.user_data) + ",";
  text += item("ssh-keys", fmt::format("{}:{}", kUser, strip(spec.public_key))) + ",";
  text += item("enable-guest-attributes", "TRUE") + ",";
  if (installs_driver(spec, words)) text += item("install-nvidia-driver", "True") + ",";
  // Keys of the whole project must not open this machine.
  return text + item("block-project-ssh-keys", "true") + "]}";
}

std::string scheduling_text(const LaunchSpec& spec) {
  // Machines with GPUs cannot migrate, so Google requires TERMINATE for maintenance.
  std::string text = fmt::format(R"({{"automaticRestart":false,"onHostMaintenance":"TERMINATE",)"
                                 R"("provisioningModel":"{}")",
                                 spec.offer.spot ? "SPOT" : "STANDARD");
  // Delete rather than stop, after a preemption and at the end of the run: Google bills the disk of
  // a stopped machine.
  if (spec.offer.spot || spec.lifetime_s > 0) text += R"(,"instanceTerminationAction":"DELETE")";
  if (spec.lifetime_s > 0)
    text += fmt::format(R"(,"maxRunDuration":{{"seconds":"{}"}})",
                        std::clamp(spec.lifetime_s, kLeastRun, kMostRun));
  return text + "}";
}

std::string labels_text(const LaunchSpec& spec) {
  std::string text = fmt::format(
      R"({{"lockstep-attempt":"{}","lockstep-cluster":{},"lockstep-intent":{},"lockstep-owner":{})",
      spec.attempt, json_text(label_of(spec.cluster)), json_text(label_of(spec.intent)),
      json_text(label_of(spec.owner)));
  if (spec.ends_ms > 0)
    text += fmt::format(R"(,"lockstep-ends":{})", json_text(time_label(spec.ends_ms)));
  return text + "}";
}

// Makes the members common to the bodies for one machine and for a gang, without braces.
std::string properties_text(Naming naming, const LaunchSpec& spec, const LaunchWords& words) {
  const TypeName type = parse_type(spec.offer.type);
  std::string added;
  if (!type.accelerator.empty())
    added = fmt::format(R"("guestAccelerators":[{{"acceleratorCount":{},"acceleratorType":{}}}],)",
                        spec.offer.gpus, place(naming, spec, "acceleratorTypes", type.accelerator));
  return fmt::format(
      R"("disks":{},{}"labels":{},"machineType":{},"metadata":{},"networkInterfaces":[{{"accessConfigs":[{{"name":"External NAT","type":"ONE_TO_ONE_NAT"}}],"network":"{}"}}],"scheduling":{},"tags":{{"items":[{}]}})",
      disks_text(naming, spec, words, series_of(type.machine)), added, labels_text(spec),
      place(naming, spec, "machineTypes", type.machine), metadata_text(spec, words), kNetwork,
      scheduling_text(spec), json_text(machine_tag(spec.owner)));
}

}  // namespace

std::string machine_name(const LaunchSpec& spec, int node) {
  return fmt::format("ls-{}-{}-{}", spec.intent, spec.attempt, node);
}

int node_of_name(std::string_view name) {
  const std::vector<std::string> parts = split(name, '-');
  if (parts.size() != 4 || parts[0] != "ls") return -1;
  const auto node = parse_int(parts[3]);
  return node && *node >= 0 && *node < 100'000 ? static_cast<int>(*node) : -1;
}

std::string request_id(const LaunchSpec& spec) {
  std::string bytes =
      codec::sha256(fmt::format("{}/{}/{}", spec.intent, spec.attempt, spec.node)).substr(0, 16);
  bytes[6] = static_cast<char>((bytes[6] & 0x0F) | 0x50);  // version 5: made from a name
  bytes[8] = static_cast<char>((bytes[8] & 0x3F) | 0x80);
  std::string text = codec::hex(bytes);
  for (const std::size_t where : {8, 13, 18, 23})
    text.insert(where, "-");
  return text;
}

std::string request_id_of_name(std::string_view name) {
  const std::vector<std::string> parts = split(name, '-');
  const auto attempt = parts.size() == 4 ? parse_int(parts[2]) : std::nullopt;
  if (!attempt || *attempt < 1 || *attempt > 100'000 || node_of_name(name) < 0) return {};
  // A gang is launched by one call, and the first node has number 0.
  LaunchSpec spec;
  spec.intent = parts[1];
  spec.attempt = static_cast<int>(*attempt);
  return request_id(spec);
}

std::string insert_body(const LaunchSpec& spec, const LaunchWords& words) {
  return fmt::format(R"({{"name":{},{}}})", json_text(machine_name(spec, spec.node)),
                     properties_text(Naming::by_path, spec, words));
}

std::string bulk_body(const LaunchSpec& spec, const LaunchWords& words) {
  std::string names;
  for (int node = spec.node; node < spec.node + spec.count; ++node)
    names += (names.empty() ? "" : ",") + json_text(machine_name(spec, node)) + ":{}";
  return fmt::format(
      R"({{"count":"{0}","instanceProperties":{{{1}}},"minCount":"{0}","perInstanceProperties":{{{2}}}}})",
      spec.count, properties_text(Naming::bare, spec, words), names);
}

std::string firewall_name(std::string_view owner) {
  return fmt::format("lockstep-ssh-{}", owner);
}

std::string machine_tag(std::string_view owner) {
  return fmt::format("lockstep-{}", owner);
}

static std::string json_texts(const std::vector<std::string>& texts) {
  std::string all;
  for (const std::string& text : texts)
    all += (all.empty() ? "" : ",") + json_text(text);
  return "[" + all + "]";
}

std::string firewall_patch(const std::vector<std::string>& cidrs) {
  return fmt::format(R"({{"sourceRanges":{}}})", json_texts(cidrs));
}

std::string firewall_body(std::string_view owner, const std::vector<std::string>& cidrs) {
  return fmt::format(
      R"({{"allowed":[{{"IPProtocol":"tcp","ports":["22"]}}],"description":"ssh to machines that Lockstep has rented","direction":"INGRESS","name":{},"network":"{}","sourceRanges":{},"targetTags":[{}]}})",
      json_text(firewall_name(owner)), kNetwork, json_texts(cidrs), json_text(machine_tag(owner)));
}

std::string label_of(std::string_view text) {
  std::string label = to_lower(text.substr(0, kLabelLimit));
  // Google allows nothing but these characters in a label.
  for (char& c : label)
    if (!((c >= 'a' && c <= 'z') || (c >= '0' && c <= '9') || c == '-' || c == '_')) c = '_';
  return label;
}

std::string time_label(std::int64_t unix_ms) {
  std::string label = to_lower(iso_time(unix_ms));
  std::replace(label.begin(), label.end(), ':', '-');
  return label;
}

std::int64_t parse_time_label(std::string_view label) {
  std::string text = to_upper(label);
  if (text.size() != 20) return 0;
  text[13] = text[16] = ':';
  return parse_iso_time(text).value_or(0);
}

}  // namespace lockstep::cloud::gcp
