#include "jobs/on_slurm/login_job.h"

#include "base/last_line.h"
#include "base/log.h"
#include "base/text.h"
#include "codec/json.h"
#include "jobs/on_hosts/ask_hosts.h"
#include "jobs/on_slurm/slurm_job.h"

#include <fmt/core.h>

namespace lockstep::jobs::on_slurm {
namespace {

constexpr std::size_t kMostError = 1000;

}  // namespace

PlaceFacts LoginJob::facts() const {
  return {.number = place_.job, .output = place_.output};
}

Result<Explanation> LoginJob::why() {
  io::Loop loop;
  LOCKSTEP_TRY_ASSIGN(const auto endings,
                      world_.run(loop, on_hosts::about_job(record_.nodes, "report", record_.id)));
  const hosts::HostEnding& ending = endings.at(0);
  if (!ending.error.empty()) return fail(Errc::unavailable, ending.error);
  const std::string& login = record_.nodes.at(0).name;
  if (ending.code != 0)
    return fail(Errc::not_found, login + ": " + printable(last_line(ending.err), kMostError));
  // Of the nodes that have not answered what their ranks do.
  if (!ending.err.empty())
    log::warning("{}: {}", login, printable(last_line(ending.err), kMostError));
  auto said = explanation_of(ending.out);
  if (!said && said.error().code == Errc::corrupt)
    said.error().message = login + ": " + said.error().message;
  return said;
}

// A way through both machines would need a second link inside the first.
Result<std::vector<PageThere>> LoginJob::page(int node) {
  const std::string login = printable(record_.nodes.at(0).name);
  const std::string wanted = node == 0 ? "" : fmt::format("--node {} ", node);
  return fail(Errc::invalid_input,
              fmt::format("only {} reaches the nodes of job {}", login, id_for_people()),
              fmt::format("on {0}: lockstep page {1}{2}; then here: lockstep forward {0} PORT",
                          login, wanted, id_for_people()));
}

Result<Resumed> LoginJob::resume(const std::vector<std::string>& env) {
  (void)env;
  return only_slurm_resumes(place_.job);
}

std::string answer_text(const Result<Explanation>& said) {
  const nlohmann::ordered_json answer =
      said ? nlohmann::ordered_json{{"text", said->text}, {"json", said->json}}
           : nlohmann::ordered_json{{"error", said.error().message}, {"hint", said.error().hint}};
  return codec::print_json(answer) + "\n";
}

Result<Explanation> explanation_of(std::string_view answer) {
  constexpr std::size_t kMostLine = 2000;
  const nlohmann::ordered_json json = codec::parse_ordered_json(answer);
  const auto text = [&](const char* name) {
    const auto at = json.find(name);
    return at != json.end() && at->is_string() ? at->get<std::string>() : std::string();
  };
  if (!json.is_object() || (text("text").empty() && text("error").empty()))
    return fail(Errc::corrupt, "unexpected answer: " + printable(answer));
  if (!text("error").empty())
    return fail(Errc::not_found, printable(text("error"), kMostLine),
                printable(text("hint"), kMostLine));
  Explanation said{.text = {}, .json = json.contains("json") ? json["json"] : nullptr};
  std::string all = text("text");
  if (all.ends_with('\n')) all.pop_back();
  for (const std::string& line : split(all, '\n'))
    said.text += printable(line, kMostLine) + "\n";
  return said;
}

}  // namespace lockstep::jobs::on_slurm
