#include "cloud/aws/error_table.h"

#include "base/text.h"
#include "codec/json.h"
#include "codec/json_members.h"
#include "codec/xml.h"

#include <array>

namespace lockstep::cloud::aws {
namespace {

struct MeaningRow {
  std::string_view code;  // a '*' at the end matches any rest
  Meaning meaning;
};

// The first matching row wins. "Unsupported": the type is not sold in this zone. Quotas are
// regional, so another zone of the region would not help.
constexpr std::array kMeanings{
    MeaningRow{"InsufficientInstanceCapacity", Meaning::next_zone},
    MeaningRow{"InsufficientHostCapacity", Meaning::next_zone},
    MeaningRow{"InsufficientCapacity", Meaning::next_zone},
    MeaningRow{"UnfulfillableCapacity", Meaning::next_zone},
    MeaningRow{"Unsupported", Meaning::next_zone},
    MeaningRow{"InsufficientFreeAddressesInSubnet", Meaning::next_zone},
    MeaningRow{"SpotMaxPriceTooLow", Meaning::next_zone},
    MeaningRow{"ReservationCapacityExceeded", Meaning::next_zone},
    MeaningRow{"VcpuLimitExceeded", Meaning::next_region},
    MeaningRow{"InstanceLimitExceeded", Meaning::next_region},
    MeaningRow{"MaxSpotInstanceCountExceeded", Meaning::next_region},
    MeaningRow{"AuthFailure", Meaning::keys_here},
    MeaningRow{"OptInRequired", Meaning::keys_here},
    MeaningRow{"AuthFailure.ServiceLinkedRoleCreationNotPermitted", Meaning::no_spot},
    MeaningRow{"InvalidClientTokenId", Meaning::keys},
    MeaningRow{"UnrecognizedClientException", Meaning::keys},
    MeaningRow{"ExpiredToken*", Meaning::keys},
    MeaningRow{"RequestExpired", Meaning::keys},
    MeaningRow{"SignatureDoesNotMatch", Meaning::keys},
    MeaningRow{"InvalidSignatureException", Meaning::keys},
    MeaningRow{"IncompleteSignature", Meaning::keys},
    MeaningRow{"MissingAuthenticationToken*", Meaning::keys},
    MeaningRow{"Blocked", Meaning::keys},
    MeaningRow{"PendingVerification", Meaning::keys},
    MeaningRow{"UnauthorizedOperation", Meaning::not_allowed},
    MeaningRow{"AccessDenied*", Meaning::not_allowed},
    MeaningRow{"InvalidParameterValue", Meaning::ours},
    MeaningRow{"InvalidParameterCombination", Meaning::ours},
    MeaningRow{"InvalidAMIID.*", Meaning::ours},
    MeaningRow{"InvalidUserData.Malformed", Meaning::ours},
    MeaningRow{"MissingParameter", Meaning::ours},
    MeaningRow{"RequestLimitExceeded", Meaning::again},
    MeaningRow{"EC2ThrottledException", Meaning::again},
    MeaningRow{"Throttling*", Meaning::again},
    MeaningRow{"TooManyRequestsException", Meaning::again},
    MeaningRow{"InternalError", Meaning::again},
    MeaningRow{"InternalFailure", Meaning::again},
    MeaningRow{"Unavailable", Meaning::again},
    MeaningRow{"ServiceUnavailable", Meaning::again},
    MeaningRow{"InvalidInstanceID.NotFound", Meaning::soon},
    MeaningRow{"InvalidGroup.NotFound", Meaning::soon},
};

bool code_matches(std::string_view pattern, std::string_view code) {
  if (pattern.ends_with('*')) return code.starts_with(pattern.substr(0, pattern.size() - 1));
  return code == pattern;
}

// UnauthorizedOperation ends with an encoded blob about the account. Cut the blob: a message gains
// nothing from it.
std::string clean_message(std::string_view message) {
  if (const std::size_t blob = message.find("ncoded authorization failure message");
      blob != std::string_view::npos && blob > 0)
    message = message.substr(0, blob - 1);
  return printable(strip(message), 600);
}

}  // namespace

Meaning meaning_of(int status, std::string_view code) {
  for (const MeaningRow& row : kMeanings)
    if (code_matches(row.code, code)) return row.meaning;
  // Codes without a row: a passing fault by HTTP status, else unknown.
  return status == 429 || status >= 500 ? Meaning::again : Meaning::unknown;
}

Refusal refusal_of(Meaning meaning, bool keys_work_elsewhere) {
  switch (meaning) {
    case Meaning::next_zone:
      return Refusal::next_zone;
    case Meaning::next_region:
    case Meaning::again:  // until patience ended
      return Refusal::next_region;
    case Meaning::keys_here:
      return keys_work_elsewhere ? Refusal::next_region : Refusal::provider_out;
    case Meaning::keys:
    case Meaning::not_allowed:
      return Refusal::provider_out;
    case Meaning::no_spot:
      return Refusal::spot_out;
    case Meaning::ours:
    case Meaning::soon:
      return Refusal::stop;
    case Meaning::unknown:
      break;
  }
  return Refusal::unknown;
}

std::string_view spot_role_hint() {
  return "this account has no role for spot yet: an administrator must run `aws iam "
         "create-service-linked-role --aws-service-name spot.amazonaws.com` once";
}

bool blames_clock(std::string_view code) {
  // EC2 reports a skewed clock as AuthFailure or RequestExpired, too.
  constexpr std::array<std::string_view, 6> kClock{"RequestExpired",
                                                   "AuthFailure",
                                                   "SignatureDoesNotMatch",
                                                   "RequestTimeTooSkewed",
                                                   "InvalidSignatureException",
                                                   "RequestInTheFuture"};
  for (const std::string_view one : kClock)
    if (code == one) return true;
  return false;
}

ErrorWords parse_error(std::string_view body) {
  // Services of the JSON protocol: {"__type":"prefix#Code","message":".."}. Some write "Message".
  if (body.starts_with('{')) {
    const nlohmann::json parsed = codec::parse_json(body);
    if (!parsed.is_object()) return {};
    std::string code = codec::text_member(parsed, "__type");
    if (const std::size_t hash = code.rfind('#'); hash != std::string::npos)
      code.erase(0, hash + 1);
    std::string message = codec::text_member(parsed, "message");
    if (message.empty()) message = codec::text_member(parsed, "Message");
    return {.code = printable(code, 80), .message = clean_message(message)};
  }
  const auto root = codec::parse_xml(body);
  if (!root) return {};
  // EC2 answers <Response><Errors><Error>, STS <ErrorResponse><Error>.
  const codec::XmlNode* error = root->child("Errors/Error");
  if (error == nullptr) error = root->child("Error");
  if (error == nullptr) return {};
  return {.code = printable(error->text("Code"), 80),
          .message = clean_message(error->text("Message"))};
}

std::vector<std::string> zones_named(std::string_view message, std::string_view region) {
  std::vector<std::string> zones;
  // Zones before "choosing" are those without capacity.
  const std::size_t begin = message.find("choosing ");
  if (begin == std::string_view::npos || region.empty()) return zones;
  message.remove_prefix(begin);
  for (std::size_t at = message.find(region); at != std::string_view::npos;
       at = message.find(region, at + 1)) {
    const std::size_t letter = at + region.size();
    if (letter >= message.size() || message[letter] < 'a' || message[letter] > 'z') continue;
    zones.emplace_back(message.substr(at, region.size() + 1));
  }
  return zones;
}

}  // namespace lockstep::cloud::aws
