#include "jobs/rented/owner_talk.h"

#include "codec/json_fields.h"
#include "hosts/registry.h"
#include "rent/guard_talk.h"

namespace lockstep::jobs::rented {
namespace {

constexpr codec::JsonLimits kRequestLimits{.bytes = 1U << 20};
constexpr std::size_t kMostText = 1000;

}  // namespace

static void fields(codec::JsonFields& io, OwnerRequest& request) {
  io("rental", request.rental);
  io.require(rent::is_rental_id(request.rental), "rental", "the id of a rental");
  io("cluster", request.cluster);
  io.require(hosts::check_cluster_name(request.cluster).has_value(), "cluster",
             "the name of a cluster");
  io("client", request.client);
  io.require(rent::is_owner(request.client), "client", "the id of an installation");
  io("folder", request.folder);
  io("words", request.words);
  io("variables", request.variables);
}

static void fields(codec::JsonFields& io, OwnedState& state) {
  io("known", state.known);
  io("ended", state.ended);
  io("state", state.state);
  io("code", state.code, {0, 255});
  io("note", state.note);
  io("job", state.job);
}

std::string owner_request_text(const OwnerRequest& request) {
  return codec::print_json(nlohmann::json(codec::write_fields(request)));
}

Result<OwnerRequest> read_owner_request(std::string_view text) {
  OwnerRequest request;
  LOCKSTEP_TRY(codec::read_fields(codec::parse_json(text, kRequestLimits), request));
  return request;
}

std::string kept_request_text(const OwnerRequest& request) {
  return owner_request_text({.rental = request.rental,
                             .cluster = request.cluster,
                             .client = request.client,
                             .folder = {},
                             .words = {},
                             .variables = request.variables});
}

std::string owned_state_text(const OwnedState& state) {
  return codec::print_json(nlohmann::json(codec::write_fields(state)));
}

// The host may run another version.
Result<OwnedState> read_owned_state(std::string_view text) {
  OwnedState state;
  const codec::JsonRules rules{.strict = false, .printable = kMostText};
  if (!codec::read_fields(codec::parse_json(text), state, rules))
    return fail(Errc::corrupt, "unreadable answer about a job");
  return state;
}

}  // namespace lockstep::jobs::rented
