#include "peer/meeting.h"

#include "base/text.h"
#include "codec/json.h"
#include "peer/length.h"
#include "sync/manifest.h"

#include <utility>

namespace lockstep::peer {
namespace {

using nlohmann::json;

constexpr std::string_view kMagic = "lockstep-meeting\n";
constexpr std::size_t kMostAddress = 64;
constexpr std::size_t kMostWords = 1000;
constexpr codec::JsonLimits kLimits{.bytes = 64UL << 10, .depth = 4, .members = 128, .values = 256};

std::optional<std::uint64_t> number_in(const json& object, const char* name) {
  const auto at = object.find(name);
  if (at == object.end() || !at->is_number_unsigned()) return std::nullopt;
  return at->get<std::uint64_t>();
}

std::optional<Listening> listening_of(const json& object) {
  const auto port = number_in(object, "port");
  const auto addresses = object.find("addresses");
  if (!port || *port == 0 || *port > 0xFFFF || addresses == object.end() || !addresses->is_array())
    return std::nullopt;
  Listening listening{.port = static_cast<std::uint16_t>(*port)};
  // Ignore strange addresses instead of refusing the host.
  for (const json& each : *addresses)
    if (each.is_string() && each.get_ref<const std::string&>().size() <= kMostAddress &&
        listening.addresses.size() < kMostAddresses)
      listening.addresses.push_back(each.get<std::string>());
  return listening;
}

std::optional<Done> done_of(const json& object) {
  const auto files = number_in(object, "files");
  const auto bytes = number_in(object, "bytes");
  const auto missing = number_in(object, "missing");
  if (!files || !bytes || !missing) return std::nullopt;
  return Done{*files, *bytes, *missing};
}

nlohmann::ordered_json to_json(const Listening& listening) {
  return {{"listening", {{"port", listening.port}, {"addresses", listening.addresses}}}};
}
nlohmann::ordered_json to_json(const Connected& connected) {
  return {{"connected", connected.address}};
}
nlohmann::ordered_json to_json(const Progress& progress) {
  return {{"bytes", progress.bytes}};
}
nlohmann::ordered_json to_json(const Done& done) {
  return {{"done", {{"files", done.files}, {"bytes", done.bytes}, {"missing", done.missing}}}};
}
nlohmann::ordered_json to_json(const Trouble& trouble) {
  return {{"error", trouble.why.substr(0, kMostWords)}};
}

}  // namespace

// A binary form: the key and the paths may be any bytes, which texts of JSON cannot carry.
std::string encode_meeting(const Meeting& meeting) {
  std::string body(kMagic);
  sync::encode_text(meeting.destination, body);
  sync::encode_owner(meeting.owner, body);
  sync::encode_text(meeting.key, body);
  sync::encode_number(meeting.port, body);
  sync::encode_number(meeting.addresses.size(), body);
  for (const std::string& address : meeting.addresses)
    sync::encode_text(address, body);
  return with_length(body);
}

Result<Meeting> decode_meeting(std::string_view bytes) {
  const auto corrupt = [] { return fail(Errc::corrupt, "this is not a meeting of two hosts"); };
  if (!bytes.starts_with(kMagic)) return corrupt();
  bytes.remove_prefix(kMagic.size());
  Meeting meeting;
  const auto destination = sync::decode_text(bytes, sync::kMostPath);
  auto owner = destination ? sync::decode_owner(bytes) : std::nullopt;
  const auto key = owner ? sync::decode_text(bytes, sync::kMostPath) : std::nullopt;
  if (!key) return corrupt();
  meeting.destination = *destination;
  meeting.owner = std::move(*owner);
  meeting.key = *key;
  if (meeting.key.size() != kKeyBytes || meeting.destination.find('\0') != std::string::npos)
    return corrupt();
  const auto port = sync::decode_number(bytes);
  const auto count = sync::decode_number(bytes);
  if (!port || *port > 0xFFFF || !count || *count > kMostAddresses) return corrupt();
  meeting.port = static_cast<std::uint16_t>(*port);
  for (std::uint64_t i = 0; i < *count; ++i) {
    const auto address = sync::decode_text(bytes, kMostAddress);
    if (!address) return corrupt();
    meeting.addresses.emplace_back(*address);
  }
  if (!bytes.empty()) return corrupt();
  return meeting;
}

std::string print_answer(const Answer& answer) {
  return codec::print_json(std::visit([](const auto& each) { return to_json(each); }, answer)) +
         "\n";
}

std::optional<Answer> parse_answer(std::string_view line) {
  const json read = codec::parse_json(line, kLimits);
  // Exactly one member: its name is the kind of answer.
  if (!read.is_object() || read.size() != 1) return std::nullopt;
  const std::string& name = read.begin().key();
  const json& value = *read.begin();
  if (name == "connected" && value.is_string())
    return Connected{printable(value.get<std::string>(), kMostAddress)};
  if (name == "error" && value.is_string())
    return Trouble{printable(value.get<std::string>(), kMostWords)};
  if (name == "bytes" && value.is_number_unsigned()) return Progress{value.get<std::uint64_t>()};
  if (!value.is_object()) return std::nullopt;
  if (name == "listening") return listening_of(value);
  if (name == "done") return done_of(value);
  return std::nullopt;
}

}  // namespace lockstep::peer
