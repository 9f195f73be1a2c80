// Asks as the providers of clouds do, for tests against real servers and proxies: reads one JSON
// list of questions per line of stdin, asks them all at once, and prints a list of what came of
// them.
#include "base/log.h"
#include "cloud/web.h"

#include <nlohmann/json.hpp>

#include <cstdio>
#include <iostream>
#include <string>

using namespace lockstep;  // NOLINT
using Json = nlohmann::json;

namespace {

cloud::Question question_of(const Json& json) {
  cloud::Question question;
  question.method = json.value("method", "GET");
  question.base = json.at("base");
  question.target = json.value("target", "/");
  const Json fields = json.value("fields", Json::object());
  for (const auto& [name, value] : fields.items())
    question.fields.push_back({name, value});
  question.body = json.value("body", "");
  question.timeout = std::chrono::milliseconds(json.value("timeout_ms", 10'000));
  question.body_limit = json.value("body_limit", 16U << 20);
  question.gzip = json.value("gzip", false);
  question.repeatable = json.value("repeatable", false);
  question.shown = json.value("shown", "");
  return question;
}

Json reply_json(const cloud::Reply& reply) {
  Json json = {{"sent", reply.sent}};
  if (!reply.answer) {
    const Error& error = reply.answer.error();
    json.update({{"error", error.message},
                 {"hint", error.hint},
                 {"denied", error.code == Errc::denied},
                 {"timeout", error.code == Errc::timeout}});
    return json;
  }
  json.update({{"status", reply.answer->head.status}, {"body", reply.answer->body}});
  return json;
}

}  // namespace

int main() {
  log::set_level_from_env();
  const auto web = cloud::open_web({});
  if (!web) return 1;
  for (std::string line; std::getline(std::cin, line);) {
    const Json questions = Json::parse(line);
    std::vector<Json> replies(questions.size());
    const auto ask = [&](cloud::Web& on, std::size_t i) {
      replies[i] = reply_json(on.ask(question_of(questions[i])));
    };
    std::vector<std::function<void(cloud::Web&)>> jobs;
    for (std::size_t i = 0; i < questions.size(); ++i)
      jobs.emplace_back([&ask, i](cloud::Web& own) { ask(own, i); });
    if (jobs.size() == 1) jobs[0](**web);
    if (jobs.size() > 1) (*web)->at_once(jobs);
    std::printf("%s\n", Json(replies).dump(-1, ' ', false, Json::error_handler_t::replace).c_str());
    std::fflush(stdout);
  }
  return 0;
}
