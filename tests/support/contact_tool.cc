// Makes the first contact with machines and asks for their leases, for tests with real sshds: reads
// one JSON request on stdin, prints one JSON answer. What it brings to a machine is itself, so in
// every other way it is `lockstep`.
#include "base/clock_ms.h"
#include "base/log.h"
#include "cli/commands.h"
#include "cloud/runpod/pod_ending.h"
#include "cloud/user_data.h"
#include "rent/rented_host.h"

#include <nlohmann/json.hpp>

#include <cstdio>
#include <iostream>
#include <string>
#include <string_view>

using namespace lockstep;  // NOLINT
using Json = nlohmann::json;

namespace {

constexpr const char* kOutcomes[] = {"ready", "unreachable", "wrong_host", "sick", "no_lease"};
constexpr const char* kKinds[] = {"good", "note", "bad"};

rent::RentedHost host_of(const Json& json) {
  return {.name = json.at("name"),
          .address = json.at("address"),
          .port = json.value("port", 22),
          .user = json.at("user"),
          .key_path = json.at("key_path"),
          .host_public_key = json.value("host_public_key", "")};
}

// "terms": {"lives_s", "idle_s", "pod", "notice": 0..2, "metadata"}
machine::LeaseTerms terms_of(const Json& json) {
  return {.ends_ms = unix_ms() + json.value("lives_s", std::int64_t{3600}) * 1000,
          .idle_s = json.value("idle_s", std::int64_t{600}),
          .ending = json.value("pod", false) ? cloud::runpod::kPodEnding : cloud::kPoweroff,
          .notice = static_cast<machine::NoticeSource>(json.value("notice", 0)),
          .metadata = json.value("metadata", "")};
}

Json answer_of(const rent::FirstContact& contact) {
  Json findings = Json::array();
  for (const auto& finding : contact.findings)
    findings.push_back({{"kind", kKinds[static_cast<int>(finding.kind)]}, {"what", finding.what}});
  return {{"outcome", kOutcomes[static_cast<int>(contact.outcome)]},
          {"error", contact.error},
          {"findings", findings},
          {"host_public_key", contact.host_public_key},
          {"fresh_key", contact.fresh_key},
          {"answered_ms", contact.answered_ms},
          {"silent", contact.silent}};
}

Json contact(const Json& json) {
  rent::FirstContactRequest request;
  for (const Json& host : json.at("hosts"))
    request.hosts.push_back(host_of(host));
  request.pins = json.at("pins");
  request.wish.gpu = json.value("gpu", "");
  request.wish.gpus = json.value("gpus", 0);
  request.lease = terms_of(json.value("terms", Json::object()));
  request.patience = std::chrono::seconds(json.value("patience_s", 60));
  request.silent_for = std::chrono::milliseconds(json.value("silent_ms", 60'000));
  request.health_patience = std::chrono::seconds(json.value("health_s", 300));
  request.on_step = [&request](std::size_t host, const rent::ContactStep& step) {
    std::cerr << request.hosts[host].name << ' ' << step.text << std::endl;
  };
  const auto made = rent::make_first_contact(request);
  if (!made) return {{"error", made.error().message}};
  Json answers = Json::array();
  for (const auto& each : *made)
    answers.push_back(answer_of(each));
  return answers;
}

// {"user_data": FOLDER, "guard_s"}: keys are made there, and the text that a machine is given.
Json user_data(const Json& json) {
  const std::string folder = json.at("user_data");
  const auto login = cloud::keep_key_pair(folder + "/login", "lockstep-user");
  const auto host = cloud::keep_key_pair(folder + "/host", "lockstep-host");
  if (!login || !host) return {{"error", "no keys"}};
  cloud::FirstBoot boot{.host_key = *host, .user_public_key = login->public_line};
  boot.guard_s = json.value("guard_s", boot.guard_s);
  const auto text = json.value("container", false)
                        ? cloud::container_start(boot, cloud::runpod::kPodEnding)
                        : cloud::cloud_config(boot);
  return {{"text", text.value_or("")},
          {"host_public_key", host->public_line},
          {"start_command", std::string(cloud::kStartCommand)}};
}

Json ask(const Json& json) {
  std::vector<hosts::HostPlace> places;
  for (const Json& each : json.at("hosts")) {
    const rent::RentedHost host = host_of(each);
    places.push_back({.name = host.name,
                      .target = {.host = host.address,
                                 .user = host.user,
                                 .port = host.port,
                                 .key_path = host.key_path,
                                 .host_keys = ssh::HostKeys::pinned},
                      .pins = json.at("pins")});
  }
  const std::string verb = json.at("ask");
  const auto answered =
      verb == "keep"
          ? rent::keep_leases(places, unix_ms() + json.at("lives_s").get<std::int64_t>() * 1000,
                              json.value("idle_s", std::int64_t{-1}))
      : verb == "hold" ? rent::hold_leases(places, json.at("seconds"))
                       : rent::ask_leases(places);
  if (!answered) return {{"error", answered.error().message}};
  Json answers = Json::array();
  for (const auto& each : *answered) {
    Json answer = Json::parse(codec::print_json(machine::to_json(each.state)));
    answer["error"] = each.error;
    answers.push_back(answer);
  }
  return answers;
}

}  // namespace

int main(int argc, char** argv) {
  if (argc != 2 || std::string_view(argv[1]) != "first-contact") {
    const cli::ExitCode code =
        cli::dispatch(cli::lockstep_program(), "lockstep", cli::Args(argv + 1, argv + argc));
    std::fflush(stdout);
    return number(code);
  }
  log::set_level_from_env();
  const Json request = Json::parse(std::cin);
  std::cout << (request.contains("user_data") ? user_data(request)
                : request.contains("ask")     ? ask(request)
                                              : contact(request))
            << std::endl;
  return 0;
}
